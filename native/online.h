// What `torch_multiclass/ops/online.py` packs for the online learners.
#pragma once
#include "abi.h"

// Weights lie with the classes of a feature side by side, (width + bias, padded), `padded` a multiple of 4; what is past
// the classes is 0. Rows are dense, (N, width), or, with `offsets (N + 1)` and `columns`, compressed ones of distinct
// columns in ascending order.
struct TmOnline {
  const void *values;  // float, or double if `wide`
  const int64_t *offsets, *columns;
  int64_t wide, width, bias;  // `bias`: 1 appends a constant feature 1
  const int64_t *order;       // (visits): the rows to visit
  int64_t visits;
  int64_t asks;           // what `target` holds: TmAsks
  const void *target;
  const int64_t *first;   // (N + 1): the preferences of each row, of TM_PAIRS
  const double *steps;    // (N)
  int64_t classes, padded, rule, kind;  // TmRule, TmKind
  double threshold;       // of TM_WINNOW_BINARY
  double ratio, top;      // of the Winnows: exponents over `top` are not to be raised to
  double *weights;
  double *drift;          // null, or the sum over updates of (visits before it) times what it added
  double *exponents;      // of the Winnows: weights = ratio^(exponents - shift)
  double *shift;
  int64_t *counts;        // visits so far, updates, preferences used: added to
  double *work;           // width + bias + 2 padded; of chains tm_online_work doubles
  // Of chains only, which keep below the weights of the features those of the moves from each label, of the start and of
  // the end, (classes + 2, padded). A visit is of the rows first[i] to first[i + 1], one for each position.
  const double *allowed;  // null, or 0 and -inf, (classes + 2, padded)
  int64_t longest;
};

// Stochastic sub-gradient descent on strength/2 |W|^2 plus the mean hinge, of labels.
struct TmPegasos {
  TmOnline rows;      // `steps`: the share of each row; `work` has `batch` doubles more
  int64_t batch;      // rows a step
  double strength, expected;  // `expected`: how many steps there will be, 0 where nobody knows
  double *average;
  int64_t *steps;     // taken, averaged: added to
};

enum TmAsks { TM_LABELS, TM_SIGNS, TM_PAIRS };  // int64 (N); int8 (N, classes); int64 (total, 2)
enum TmRule { TM_CONSERVATIVE, TM_ALL, TM_UNIFORM };
enum TmKind { TM_PERCEPTRON, TM_PASSIVE_AGGRESSIVE, TM_WINNOW, TM_WINNOW_BINARY };
