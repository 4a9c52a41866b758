// From rows to the sum of the values of their leaves. What `torch_multiclass/ops/splits/descend.py` packs:
#include "abi.h"
#include "vector.h"

struct TmDescend {
  const void *features;     // (B, D), one type with threshold, values, weights and sums
  const int64_t *feature;   // (N), in 0..D-1
  const void *threshold;    // (N)
  const uint8_t *missing;   // (N): whether a missing value is a yes
  const int64_t *children;  // (N, 2): where no leads, and yes
  const int64_t *roots;     // (T)
  const void *values;       // (N - inner, K)
  const void *weights;      // (T), or null: 1
  void *sums;               // (B, K), zero before
  int64_t rows, width, inner, trees, classes;
};

namespace {

constexpr int64_t TOGETHER = 8, BLOCK = 512;  // rows that go down a tree side by side; rows that a tree sees at a time

template <class R> INLINE int64_t step(const TmDescend &c, const R *row, int64_t node) {
  R value = row[c.feature[node]];
  int yes = value <= ((const R *)c.threshold)[node];
  if (value != value) yes = c.missing[node];
  return c.children[2 * node + yes];
}

template <class R> void descend(const TmDescend &c) {
  const R *features = (const R *)c.features, *values = (const R *)c.values, *weights = (const R *)c.weights;
  R *sums = (R *)c.sums;
  for (int64_t from = 0; from < c.rows; from += BLOCK) {
    int64_t to = from + BLOCK < c.rows ? from + BLOCK : c.rows;
    for (int64_t t = 0; t < c.trees; t++) {
      R weight = weights ? weights[t] : R(1);
      for (int64_t i = from; i < to; i += TOGETHER) {
        int64_t node[TOGETHER], many = to - i < TOGETHER ? to - i : TOGETHER;
        for (int64_t j = 0; j < many; j++) node[j] = c.roots[t];
        for (bool more = true; more;) {
          more = false;
          for (int64_t j = 0; j < many; j++)
            if (node[j] < c.inner) {
              node[j] = step(c, features + (i + j) * c.width, node[j]);
              more = true;
            }
        }
        for (int64_t j = 0; j < many; j++) {
          const R *value = values + (node[j] - c.inner) * c.classes;
          R *sum = sums + (i + j) * c.classes;
          for (int64_t k = 0; k < c.classes; k++) sum[k] += weight * value[k];
        }
      }
    }
  }
}

}  // namespace

TM_EXPORT int64_t tm_descend_f32(const TmDescend *c) {
  descend<float>(*c);
  return 0;
}
TM_EXPORT int64_t tm_descend_f64(const TmDescend *c) {
  descend<double>(*c);
  return 0;
}
