// One versus one: margins of the pairs of a label and their gradient, and the coupling of the pairs' probabilities.
#include "pairs.h"
#include "vector.h"

namespace {

INLINE int64_t first_of(int64_t i, int64_t classes) { return i * (2 * classes - i - 1) / 2; }

// The column of the pair of the label and its other class at a place 0 .. K - 2.
INLINE int64_t column_of(int64_t label, int64_t place, int64_t classes) {
  return place < label ? first_of(place, classes) + label - place - 1 : first_of(label, classes) + place - label;
}

template <class R> INLINE R dot(const R *a, const R *b, int64_t n) {
  typedef typename Real<R>::U U;
  constexpr int lanes = Real<R>::lanes;
  Vec<R> s0{}, s1{}, s2{}, s3{};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 += *(const U *)(a + i) * *(const U *)(b + i);
    s1 += *(const U *)(a + i + lanes) * *(const U *)(b + i + lanes);
    s2 += *(const U *)(a + i + 2 * lanes) * *(const U *)(b + i + 2 * lanes);
    s3 += *(const U *)(a + i + 3 * lanes) * *(const U *)(b + i + 3 * lanes);
  }
  for (; i + lanes <= n; i += lanes) s0 += *(const U *)(a + i) * *(const U *)(b + i);
  R sum = sum_of<R>((s0 + s1) + (s2 + s3));
  for (; i < n; i++) sum += a[i] * b[i];
  return sum;
}

template <class R> INLINE void add_scaled(R *to, R factor, const R *from, int64_t n) {
  typedef typename Real<R>::U U;
  constexpr int lanes = Real<R>::lanes;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) *(U *)(to + i) += factor * *(const U *)(from + i);
  for (; i < n; i++) to[i] += factor * from[i];
}

template <class R> void forward(const TmPairs &c) {
  const R *weight = (const R *)c.weight, *bias = (const R *)c.bias;
  for (int64_t n = 0; n < c.rows; n++) {
    int64_t row = c.order[n], label = c.labels[row];
    const R *x = (const R *)c.features + row * c.dims;
    R *z = (R *)c.margins + row * (c.classes - 1);
    for (int64_t place = 0; place < c.classes - 1; place++) {
      if (label < 0) {
        z[place] = 0;
        continue;
      }
      int64_t column = column_of(label, place, c.classes);
      R f = dot(weight + column * c.dims, x, c.dims) + (bias ? bias[column] : 0);
      z[place] = place < label ? -f : f;
    }
  }
}

template <class R> void backward(const TmPairs &c) {
  const R *weight = (const R *)c.weight;
  R *by_features = (R *)c.by_features, *by_weight = (R *)c.by_weight, *by_bias = (R *)c.by_bias;
  for (int64_t n = 0; n < c.rows; n++) {
    int64_t row = c.order[n], label = c.labels[row];
    if (label < 0) continue;
    const R *x = (const R *)c.features + row * c.dims, *slope = (const R *)c.margins + row * (c.classes - 1);
    for (int64_t place = 0; place < c.classes - 1; place++) {
      R s = place < label ? -slope[place] : slope[place];
      if (s == 0) continue;
      int64_t column = column_of(label, place, c.classes);
      if (by_weight) add_scaled(by_weight + column * c.dims, s, x, c.dims);
      if (by_bias) by_bias[column] += s;
      if (by_features) add_scaled(by_features + row * c.dims, s, weight + column * c.dims, c.dims);
    }
  }
}

// Cholesky's factor of a symmetric matrix, of which the lower half is given and overwritten; false where it has none.
bool factor(double *a, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double *row = a + i * n;
    for (int64_t j = 0; j < i; j++) row[j] = (row[j] - dot(row, a + j * n, j)) * a[j * n + j];
    double pivot = row[i] - dot(row, row, i);
    if (!(pivot > 0)) return false;
    row[i] = 1 / __builtin_sqrt(pivot);  // the inverse of the diagonal, which is all that is needed of it
  }
  return true;
}

// x with L L' x = 1.
void solve_ones(const double *a, double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] = (1 - dot(a + i * n, x, i)) * a[i * n + i];
  for (int64_t i = n - 1; i >= 0; i--) {
    x[i] *= a[i * n + i];
    add_scaled(x, -x[i], a + i * n, i);
  }
}

// p_ij = sigmoid(2 f_ij), kept off 0 and 1; an absent class loses to every other.
void pair_probabilities(const TmCoupling &c, const double *f, int64_t i, double *p) {
  constexpr int lanes = Real<double>::lanes;
  const int64_t n = c.classes - 1 - i;
  const Vec<double> least = splat(c.least), most = splat(1 - c.least);
  for (int64_t k = 0; k < n; k += lanes) {
    Vec<double> z = load_part(f + k, n - k, 0.0, false) * 2;
    Mask<double> positive = z > 0;
    Vec<double> tail = exp_of<double>(positive ? -z : z);
    Vec<double> odds = 1 / (1 + tail);
    odds = positive ? odds : tail * odds;
    odds = odds < least ? least : odds > most ? most : odds;
    store_part(p + k, odds, n - k);
  }
  if (!c.absent) return;
  for (int64_t k = 0; k < n; k++)
    if (c.absent[i] != c.absent[i + 1 + k]) p[k] = c.absent[i] ? c.least : 1 - c.least;
}

// sum_i p_i = 1 and Q p = b 1 with Q_ii = sum_j r_ji^2 and Q_ij = -r_ij r_ji: p is along the solution x of
// (Q + 1 1') x = 1, whose matrix has a factor also where Q is singular, which it is where the pairs agree exactly.
void couple(const TmCoupling &c, const double *f, double *found) {
  const int64_t K = c.classes;
  double *a = c.work, *p = a + K * K, *x = p + K;
  for (int64_t i = 0; i < K; i++) a[i * K + i] = 1;
  for (int64_t i = 0; i < K; i++) {
    pair_probabilities(c, f, i, p);
    f += K - 1 - i;
    double own = 0;
    for (int64_t j = i + 1; j < K; j++) {
      double r = p[j - i - 1], other = 1 - r;
      own += other * other;
      a[j * K + j] += r * r;
      a[j * K + i] = 1 - r * other;
    }
    a[i * K + i] += own;
  }
  if (!factor(a, K)) {
    found[0] = -1;
    return;
  }
  solve_ones(a, x, K);
  double total = 0;
  for (int64_t i = 0; i < K; i++) total += x[i] = x[i] > 0 ? x[i] : 0;
  for (int64_t i = 0; i < K; i++) found[i] = x[i] / total;
  if (!(total > 0)) found[0] = -1;
}

}  // namespace

TM_EXPORT int64_t tm_pairs_forward_f32(const TmPairs *c) { return forward<float>(*c), 0; }
TM_EXPORT int64_t tm_pairs_forward_f64(const TmPairs *c) { return forward<double>(*c), 0; }
TM_EXPORT int64_t tm_pairs_backward_f32(const TmPairs *c) { return backward<float>(*c), 0; }
TM_EXPORT int64_t tm_pairs_backward_f64(const TmPairs *c) { return backward<double>(*c), 0; }
TM_EXPORT int64_t tm_couple(const TmCoupling *c) {
  for (int64_t row = 0; row < c->rows; row++)
    couple(*c, c->margins + row * (c->classes * (c->classes - 1) / 2), c->found + row * c->classes);
  return 0;
}
