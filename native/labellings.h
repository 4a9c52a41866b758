// What `torch_multiclass/ops/labellings.py` packs for the ascent over labellings.
#pragma once
#include "abi.h"

// The positions of all examples stand in one list of M; those of example i are first[i] .. first[i + 1] - 1. Of example
// i, labelling a is at labels + first[i] * capacity + a * (its length).
struct TmAscend {
  const void *rows;  // (M, width), float or double: features, or their Gram matrix
  double *state;     // (K, width): weights, or the scores of all positions
  int64_t single, gram, width, num_labels;  // whether the rows are floats, and whether they are a Gram matrix
  double *transitions, *start, *end;  // (K, K), (K), (K), or null: no scores of neighbours
  double scale;                       // the square of the transition scale
  const int64_t *first;               // (N + 1)
  const int32_t *gold;                // (M)
  const double *strength;             // (N): what the shares of an example may sum to
  int64_t capacity;
  int64_t *count;                     // (N): how many labellings are kept
  int32_t *labels;                    // (M * capacity)
  double *factor, *offset, *share;    // (N, capacity)
  const int64_t *order;               // (visits): which examples, in turn
  int64_t visits, steps;              // how many, and how many steps each
  const int32_t *found;               // (M): labellings to be added first, or null
  const double *found_factor, *found_offset;  // (N); a factor of 0 is none
  void *work;                         // tm_ascend_work(longest, K, capacity) bytes
};
