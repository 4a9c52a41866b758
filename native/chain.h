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

// What labels cost beside the gold ones.
struct TmCosts {
  const int64_t *gold;  // (B, T)
  const void *matrix;   // (K, K), [gold, label], of the type of the scores; or null: `cost` for all but the gold label
  double cost;
  int64_t normalize;    // whether they are divided by the length
  void *value, *slope;  // (B), of the type of the scores: the loss, and what its gradient is times that of the score
};

struct TmViterbi {
  const void *emissions, *transitions, *start, *end;
  const int64_t *lengths;
  int64_t batch, steps, num_labels;
  void *work;       // tm_viterbi_work(B, T, K) bytes
  int64_t *labels;  // (B, T)
  double *score;    // (B), of these labels; with costs, what they cost, and their score less that of the gold ones
  uint8_t *sound;   // (B)
  TmCosts costs;    // of which all is null where the best score alone is asked for
  const uint8_t *mask;  // (B, T), which positions count, in place of the lengths; or null
};

struct TmSlack {
  const void *emissions, *transitions, *start, *end;
  const int64_t *lengths;
  int64_t batch, steps, num_labels;
  void *work;            // tm_slack_work(T, K, most) bytes
  int64_t *labels;       // (B, T)
  uint8_t *sound;        // (B)
  const int64_t *gold;   // (B, T)
  const int64_t *units;  // (K, K), [gold, label]: what labels cost, in units, at most `most`
  int64_t most;
  double unit;
  int64_t normalize;    // whether costs are divided by the length
  void *value, *slope;  // (B), of the type of the scores: the loss, and what its gradient is times that of the score
};

struct TmDifference {
  const int64_t *lengths, *found, *gold;  // labels (B, T)
  int64_t batch, steps, num_labels;
  const void *grad, *slope;                               // (B), of the type of the scores
  void *by_emission, *by_transition, *by_start, *by_end;  // of sum(grad * slope * (s(found) - s(gold)))
};
