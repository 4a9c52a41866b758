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
  double *channels; // (n, width): the channels of the rows, zeros where padded; a row begins where a line of the cache does
  double *cells;    // (cells, width): the sums over the rows of each code
  double *total;    // (width)
  double *suffix;   // (cells + 1, 2): the impurity of the rows after a cell, without and with the missing ones
  double *values;   // (cells, 2)
  int32_t *code;    // (cells)
  char *limit;
};

Work work(int64_t n, int64_t width, char *memory) {
  Work w;
  Arena arena{memory};
  w.keys = arena.take<Key>(n);
  w.other = arena.take<Key>(n);
  w.channels = arena.take<double>(n * width);
  w.cells = arena.take<double>((n + 1) * width);
  w.total = arena.take<double>(width);
  w.suffix = arena.take<double>(2 * (n + 1));
  w.values = arena.take<double>(2 * (n + 1));
  w.code = arena.take<int32_t>(n + 1);
  w.limit = arena.at;
  return w;
}

// Of the sums S plus, where they count, those of the missing rows.
template <int W> double impurity(const TmDense &c, const double *sums, const double *missing) {
  typedef typename Lanes<W>::V V;
  V all{};
  if (c.criterion == 0) {
    for (int64_t j = 0; j < c.width; j += W) {
      V s = *(const V *)(sums + j);
      if (missing) s += *(const V *)(missing + j);
      all += s < 0 ? -s : s;
    }
  } else {
    int64_t half = c.width / 2;
    for (int64_t j = 0; j < half; j += W) {
      V p = *(const V *)(sums + j), n = *(const V *)(sums + half + j);
      if (missing) p += *(const V *)(missing + j), n += *(const V *)(missing + half + j);
      V product = p * n;
      for (int k = 0; k < W; k++) all[k] += __builtin_sqrt(product[k]);
    }
  }
  double sum = 0;
  for (int k = 0; k < W; k++) sum += all[k];
  return c.criterion == 0 ? -0.5 * sum : 2 * sum;
}

template <int W> void add(double *sums, const double *more, int64_t width) {
  typedef typename Lanes<W>::V V;
  for (int64_t j = 0; j < width; j += W) *(V *)(sums + j) += *(const V *)(more + j);
}

INLINE void clear(double *sums, int64_t width) {
  memset(sums, 0, width * sizeof(double));
}

// The sum over n rows, in four parts: one addition need not wait for the last.
template <int W> typename Lanes<W>::V sum_of(const TmDense &c, const Work &w, const int32_t *rows, int64_t step, int64_t n, int64_t j) {
  typedef typename Lanes<W>::V V;
  const double *channels = w.channels + j;
  V sum[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; k++) sum[k] += *(const V *)(channels + (int64_t)rows[(i + k) * step] * c.width);
  for (; i < n; i++) sum[0] += *(const V *)(channels + (int64_t)rows[i * step] * c.width);
  return sum[0] + sum[1] + (sum[2] + sum[3]);
}

// The sums of each code into cells, in the order of the codes; how many there are.
template <int W> APART int64_t fill(const TmDense &c, int64_t d, Work &w) {
  typedef typename Lanes<W>::V V;
  int64_t cells = 0;
  if (c.order) {
    const int32_t *order = c.order + d * c.num_rows, *starts = c.starts + d * c.stride;
    for (int32_t code = 0; code <= c.counts[d]; code++) {
      int64_t from = starts[code], to = starts[code + 1];
      if (from == to) continue;
      w.code[cells] = code;
      for (int64_t j = 0; j < c.width; j += W)
        *(V *)(w.cells + cells * c.width + j) = sum_of<W>(c, w, order + from, 1, to - from, j);
      cells++;
    }
    return cells;
  }
  const int32_t *codes = c.codes + d * c.num_rows;
  for (int64_t i = 0; i < c.n; i++) w.keys[i] = key(codes[c.rows[i]], i);
  const Key *keys = sort_keys(w.keys, w.other, c.n, (int64_t)c.counts[d] + 1);
  for (int64_t i = 0; i < c.n; cells++) {
    int64_t from = i;
    w.code[cells] = code_of(keys[i]);
    while (i < c.n && code_of(keys[i]) == w.code[cells]) i++;
    const int32_t *rows = (const int32_t *)(keys + from) + LOW;
    for (int64_t j = 0; j < c.width; j += W)
      *(V *)(w.cells + cells * c.width + j) = sum_of<W>(c, w, rows, 2, i - from, j);
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

// The channels of the rows that count into their place.
void gather(const TmDense &c, Work &w) {
  const int64_t parts = 1 + c.criterion, full = c.width / parts;
  double *made = w.channels;
  for (int64_t i = 0; i < c.n; i++) {
    const double *row = c.channels + (c.rows ? c.rows[i] : i) * parts * c.columns;
    for (int64_t part = 0; part < parts; part++, row += c.columns, made += full) {
      for (int64_t j = 0; j < c.columns; j++) made[j] = row[j];
      for (int64_t j = c.columns; j < full; j++) made[j] = 0;
    }
  }
}

template <int W> void all(const TmDense &c) {
  Work w = work(c.n, c.width, aligned(c.work));
  gather(c, w);
  for (int64_t d = 0; d < c.features; d++) feature<W>(c, d, w);
}

}  // namespace

TM_EXPORT int64_t tm_dense_work(int64_t n, int64_t width) { return (int64_t)work(n, width, nullptr).limit + 64; }

TM_EXPORT int64_t tm_dense_cuts(const TmDense *c) {
  int64_t block = c->criterion == 0 ? c->width : c->width / 2;
  if (block % 8 == 0) all<8>(*c);
  else if (block % 4 == 0) all<4>(*c);
  else all<1>(*c);
  return 0;
}
