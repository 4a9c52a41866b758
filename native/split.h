// What `torch_multiclass/ops/splits/native.py` packs for stumps and trees, and what the loops over sorted rows share.
#pragma once
#include "abi.h"
#include "vector.h"

// The best cut of each feature of rows that carry a signed number in each column.
struct TmDense {
  const int32_t *codes;     // (D, M); a missing value has counts[d]
  const uint16_t *short_codes;  // the same; or null: features are not screened
  const int32_t *order;     // (D, M): rows by their codes
  const int32_t *starts;    // (D, stride): where each code begins in the order, and where the last one ends
  const int32_t *rows;      // (n); or null: all
  const int32_t *counts;    // (D)
  const double *channels;   // (M, row): zero from where the numbers of a row end
  const int32_t *pattern;   // (M): which of the columns a row's numbers belong to; or null: to all
  const int32_t *columns;   // (P, narrow)
  int64_t num_rows, n, features, stride;
  int64_t row, narrow;      // row: narrow filled up as width is
  int64_t width;            // parts times the number of columns filled up to 1 or a multiple of 8
  int64_t criterion;        // 0: the edge, one part; 1: the normaliser, a part for positive numbers and one for negative
  void *work;               // tm_dense_work(n, row, width) bytes
  double *gain;             // (D): -inf where there is no cut
  int32_t *below, *above;   // (D): the codes on either side of it
  uint8_t *side;            // (D): whether a missing value counts as below
  double *sums;             // (2, width): the sums of both sides of the best
};

#define APART __attribute__((noinline))  // once in the library

constexpr double TIE = 1e-12;  // values less far apart are equal
constexpr double NONE = -__builtin_inf();

// A row and its code: one number, in whose order the rows are sorted.
typedef uint64_t Key;
INLINE Key key(int32_t code, int64_t row) { return (uint64_t)(uint32_t)code << 32 | (uint32_t)row; }
INLINE int32_t code_of(Key k) { return (int32_t)(k >> 32); }
INLINE int32_t row_of(Key k) { return (int32_t)(uint32_t)k; }

// Sorts keys by their codes, which are below size; rows of one code stay in their order. The result is in a or in b.
APART inline Key *sort_keys(Key *a, Key *b, int64_t n, int64_t size) {
  if (n <= 32) {
    for (int64_t i = 1; i < n; i++) {
      Key k = a[i];
      int64_t j = i;
      for (; j > 0 && code_of(a[j - 1]) > code_of(k); j--) a[j] = a[j - 1];
      a[j] = k;
    }
    return a;
  }
  constexpr int BITS = 8;
  for (int shift = 0; size > 1; shift += BITS, size = (size + (1 << BITS) - 1) >> BITS) {
    int32_t start[1 << BITS] = {0};
    for (int64_t i = 0; i < n; i++) start[(a[i] >> (32 + shift)) & ((1 << BITS) - 1)]++;
    int32_t sum = 0;
    for (int d = 0; d < 1 << BITS; d++) {
      int32_t count = start[d];
      start[d] = sum;
      sum += count;
    }
    for (int64_t i = 0; i < n; i++) b[start[(a[i] >> (32 + shift)) & ((1 << BITS) - 1)]++] = a[i];
    Key *swap = a;
    a = b;
    b = swap;
  }
  return a;
}

// Trees that grow by levels, for rows with a label. Nodes are numbered as they come: first those that are open at the
// start, then the children of each level, yes before no. Arrays of nodes have room for all that may come.
struct TmGrow {
  const int32_t *codes;     // (D, M)
  const int32_t *counts;    // (D)
  const int32_t *labels;    // (M)
  const double *weights;    // (M)
  int64_t num_rows, features, classes;
  int64_t impurity;         // 0: Gini, 1: entropy, 2: misclassification, 3: Kearns-Mansour
  int64_t tries;            // how many features are looked at, at least; D: all
  double min_leaf, min_decrease;
  double total;             // nodes count by their share of this weight; 0: all alike
  int64_t levels, budget;   // how many levels at most; none is begun after so many codes have been read
  void *work;               // tm_grow_work(n, D, K) bytes
  int32_t *rows, *other;    // (n): those of the open nodes, one node after the other; where a level is written to
  int64_t *starts;          // (n + 1): where the rows of each open node begin
  uint64_t *keys;           // (nodes): what draws the features of each
  double *sums;             // (nodes, K): the weight of each class
  int32_t *feature;         // (nodes): -1 where there is no cut
  int32_t *below, *above;   // (nodes)
  uint8_t *side;            // (nodes)
  double *decrease;         // (nodes)
  int64_t *state;           // (4): the first open node, all nodes, levels that were done, the rows of the open nodes
};

// A draw for each feature of a node: the features are tried in the order of these numbers.
INLINE uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
