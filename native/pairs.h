// What `torch_multiclass/ops/pairs_native.py` packs for the loops over pairs of classes.
#pragma once
#include "abi.h"

// The margins of the K - 1 pairs that a row's own label is in, as that label sees them. All arrays are contiguous;
// those of numbers are of one type, float or double.
struct TmPairs {
  const void *features;   // (B, D)
  const void *weight;     // (K (K - 1) / 2, D): a row for each pair i < j, in lexicographic order
  const void *bias;       // (K (K - 1) / 2), or null
  const int64_t *labels;  // (B); below 0: the row does not count
  const int64_t *order;   // (B): the rows, those of one label together
  int64_t rows, dims, classes;
  void *margins;  // (B, K - 1): written forward; backward the derivative by each, as the label sees it
  // of the backward pass only, all zero at first; null where not asked for
  void *by_features, *by_weight, *by_bias;
};

// Class probabilities that agree best with those of the pairs.
struct TmCoupling {
  const double *margins;  // (B, K (K - 1) / 2)
  const uint8_t *absent;  // (K), or null
  int64_t rows, classes;
  double least;   // a probability of a pair is kept within [least, 1 - least]
  double *work;   // K^2 + 3 K numbers
  double *found;  // (B, K); a row that has not been solved begins with a number below 0
};
