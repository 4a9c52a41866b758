// The best cut of each feature, for rows that carry numbers in channels: sums over the codes in one pass over the sorted
// rows, then from both ends, so that nothing is subtracted and a sum over nothing is exactly zero.
#include "split.h"

namespace {

template <int W> struct Lanes {
  typedef double V __attribute__((vector_size(W * 8), aligned(8), may_alias));
};

constexpr int LOW = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 1;  // the half of a key with the row

struct Work {
  Key *keys, *other;
  double *run;      // (2, row): the sums over rows whose numbers belong to the same columns
  double *cells;    // (cells, width): the sums over the rows of each code
  double *total;    // (width)
  double *suffix;   // (cells + 1, 2): the impurity of the rows after a cell, without and with the missing ones
  double *values;   // (cells, 2)
  int32_t *code;    // (cells)
  char *limit;
};

Work work(int64_t n, int64_t row, int64_t width, char *memory) {
  Work w;
  Arena arena{memory};
  w.keys = arena.take<Key>(n);
  w.other = arena.take<Key>(n);
  w.run = arena.take<double>(2 * row);
  w.cells = arena.take<double>((n + 1) * width);
  w.total = arena.take<double>(width);
  w.suffix = arena.take<double>(2 * (n + 1));
  w.values = arena.take<double>(2 * (n + 1));
  w.code = arena.take<int32_t>(n + 1);
  w.limit = arena.at;
  return w;
}

INLINE double roots(double v) { return __builtin_sqrt(v); }
#if defined(__AVX2__)
INLINE __m256d roots(__m256d v) { return _mm256_sqrt_pd(v); }
#endif
#if TM_BYTES == 64
INLINE __m512d roots(__m512d v) { return _mm512_sqrt_pd(v); }
#endif

template <class Part, class V> INLINE V roots_by(V v) {
  Part part[sizeof v / sizeof(Part)];
  memcpy(part, &v, sizeof v);
  for (Part &one : part) one = roots(one);
  memcpy(&v, part, sizeof v);
  return v;
}

template <class V> INLINE V roots_of(V v) {
#if TM_BYTES == 64
  if constexpr (sizeof v >= 64) return roots_by<__m512d>(v);
#endif
#if defined(__AVX2__)
  if constexpr (sizeof v >= 32) return roots_by<__m256d>(v);
#endif
  return roots_by<double>(v);
}

// The sum of the lanes, halves first.
template <int W> INLINE double across(typename Lanes<W>::V v) {
  if constexpr (W == 1) {
    return v[0];
  } else {
    typename Lanes<W / 2>::V half[2];
    memcpy(half, &v, sizeof v);
    return across<W / 2>(half[0] + half[1]);
  }
}

// Of the sums S plus, where they count, those of the missing rows.
template <int W> INLINE double impurity(const TmDense &c, const double *sums, const double *missing) {
  typedef typename Lanes<W>::V V;
  V all{};
  if (c.criterion == 0) {
    for (int64_t j = 0; j < c.width; j += W) {
      V s = *(const V *)(sums + j);
      if (missing) s += *(const V *)(missing + j);
      all += s < 0 ? -s : s;
    }
    return -0.5 * across<W>(all);
  }
  int64_t half = c.width / 2;
  for (int64_t j = 0; j < half; j += W) {
    V p = *(const V *)(sums + j), n = *(const V *)(sums + half + j);
    if (missing) p += *(const V *)(missing + j), n += *(const V *)(missing + half + j);
    all += roots_of(p * n);
  }
  return 2 * across<W>(all);
}

template <int W> void add(double *sums, const double *more, int64_t width) {
  typedef typename Lanes<W>::V V;
  for (int64_t j = 0; j < width; j += W) *(V *)(sums + j) += *(const V *)(more + j);
}

INLINE void clear(double *sums, int64_t width) {
  memset(sums, 0, width * sizeof(double));
}

// The sums over n rows, one block of columns after the other, of all numbers or of the positive and the negative ones
// apart: in some parts, so that one addition need not wait for the last.
template <int W> void sum_rows(const TmDense &c, const int32_t *rows, int64_t step, int64_t n, double *sums, int64_t apart) {
  typedef typename Lanes<W>::V V;
  for (int64_t j = 0; j < c.row; j += W) {
    const double *channels = c.channels + j;
    V sum[4] = {};
    int64_t i = 0;
    if (c.criterion == 0) {
      for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += *(const V *)(channels + (int64_t)rows[(i + k) * step] * c.row);
      for (; i < n; i++) sum[0] += *(const V *)(channels + (int64_t)rows[i * step] * c.row);
      *(V *)(sums + j) = sum[0] + sum[1] + (sum[2] + sum[3]);
      continue;
    }
    const V zero{};
    auto both = [&](int k, int64_t row) __attribute__((always_inline)) {
      V v = *(const V *)(channels + row * c.row);
      sum[k] += v > zero ? v : zero;
      sum[k + 2] -= v < zero ? v : zero;
    };
    for (; i + 2 <= n; i += 2)
      for (int k = 0; k < 2; k++) both(k, rows[(i + k) * step]);
    for (; i < n; i++) both(0, rows[i * step]);
    *(V *)(sums + j) = sum[0] + sum[1];
    *(V *)(sums + apart + j) = sum[2] + sum[3];
  }
}

// The sums over the n rows of a code into its cell; those of one pattern are together, for the most part.
template <int W> void fill_cell(const TmDense &c, Work &w, const int32_t *rows, int64_t step, int64_t n, double *cell) {
  const int64_t parts = 1 + c.criterion, full = c.width / parts;
  if (!c.pattern) return sum_rows<W>(c, rows, step, n, cell, full);
  clear(cell, c.width);
  for (int64_t i = 0; i < n;) {
    int64_t from = i;
    int32_t pattern = c.pattern[rows[from * step]];
    while (i < n && c.pattern[rows[i * step]] == pattern) i++;
    sum_rows<W>(c, rows + from * step, step, i - from, w.run, c.row);
    const int32_t *columns = c.columns + pattern * c.narrow;
    for (int64_t part = 0; part < parts; part++)
      for (int64_t j = 0; j < c.narrow; j++) cell[part * full + columns[j]] += w.run[part * c.row + j];
  }
}

// The sums of each code into cells, in the order of the codes; how many there are.
template <int W> APART int64_t fill(const TmDense &c, int64_t d, Work &w) {
  int64_t cells = 0;
  if (c.order) {
    const int32_t *order = c.order + d * c.num_rows, *starts = c.starts + d * c.stride;
    for (int32_t code = 0; code <= c.counts[d]; code++) {
      int64_t from = starts[code], to = starts[code + 1];
      if (from == to) continue;
      w.code[cells] = code;
      fill_cell<W>(c, w, order + from, 1, to - from, w.cells + cells * c.width);
      cells++;
    }
    return cells;
  }
  const int32_t *codes = c.codes + d * c.num_rows;
  for (int64_t i = 0; i < c.n; i++) w.keys[i] = key(codes[c.rows[i]], c.rows[i]);
  const Key *keys = sort_keys(w.keys, w.other, c.n, (int64_t)c.counts[d] + 1);
  for (int64_t i = 0; i < c.n; cells++) {
    int64_t from = i;
    w.code[cells] = code_of(keys[i]);
    while (i < c.n && code_of(keys[i]) == w.code[cells]) i++;
    const int32_t *rows = (const int32_t *)(keys + from) + LOW;
    fill_cell<W>(c, w, rows, 2, i - from, w.cells + cells * c.width);
  }
  return cells;
}

template <int W> void feature(const TmDense &c, int64_t d, Work &w) {
  int64_t cells = fill<W>(c, d, w);
  bool some = w.code[cells - 1] == c.counts[d];
  const double *missing = some ? w.cells + (cells - 1) * c.width : nullptr;
  if (some) cells--;
  c.gain[d] = NONE;
  c.below[d] = c.above[d] = 0;
  c.side[d] = 1;
  if (cells + some < 2) return;
  // all that is missing, and all that comes after a cell
  clear(w.total, c.width);
  for (int64_t b = cells - 1; b >= 0; b--) {
    w.suffix[2 * b] = impurity<W>(c, w.total, nullptr);
    w.suffix[2 * b + 1] = some ? impurity<W>(c, w.total, missing) : NONE;
    add<W>(w.total, w.cells + b * c.width, c.width);
  }
  double whole = impurity<W>(c, w.total, missing), best = NONE;
  clear(w.total, c.width);
  for (int64_t b = 0; b < cells; b++) {
    add<W>(w.total, w.cells + b * c.width, c.width);
    bool last = b == cells - 1;
    double yes = last ? NONE : whole - impurity<W>(c, w.total, missing) - w.suffix[2 * b];
    double no = some ? whole - impurity<W>(c, w.total, nullptr) - w.suffix[2 * b + 1] : NONE;
    w.values[2 * b] = yes;
    w.values[2 * b + 1] = no;
    best = yes > best ? yes : best;
    best = no > best ? no : best;
  }
  int64_t at = 0;
  while (at < 2 * cells - 1 && !(w.values[at] >= best - TIE)) at++;
  c.gain[d] = best;
  c.below[d] = w.code[at / 2];
  c.above[d] = at / 2 == cells - 1 ? c.counts[d] : w.code[at / 2 + 1];
  c.side[d] = at % 2 == 0;
  double *yes = c.sums + d * 2 * c.width, *no = yes + c.width;
  clear(yes, 2 * c.width);
  for (int64_t b = 0; b < cells; b++) add<W>(b <= at / 2 ? yes : no, w.cells + b * c.width, c.width);
  if (some) add<W>(c.side[d] ? yes : no, missing, c.width);
}

// The lowest feature whose cut is one of the best; -1 where there is none.
template <int W> int64_t best(const TmDense &c) {
  Work w = work(c.n, c.row, c.width, aligned(c.work));
  double most = NONE;
  for (int64_t d = 0; d < c.features; d++) {
    feature<W>(c, d, w);
    most = c.gain[d] > most ? c.gain[d] : most;
  }
  for (int64_t d = 0; d < c.features; d++)
    if (c.gain[d] != NONE && c.gain[d] >= most - TIE) return d;
  return -1;
}

}  // namespace

TM_EXPORT int64_t tm_dense_work(int64_t n, int64_t row, int64_t width) {
  return (int64_t)work(n, row, width, nullptr).limit + 64;
}

TM_EXPORT int64_t tm_dense_best(const TmDense *c) {
  int64_t block = c->row | c->width / (1 + c->criterion);  // what divides both divides this, of powers of two
  if (block % 8 == 0) return best<8>(*c);
  if (block % 4 == 0) return best<4>(*c);
  return best<1>(*c);
}
