// The best cut of each feature, for rows that carry numbers in channels: sums over the codes in one pass over the sorted
// rows, then from both ends, so that nothing is subtracted and a sum over nothing is exactly zero.
#include "split.h"

namespace {

template <int W> struct Lanes {
  typedef double V __attribute__((vector_size(W * 8), aligned(8), may_alias));
  typedef float F __attribute__((vector_size(W * 4), aligned(4), may_alias));
};

constexpr int LOW = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 1;  // the half of a key with the row

struct Work {
  Key *keys, *other;
  double *run;      // (2, row): the sums over rows whose numbers belong to the same columns
  double *cells;    // (cells, width): the sums over the rows of each code
  double *parted;   // (cells, 2, 8): the impurity of both sides, missing rows on the first or on the second, lane by lane
  double *values;   // (cells, 2)
  int32_t *code;    // (cells)
  float *near;      // (width / L, n, L): the channels, parts side by side
  float *histogram; // (TOGETHER, codes, L)
  char *limit;
};

Work work(int64_t n, int64_t row, int64_t width, char *memory) {
  Work w;
  Arena arena{memory};
  w.keys = arena.take<Key>(n);
  w.other = arena.take<Key>(n);
  w.run = arena.take<double>(2 * row);
  w.cells = arena.take<double>((n + 4) * width);
  w.parted = arena.take<double>(16 * (n + 1));
  w.values = arena.take<double>(2 * (n + 1));
  w.code = arena.take<int32_t>(n + 1);
  w.near = arena.take<float>(n * width);
  w.histogram = arena.take<float>(8 * n + 64);
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

// Some columns of sums: of all numbers, or of the positive and the negative ones. Without a factor, -1/2 or 2, G of them.
template <int W, bool REAL> struct Sums {
  typedef typename Lanes<W>::V V;
  V p{}, n{};
  INLINE Sums() {}
  INLINE Sums(const double *at, int64_t apart) : p(*(const V *)at) {
    if constexpr (REAL) n = *(const V *)(at + apart);
  }
  INLINE Sums operator+(const Sums &more) const {
    Sums made;
    made.p = p + more.p;
    if constexpr (REAL) made.n = n + more.n;
    return made;
  }
  INLINE V impurity() const {
    if constexpr (REAL) return roots_of(p * n);
    return p < 0 ? -p : p;
  }
};

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
  if (!c.rows) {
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

// The gain of a cut after each cell, with missing rows on the first side and on the second: into values; the largest.
template <int W, bool REAL>
APART double judge(const TmDense &c, Work &w, const double *from, int64_t cells, const double *missing) {
  typedef typename Lanes<W>::V V;
  const int64_t apart = c.width / 2, columns = REAL ? apart : c.width;
  V whole{};
  for (int64_t j = 0; j < columns; j += W) {
    Sums<W, REAL> sum, absent;
    if (missing) absent = Sums<W, REAL>(missing + j, apart);
    V *parted = (V *)w.parted;
    for (int64_t b = cells - 1; b >= 0; b--) {
      V no = sum.impurity();
      parted[2 * b] = j ? parted[2 * b] + no : no;
      if (missing) {
        V with = (sum + absent).impurity();
        parted[2 * b + 1] = j ? parted[2 * b + 1] + with : with;
      }
      sum = sum + Sums<W, REAL>(from + b * c.width + j, apart);
    }
    whole += (sum + absent).impurity();
    sum = {};
    for (int64_t b = 0; b < cells; b++) {
      sum = sum + Sums<W, REAL>(from + b * c.width + j, apart);
      parted[2 * b] += (sum + absent).impurity();
      if (missing) parted[2 * b + 1] += sum.impurity();
    }
  }
  const double factor = REAL ? 2 : -0.5;
  const V *parted = (const V *)w.parted;
  double best = NONE;
  for (int64_t b = 0; b < cells; b++) {
    double yes = factor * across<W>(whole - parted[2 * b]), no = NONE;
    if (missing) no = factor * across<W>(whole - parted[2 * b + 1]);
    if (b == cells - 1) yes = NONE;  // nothing is left for the second side
    w.values[2 * b] = yes;
    w.values[2 * b + 1] = no;
    best = yes > best ? yes : best;
    best = no > best ? no : best;
  }
  return best;
}
template <int W> double judge(const TmDense &c, Work &w, const double *from, int64_t cells, const double *missing) {
  return c.criterion ? judge<W, true>(c, w, from, cells, missing) : judge<W, false>(c, w, from, cells, missing);
}

// The best cut of a feature, without the sums.
template <int W> APART void feature(const TmDense &c, int64_t d, Work &w) {
  int64_t cells = fill<W>(c, d, w);
  bool some = w.code[cells - 1] == c.counts[d];
  const double *missing = some ? w.cells + (cells - 1) * c.width : nullptr;
  if (some) cells--;
  c.gain[d] = NONE;
  c.below[d] = c.above[d] = 0;
  c.side[d] = 1;
  if (cells + some < 2) return;
  double best = judge<W>(c, w, w.cells, cells, missing);
  int64_t at = 0;
  while (at < 2 * cells - 1 && !(w.values[at] >= best - TIE)) at++;
  c.gain[d] = best;
  c.below[d] = w.code[at / 2];
  c.above[d] = at / 2 == cells - 1 ? c.counts[d] : w.code[at / 2 + 1];
  c.side[d] = at % 2 == 0;
}

// The sums of both sides of the best cut of a feature.
template <int W> APART void sides(const TmDense &c, int64_t d, Work &w) {
  double *yes = c.sums, *no = yes + c.width;
  clear(yes, 2 * c.width);
  for (int64_t b = 0, cells = fill<W>(c, d, w); b < cells; b++) {
    bool first = w.code[b] == c.counts[d] ? c.side[d] : w.code[b] <= c.below[d];
    add<W>(first ? yes : no, w.cells + b * c.width, c.width);
  }
}

// Most features are seen not to be the best by sums in few digits, which need no order: one pass over the rows adds them
// to the cells of TOGETHER features. Where codes are many, that is no faster, and a feature is left to what is exact.
constexpr int64_t TOGETHER = 4, FEWER = 8;

// The numbers of the rows in few digits, columns in blocks of L; what all of them come to.
template <int W, int L> double narrow(const TmDense &c, Work &w) {
  typedef typename Lanes<W>::V V;
  typedef typename Lanes<W>::F F;
  V mass{};
  for (int64_t j = 0; j < c.row; j += W) {
    const int64_t other = c.width / 2 + j;
    float *to = w.near + (j & -L) * c.n + (j & (L - 1)), *apart = w.near + (other & -L) * c.n + (other & (L - 1));
    for (int64_t i = 0; i < c.n; i++) {
      V v = *(const V *)(c.channels + (c.rows ? c.rows[i] : i) * c.row + j), size = v < 0 ? -v : v;
      mass += size;
      *(F *)(to + i * L) = __builtin_convertvector(c.criterion ? 0.5 * (size + v) : v, F);
      if (c.criterion) *(F *)(apart + i * L) = __builtin_convertvector(0.5 * (size - v), F);
    }
  }
  return across<W>(mass);
}

// About the sums of each code of the features from d on, in the order of the codes, the missing last.
template <int W, int L> void histograms(const TmDense &c, int64_t d, int64_t cells, Work &w) {
  typedef typename Lanes<L>::V V;
  typedef typename Lanes<L>::F F;
  auto codes = [&](int64_t g) { return c.short_codes + (d + g < c.features ? d + g : d) * c.num_rows; };
  const uint16_t *codes0 = codes(0), *codes1 = codes(1), *codes2 = codes(2), *codes3 = codes(3);
  const int32_t *rows = c.rows;
  F *sums0 = (F *)w.histogram, *sums1 = sums0 + cells, *sums2 = sums1 + cells, *sums3 = sums2 + cells;
  const int64_t n = c.n;
  auto add = [=](F v, int64_t row) __attribute__((always_inline)) {
    sums0[codes0[row]] += v;
    sums1[codes1[row]] += v;
    sums2[codes2[row]] += v;
    sums3[codes3[row]] += v;
  };
  for (int64_t j = 0; j < c.width; j += L) {
    memset(w.histogram, 0, TOGETHER * cells * sizeof(F));
    const F *near = (const F *)(w.near + j * n);
    if (rows)
      for (int64_t i = 0; i < n; i++) add(near[i], rows[i]);
    else
      for (int64_t i = 0; i < n; i++) add(near[i], i);
    for (int64_t b = 0; b < TOGETHER * cells; b++)
      *(V *)(w.cells + b * c.width + j) = __builtin_convertvector(((const F *)w.histogram)[b], V);
  }
}

// About the gain of each feature, infinite where that is not known; how far at most the largest of them is off.
template <int W, int L> double screen(const TmDense &c, Work &w) {
  FlushDenormals flush;
  int64_t chain = 0;  // additions in a row
  for (int64_t d = 0; d < c.features; d++) c.gain[d] = -NONE;
  double mass = narrow<W, L>(c, w);
  for (int64_t first = 0; first < c.features; first += TOGETHER) {
    int64_t last = first + TOGETHER < c.features ? first + TOGETHER : c.features, most = 0;
    for (int64_t d = first; d < last; d++) most = c.counts[d] > most ? c.counts[d] : most;
    if (most * FEWER > c.n) continue;
    histograms<W, L>(c, first, most + 1, w);
    for (int64_t d = first; d < last; d++) {
      const double *cells = w.cells + (d - first) * (most + 1) * c.width;
      const int32_t *starts = c.starts + d * c.stride, count = c.counts[d];
      for (int32_t b = 0; b <= count; b++) chain = starts[b + 1] - starts[b] > chain ? starts[b + 1] - starts[b] : chain;
      c.gain[d] = judge<W>(c, w, cells, count, starts[count] < starts[count + 1] ? cells + count * c.width : nullptr);
    }
  }
  // half a unit in the last place for each number and each addition, of the sums of all, of one side and of the other
  return mass * 2 * ((chain < c.n ? chain : c.n) + 2) * 0x1p-24 + TIE;
}

// The lowest feature whose cut is one of the best; -1 where there is none.
template <int W> int64_t best(const TmDense &c) {
  Work w = work(c.num_rows, c.row, c.width, aligned(c.work));
  double least = NONE, most = NONE;
  if constexpr (W == 8)
    if (c.short_codes) {
      double off = c.width % 16 ? screen<W, 8>(c, w) : screen<W, 16>(c, w);
      for (int64_t d = 0; d < c.features; d++)
        if (c.gain[d] < -NONE) least = c.gain[d] - 2 * off > least ? c.gain[d] - 2 * off : least;
    }
  for (int64_t d = 0; d < c.features; d++) {
    if (least != NONE && !(c.gain[d] >= least)) {
      c.gain[d] = NONE;
      continue;
    }
    feature<W>(c, d, w);
    most = c.gain[d] > most ? c.gain[d] : most;
  }
  for (int64_t d = 0; d < c.features; d++)
    if (c.gain[d] != NONE && c.gain[d] >= most - TIE) {
      sides<W>(c, d, w);
      return d;
    }
  return -1;
}

}  // namespace

TM_EXPORT int64_t tm_dense_work(int64_t n, int64_t row, int64_t width) {
  return (int64_t)work(n, row, width, nullptr).limit + 64;
}

TM_EXPORT int64_t tm_dense_best(const TmDense *c) {
  int64_t block = c->row | c->width / (1 + c->criterion);  // what divides both divides this, of powers of two
  if (block % 8 == 0) return best<8>(*c);
  return best<1>(*c);
}
