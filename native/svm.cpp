// Dual ascent for support vector machines, one row at a time, each row exactly.
//
// With t_i = cost_i + s_i - s_iy, a row's step maximises b . t_i - |T^T (b - beta_i)|^2 |x_i|^2 / 2 over its polytope:
// a projection of beta_i + t_i / |x_i|^2. The multipliers of its scores are alpha_i = e_y sum(beta_i) - beta_i, and the
// weight, sum_i alpha_i x_i, follows at once. Crammer and Singer (2001); Keerthi et al. (2008).
#include "svm.h"
#include "vector.h"

namespace {

constexpr int64_t kFew = 3;      // classes whose weights are moved one by one
constexpr int64_t kSteps = 100;  // Newton's method ends after finitely many steps; five in practice

// Outputs beyond K hold this: whatever is done with them, it never is the largest, and its projection is 0.
template <class R> constexpr R kNone = (R)-1e30;

template <class R> int64_t padded(int64_t outputs) { return outputs == 1 ? 1 : round_up(outputs, Real<R>::lanes); }

template <class R> struct Loop {
  const TmAscent &in;
  const int64_t outputs, pitch;
  const R *values, *squares, *upper, *cost;
  R *beta, *weight;
  R *t, *moved, *change;  // (P): the margins, the new beta, how far the multipliers of the scores go

  explicit Loop(const TmAscent &in)
      : in(in), outputs(in.outputs), pitch(padded<R>(in.outputs)), values((const R *)in.values),
        squares((const R *)in.squares), upper((const R *)in.upper), cost((const R *)in.cost), beta((R *)in.beta),
        weight((R *)in.weight) {
    Arena arena{aligned(in.work)};
    t = arena.take<R>(pitch), moved = arena.take<R>(pitch), change = arena.take<R>(pitch);
  }

  // calls of(j, x_j) for each entry of a row
  template <class Of> INLINE void entries(int64_t i, Of of) const {
    if (in.starts) {
      for (int64_t e = in.starts[i]; e < in.starts[i + 1]; e++) of(in.columns[e], values[e]);
    } else {
      for (int64_t j = 0; j < in.features; j++) of(j, values[i * in.features + j]);
    }
  }

  // The scores of a row for N vectors of classes, `Unroll` sums of each.
  template <int N, int Unroll> INLINE void class_scores(int64_t i, int64_t first) {
    constexpr int lanes = Real<R>::lanes;
    Vec<R> sum[Unroll][N] = {};
    const R *w = weight + first;
    auto add = [&](int u, int64_t j, R x) __attribute__((always_inline)) {
      for (int v = 0; v < N; v++) sum[u][v] += load(w + j * pitch + v * lanes) * x;
    };
    if (in.starts) {
      int64_t e = in.starts[i], end = in.starts[i + 1];
      for (; e + Unroll <= end; e += Unroll)
        for (int u = 0; u < Unroll; u++) add(u, in.columns[e + u], values[e + u]);
      for (; e < end; e++) add(0, in.columns[e], values[e]);
    } else {
      const R *x = values + i * in.features;
      int64_t j = 0;
      for (; j + Unroll <= in.features; j += Unroll)
        for (int u = 0; u < Unroll; u++) add(u, j + u, x[j + u]);
      for (; j < in.features; j++) add(0, j, x[j]);
    }
    for (int v = 0; v < N; v++) {
      for (int u = 1; u < Unroll; u++) sum[0][v] += sum[u][v];
      store(t + first + v * lanes, sum[0][v]);
    }
  }

  void scores(int64_t i) {
    if (in.layout == TM_OF_GRAM) {
      const R *of = weight + outputs * in.rows + i;
      for (int64_t k = 0; k < outputs; k++) t[k] = of[k * in.rows];
      return;
    }
    if (in.layout == TM_BY_CLASS) {
      int64_t k = 0;
      for (; k + 4 <= outputs; k += 4) dots<4>(i, k);
      for (; k < outputs; k++) dots<1>(i, k);
      return;
    }
    if (outputs == 1) {
      t[0] = 0;
      entries(i, [&](int64_t j, R x) { t[0] += weight[j] * x; });
      return;
    }
    constexpr int lanes = Real<R>::lanes;
    int64_t k = 0;
    for (; k + 4 * lanes <= pitch; k += 4 * lanes) class_scores<4, 2>(i, k);
    for (; k < pitch; k += lanes) class_scores<1, 8>(i, k);
  }

  // The scores of a dense row for N classes.
  template <int N> INLINE void dots(int64_t i, int64_t first) {
    constexpr int lanes = Real<R>::lanes, unroll = 2;
    typedef typename Real<R>::U U;
    const int64_t features = in.features;
    const R *x = values + i * features, *w = weight + first * features;
    Vec<R> sum[N][unroll] = {};
    R rest[N] = {};
    int64_t j = 0;
    for (; j + unroll * lanes <= features; j += unroll * lanes)
      for (int u = 0; u < unroll; u++) {
        const Vec<R> part = *(const U *)(x + j + u * lanes);
        for (int v = 0; v < N; v++) sum[v][u] += *(const U *)(w + v * features + j + u * lanes) * part;
      }
    for (; j < features; j++)
      for (int v = 0; v < N; v++) rest[v] += w[v * features + j] * x[j];
    for (int v = 0; v < N; v++) t[first + v] = rest[v] + sum_of<R>(sum[v][0] + sum[v][1]);
  }

  // t from the scores in t; outputs beyond K are made as good as none.
  void margins(int64_t i, int64_t label) {
    if (in.polytope == TM_SIGN) {
      t[0] = 1 - (R)label * t[0];
      return;
    }
    const R own = t[label];
    if (cost) {
      for (int64_t k = 0; k < outputs; k++) t[k] += cost[i * outputs + k] - own;
    } else {
      for (int64_t k = 0; k < outputs; k++) t[k] += 1 - own;
      t[label] = 0;
    }
    for (int64_t k = outputs; k < pitch; k++) t[k] = kNone<R>;
  }

  // How far a row's loss is from its dual value.
  R row_gap(const R *b, R C, int64_t label) const {
    R inner = 0;
    constexpr int lanes = Real<R>::lanes;
    Vec<R> sums = {};
    int64_t whole = 0;
    for (; whole + lanes <= outputs; whole += lanes) sums += *(const typename Real<R>::U *)(b + whole) * load(t + whole);
    for (int64_t k = whole; k < outputs; k++) inner += b[k] * t[k];
    inner += sum_of<R>(sums);
    if (in.polytope == TM_SIGN) return C * larger_of<R>(t[0], 0) - inner;
    if (in.polytope == TM_BOX) {
      R sum = 0;
      for (int64_t k = 0; k < outputs; k++) sum += k == label ? 0 : larger_of<R>(t[k], 0);
      return C * sum - inner;
    }
    return C * largest(t) - inner;
  }

  R largest(const R *a) const {
    Vec<R> top = load(a);
    for (int64_t k = Real<R>::lanes; k < pitch; k += Real<R>::lanes) top = larger(top, load(a + k));
    return largest_of<R>(top);
  }

  // moved <- its nearest point of the simplex: [v - m]_+ for one m, by Newton's method from the left, which never
  // overshoots.
  void onto_simplex(R C) {
    constexpr int lanes = Real<R>::lanes;
    R shift = largest(moved) - C;
    const R close = (sizeof(R) == 4 ? (R)1e-6 : (R)2e-15);
    for (int64_t step = 0; step < kSteps; step++) {
      Vec<R> sum = {}, count = {};
      for (int64_t k = 0; k < pitch; k += lanes) {
        Vec<R> v = load(moved + k) - shift;
        sum += larger(v, Vec<R>{}), count += v > Vec<R>{} ? splat<R>(1) : Vec<R>{};
      }
      const R by = (sum_of<R>(sum) - C) / larger_of<R>(sum_of<R>(count), 1);
      shift += by;
      if (!(by > close * (C + (shift < 0 ? -shift : shift)))) break;
    }
    for (int64_t k = 0; k < pitch; k += lanes) store(moved + k, larger(load(moved + k) - shift, Vec<R>{}));
  }

  // moved <- the minimiser of |b - v|^2 / 2 + (sum b - offset)^2 / 2 over the box: clip(v - m) with m = sum b - offset,
  // by Newton's method within a bracket.
  void onto_box(R C, R offset) {
    R low = -offset, high = C * (R)(outputs - 1) - offset, shift = low > 0 ? low : high < 0 ? high : 0;
    const R close = (sizeof(R) == 4 ? (R)1e-6 : (R)2e-15) * (high - low);
    for (int64_t step = 0; step < kSteps; step++) {
      R sum = 0, slope = 1;
      for (int64_t k = 0; k < outputs; k++) {
        const R v = moved[k] - shift;
        sum += v <= 0 ? 0 : v < C ? v : C;
        slope += v > 0 && v < C ? 1 : 0;
      }
      const R excess = sum - offset - shift;
      if (!((excess < 0 ? -excess : excess) > close)) break;
      (excess > 0 ? low : high) = shift;
      const R newton = shift + excess / slope;
      shift = newton > low && newton < high ? newton : (low + high) / 2;
    }
    for (int64_t k = 0; k < outputs; k++) {
      const R v = moved[k] - shift;
      moved[k] = v <= 0 ? 0 : v < C ? v : C;
    }
  }

  // The row's step: the new beta into its place, and what its multipliers change by into `change`.
  void move(R *b, R C, R inverse, int64_t label) {
    for (int64_t k = 0; k < outputs; k++) moved[k] = b[k] + t[k] * inverse;
    if (in.polytope == TM_SIGN) {
      const R now = moved[0] <= 0 ? 0 : moved[0] < C ? moved[0] : C;
      change[0] = (now - b[0]) * (R)label, b[0] = now;
      return;
    }
    for (int64_t k = outputs; k < pitch; k++) moved[k] = kNone<R>;
    if (in.polytope == TM_BOX) {
      R offset = 0;
      for (int64_t k = 0; k < outputs; k++) offset += b[k];
      moved[label] = kNone<R>;
      onto_box(C, offset);
    } else {
      onto_simplex(C);
    }
    R sum = 0;
    for (int64_t k = 0; k < outputs; k++) {
      const R by = moved[k] - b[k];
      b[k] = moved[k], change[k] = -by, sum += by;
    }
    for (int64_t k = outputs; k < pitch; k++) change[k] = 0;
    change[label] += sum;
  }

  // The weight, or the scores of all rows, after a row's multipliers have changed.
  void follow(int64_t i) {
    constexpr int lanes = Real<R>::lanes;
    const R damp = (R)in.damp;
    for (int64_t k = 0; k < pitch; k++) change[k] *= damp;
    if (in.layout == TM_OF_GRAM) {
      for (int64_t k = 0; k < outputs; k++) {
        if (change[k] == 0) continue;
        weight[k * in.rows + i] += change[k];
        add(weight + (outputs + k) * in.rows, values + i * in.features, change[k], in.features);
      }
      return;
    }
    if (in.layout == TM_BY_CLASS) {
      for (int64_t k = 0; k < outputs; k++)
        if (change[k] != 0) add(weight + k * in.features, values + i * in.features, change[k], in.features);
      return;
    }
    if (outputs == 1) {
      entries(i, [&](int64_t j, R x) { weight[j] += change[0] * x; });
      return;
    }
    int64_t few = 0, which[kFew];
    if (pitch > 2 * kFew * lanes)
      for (int64_t k = 0; k < outputs && few <= kFew; k++)
        if (change[k] != 0 && ++few <= kFew) which[few - 1] = k;
    if (0 < few && few <= kFew) {
      for (int64_t m = 0; m < few; m++) {
        R *w = weight + which[m];
        const R by = change[which[m]];
        entries(i, [&](int64_t j, R x) { w[j * pitch] += by * x; });
      }
    } else {
      entries(i, [&](int64_t j, R x) {
        R *w = weight + j * pitch;
        for (int64_t k = 0; k < pitch; k += lanes) store(w + k, load(w + k) + load(change + k) * x);
      });
    }
  }

  static void add(R *to, const R *from, R times, int64_t n) {
    constexpr int lanes = Real<R>::lanes;
    typedef typename Real<R>::U U;
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) *(U *)(to + j) = *(const U *)(to + j) + *(const U *)(from + j) * times;
    for (; j < n; j++) to[j] += from[j] * times;
  }

  void fetch_ahead(int64_t i) const {
    __builtin_prefetch(beta + i * outputs);
    if (in.layout == TM_OF_GRAM) return;
    constexpr int64_t most = 4096, line = 64 / sizeof(R);
    const int64_t begin = in.starts ? in.starts[i] : i * in.features;
    int64_t count = in.starts ? in.starts[i + 1] - begin : in.features;
    count = count < most ? count : most;
    for (int64_t e = 0; e < count; e += line) __builtin_prefetch(values + begin + e);
    if (in.starts)
      for (int64_t e = 0; e < count; e += 16) __builtin_prefetch(in.columns + begin + e);
  }

  void run() {
    double total = 0;
    for (int64_t m = 0; m < in.count; m++) {
      const int64_t i = in.order[m], label = in.labels[i];
      if (m + 1 < in.count) fetch_ahead(in.order[m + 1]);
      const R C = upper[i];
      R *b = beta + i * outputs;
      scores(i);
      margins(i, label);
      const R gap = row_gap(b, C, label);
      total += gap;
      in.moved[m] = gap > (R)in.skip * C;
      if (!in.moved[m]) continue;
      move(b, C, 1 / squares[i], label);
      follow(i);
    }
    *in.gap = total;
  }
};

template <class R> int64_t ascend(const TmAscent &in) {
  FlushDenormals flush;
  Loop<R>(in).run();
  return 0;
}

template <class R>
int64_t compress(const R *values, int64_t rows, int64_t features, int64_t *starts, int32_t *columns, R *entries) {
  int64_t e = 0;
  for (int64_t i = 0; i < rows; i++) {
    starts[i] = e;
    for (int64_t j = 0; j < features; j++)
      if (values[i * features + j] != 0) columns[e] = (int32_t)j, entries[e++] = values[i * features + j];
  }
  return starts[rows] = e;
}

}  // namespace

TM_EXPORT int64_t tm_ascent_padded_f32(int64_t outputs) { return padded<float>(outputs); }
TM_EXPORT int64_t tm_ascent_padded_f64(int64_t outputs) { return padded<double>(outputs); }
TM_EXPORT int64_t tm_ascent_work(int64_t outputs) { return 3 * (padded<double>(outputs) + 16) * 8 + 64; }
TM_EXPORT int64_t tm_ascent_f32(const TmAscent *in) { return ascend<float>(*in); }
TM_EXPORT int64_t tm_ascent_f64(const TmAscent *in) { return ascend<double>(*in); }
// (N, D) rows as sparse ones; room for as many entries as are not 0. Returns how many.
TM_EXPORT int64_t tm_compress_f32(const float *values, int64_t rows, int64_t features, int64_t *starts,
                                  int32_t *columns, float *entries) {
  return compress(values, rows, features, starts, columns, entries);
}
TM_EXPORT int64_t tm_compress_f64(const double *values, int64_t rows, int64_t features, int64_t *starts,
                                  int32_t *columns, double *entries) {
  return compress(values, rows, features, starts, columns, entries);
}
