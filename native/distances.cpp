// Squared Euclidean distances of all pairs of rows, as sums of squared differences: right to the last digits wherever
// the rows are, and with few features as quick as a matrix product.
#include "distances.h"
#include "vector.h"

namespace {

// Rows i to i + Rows against `n` columns from j on.
template <class R, int Rows> INLINE void tile(const TmDistances &in, int64_t i, int64_t j, int64_t n) {
  const R *left = (const R *)in.left + i * in.features, *right = (const R *)in.right + j;
  const bool inner = j + Real<R>::lanes <= in.columns;
  Vec<R> sum[Rows] = {};
  for (int64_t d = 0; d < in.features; d++) {
    const Vec<R> column = load_part<R>(right + d * in.columns, n, 0, inner);
    for (int r = 0; r < Rows; r++) {
      const Vec<R> by = column - left[r * in.features + d];
      sum[r] += by * by;
    }
  }
  R *out = (R *)in.squared + i * in.columns + j;
  for (int r = 0; r < Rows; r++) store_part<R>(out + r * in.columns, sum[r], n);
}

template <class R> int64_t distances(const TmDistances &in) {
  constexpr int together = 6;
  for (int64_t i = 0; i < in.rows;) {
    const bool many = i + together <= in.rows;
    for (int64_t j = 0; j < in.columns; j += Real<R>::lanes) {
      const int64_t left = in.columns - j, n = left < Real<R>::lanes ? left : Real<R>::lanes;
      many ? tile<R, together>(in, i, j, n) : tile<R, 1>(in, i, j, n);
    }
    i += many ? together : 1;
  }
  return 0;
}

}  // namespace

TM_EXPORT int64_t tm_distances_f32(const TmDistances *in) { return distances<float>(*in); }
TM_EXPORT int64_t tm_distances_f64(const TmDistances *in) { return distances<double>(*in); }
