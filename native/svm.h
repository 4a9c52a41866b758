// What `torch_multiclass/ops/ascent.py` packs for the row-wise dual ascent of support vector machines.
#pragma once
#include "abi.h"

// Example i's loss is C_i max_{b in B_i} b . t_i, t_i = cost_i + s_i - s_iy; its dual variable is beta_i in B_i.
enum TmPolytope : int64_t {
  TM_SIMPLEX,  // b >= 0, sum b = C: Crammer and Singer
  TM_BOX,      // 0 <= b <= C, b_y = 0: Weston and Watkins
  TM_SIGN,     // one score, t = 1 - y s with y = +1 or -1, 0 <= b <= C
};

enum TmLayout : int64_t {
  TM_BY_FEATURE,  // weight (D, P), P = tm_ascent_padded(K), padding 0: few features, or sparse rows
  TM_BY_CLASS,    // weight (K, D): many features, dense rows
  TM_OF_GRAM,     // the coefficients of the rows (K, R), and then their scores (K, R), R = rows >= N = features
};

// All arrays are contiguous; those of reals are of one type, float or double.
struct TmAscent {
  const void *values;       // (N, D) rows; the entries of sparse rows; or the (N, N) Gram matrix
  const int64_t *starts;    // (N + 1) where each sparse row begins, or null
  const int32_t *columns;   // the columns of the entries of sparse rows
  const void *squares;      // (N): the squared length that a row's step is divided by
  const void *upper;        // (N): C_i
  const int64_t *labels;    // (N): y, or the signs
  const void *cost;         // (N, K), or null: 0 at the label and 1 elsewhere
  void *beta;               // (N, K), moved in place
  void *weight;             // as `layout` says; moved in place
  const int64_t *order;     // (M): the rows to go over
  uint8_t *moved;           // (M): which of them were out of place by more than `skip`
  double *gap;              // (1): the sum over the rows of how far each loss was from its dual value
  void *work;               // tm_ascent_work(K) bytes
  int64_t count, rows, features, outputs, polytope, layout;
  double damp;              // the weight moves by damp times what the multipliers say
  double skip;              // rows whose gap is at most this times C_i stay where they are
};
