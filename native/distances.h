// What `torch_multiclass/ops/differences.py` hands over for squared distances.
#pragma once
#include "abi.h"

// All arrays are contiguous, of one type, float or double.
struct TmDistances {
  const void *left;    // (A, D)
  const void *right;   // (D, B)
  void *squared;       // (A, B)
  int64_t rows, columns, features;
};
