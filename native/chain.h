// What `torch_multiclass/ops/chain/native.py` packs for the loops over chains.
#pragma once
#include "abi.h"

// All arrays are contiguous; those of scores are of one type, float or double.
struct TmChain {
  const void *emissions;    // (B, T, K)
  const void *transitions;  // (K, K), [from, to]
  const void *start, *end;  // (K)
  const int64_t *lengths;   // (B), or null: all T
  const int64_t *labels;    // (B, T), or null
  int64_t batch, steps, num_labels;
  void *work;       // tm_chain_work(B, T, K) bytes: what the forward pass leaves to the backward pass
  double *value;    // (B)
  uint8_t *sound;   // (B): which sequences the library vouches for; of the others it has computed nothing
  // of the backward pass only
  const void *grad;  // (B); a sequence whose entry is 0 is left out
  void *by_emission, *by_transition, *by_start, *by_end;
};

struct TmViterbi {
  const void *emissions, *transitions, *start, *end;
  const int64_t *lengths;
  int64_t batch, steps, num_labels;
  void *work;       // tm_viterbi_work(B, T, K) bytes
  int64_t *labels;  // (B, T)
  uint8_t *sound;   // (B)
};
