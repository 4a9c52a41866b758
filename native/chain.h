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
  void *work;       // tm_chain_work(B, T, K) bytes
  double *value;    // (B)
  void *result;     // (B), the same in the type of the scores; or null
  uint8_t *sound;   // (B): which sequences the library vouches for; of the others it has computed nothing
  const void *grad;  // (B), or null: all 1; a sequence whose entry is 0 is left out
  void *by_emission, *by_transition, *by_start, *by_end;  // the gradient of sum(grad * value); or null
};

struct TmViterbi {
  const void *emissions, *transitions, *start, *end;
  const int64_t *lengths;
  int64_t batch, steps, num_labels;
  void *work;       // tm_viterbi_work(B, T, K) bytes
  int64_t *labels;  // (B, T)
  double *score;    // (B), of these labels
  uint8_t *sound;   // (B)
};
