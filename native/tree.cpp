// One level of a tree: for each open node the cut that lowers the impurity most, over all thresholds of the features that
// are tried. Rows are sorted by code and added one by one, from the right and then from the left, so that nothing is
// subtracted; a criterion keeps what makes the impurity of the rows so far a matter of one operation.
#include "split.h"

namespace {

// n F(shares) of the rows added so far, K the number of classes.
struct Gini {
  double *sums, n = 0, squares = 0;
  void add(int32_t k, double w) {
    squares += w * (2 * sums[k] + w);
    sums[k] += w;
    n += w;
  }
  double value(int64_t) const { return n - squares / n; }
};

struct Entropy {
  double *sums, n = 0, total = 0;
  static double part(double s) { return s > 0 ? s * __builtin_log2(s) : 0; }
  void add(int32_t k, double w) {
    total += part(sums[k] + w) - part(sums[k]);
    sums[k] += w;
    n += w;
  }
  double value(int64_t) const { return part(n) - total; }
};

struct Misclassification {
  double *sums, n = 0, most = 0;
  void add(int32_t k, double w) {
    sums[k] += w;
    n += w;
    most = sums[k] > most ? sums[k] : most;
  }
  double value(int64_t) const { return n - most; }
};

struct KearnsMansour {
  double *sums, n = 0;
  void add(int32_t k, double w) {
    sums[k] += w;
    n += w;
  }
  double value(int64_t classes) const {
    if (classes == 2) return 2 * __builtin_sqrt(sums[0] * sums[1]);
    double total = 0;
    for (int64_t k = 0; k < classes; k++) {
      double rest = n - sums[k];
      total += rest > 0 ? __builtin_sqrt(sums[k] * rest) : 0;
    }
    return total;
  }
};

struct Work {
  Key *keys, *other;
  double *weights, *sums;    // of the node's rows; (K)
  double *suffix, *heavy;    // (n + 1, 2): impurity and weight of the rows after a code, without and with the missing ones
  double *values;            // (n, 2)
  int32_t *labels, *code, *order;
  uint64_t *draws;
  double *best;              // (D), and what is best of each feature
  int32_t *below, *above;
  uint8_t *side;
  char *limit;
};

Work work(int64_t n, int64_t features, int64_t classes, char *memory) {
  Work w;
  Arena arena{memory};
  w.keys = arena.take<Key>(n);
  w.other = arena.take<Key>(n);
  w.weights = arena.take<double>(n);
  w.sums = arena.take<double>(classes);
  w.suffix = arena.take<double>(2 * (n + 1));
  w.heavy = arena.take<double>(2 * (n + 1));
  w.values = arena.take<double>(2 * (n + 1));
  w.labels = arena.take<int32_t>(n);
  w.code = arena.take<int32_t>(n + 1);
  w.order = arena.take<int32_t>(features);
  w.draws = arena.take<uint64_t>(features);
  w.best = arena.take<double>(features);
  w.below = arena.take<int32_t>(features);
  w.above = arena.take<int32_t>(features);
  w.side = arena.take<uint8_t>(features);
  w.limit = arena.at;
  return w;
}

template <class C> C empty(const TmLevel &c, Work &w) {
  for (int64_t k = 0; k < c.classes; k++) w.sums[k] = 0;
  return C{w.sums};
}

template <class C> INLINE void add(C &all, const Work &w, Key k) { all.add(w.labels[row_of(k)], w.weights[row_of(k)]); }

// The best cut of one feature at a node, into w.best[d].
template <class C> void feature(const TmLevel &c, int64_t node, int64_t d, double whole, double least, Work &w) {
  int64_t n = c.starts[node + 1] - c.starts[node];
  const int32_t *rows = c.rows + c.starts[node], *codes = c.codes + d * c.num_rows;
  int32_t low = INT32_MAX, high = -1;
  for (int64_t i = 0; i < n; i++) {
    int32_t code = codes[rows[i]];
    w.keys[i] = key(code, i);
    low = code < low ? code : low;
    high = code > high ? code : high;
  }
  w.best[d] = NONE;
  if (low == high) return;
  const Key *keys = sort_keys(w.keys, w.other, n, (int64_t)high + 1);
  int64_t known = n;
  while (code_of(keys[known - 1]) == c.counts[d]) known--;
  int sides = known < n ? 2 : 1;
  double total = 0;
  for (int64_t k = 0; k < c.classes; k++) total += c.sums[node * c.classes + k];
  // from the right: after each code, without and with the missing rows
  for (int s = 0; s < sides; s++) {
    C all = empty<C>(c, w);
    if (s)
      for (int64_t i = known; i < n; i++) add(all, w, keys[i]);
    for (int64_t i = known - 1; i >= 0; i--) {
      if (i == known - 1 || code_of(keys[i]) != code_of(keys[i + 1])) {
        w.suffix[2 * i + s] = all.n > 0 ? all.value(c.classes) : 0;
        w.heavy[2 * i + s] = all.n;
      }
      add(all, w, keys[i]);
    }
  }
  // from the left
  double best = NONE;
  for (int s = 0; s < sides; s++) {
    C all = empty<C>(c, w);
    if (s == 0)
      for (int64_t i = known; i < n; i++) add(all, w, keys[i]);
    for (int64_t i = 0; i < known; i++) {
      add(all, w, keys[i]);
      bool last = i == known - 1;
      double value = NONE;
      if (last ? s == 1 : code_of(keys[i]) != code_of(keys[i + 1]))
        if (all.n >= least && w.heavy[2 * i + s] >= least)
          value = (whole - all.value(c.classes) - w.suffix[2 * i + s]) / total;
      w.values[2 * i + s] = value;
      best = value > best ? value : best;
    }
  }
  if (best == NONE) return;
  for (int64_t i = 0; i < known; i++)
    for (int s = 0; s < sides; s++)
      if (w.values[2 * i + s] >= best - TIE) {
        bool last = i == known - 1;
        w.best[d] = best;
        w.below[d] = code_of(keys[i]);
        w.above[d] = last ? c.counts[d] : code_of(keys[i + 1]);
        double yes = 0;
        if (sides == 1)
          for (int64_t j = 0; j <= i; j++) yes += w.weights[row_of(keys[j])];
        w.side[d] = sides == 2 ? s == 0 : 2 * yes >= total * (1 - TIE);
        return;
      }
}

// The order in which features are tried: all, or as they are drawn.
void order(const TmLevel &c, int64_t node, Work &w) {
  for (int64_t d = 0; d < c.features; d++) {
    w.order[d] = (int32_t)d;
    if (c.tries < c.features) w.draws[d] = mixed(c.keys[node] + (uint64_t)d * 0xD1B54A32D192ED03u);
  }
}

// Brings the feature with the smallest draw of those from `at` on to this place.
INLINE void next(Work &w, int64_t at, int64_t features) {
  int64_t least = at;
  for (int64_t i = at + 1; i < features; i++)
    if (w.draws[w.order[i]] < w.draws[w.order[least]]) least = i;
  int32_t swap = w.order[at];
  w.order[at] = w.order[least];
  w.order[least] = swap;
}

template <class C> void search(const TmLevel &c, int64_t node, Work &w) {
  int64_t n = c.starts[node + 1] - c.starts[node], present = 0;
  const int32_t *rows = c.rows + c.starts[node];
  const double *sums = c.sums + node * c.classes;
  c.feature[node] = -1;
  double total = 0;
  for (int64_t k = 0; k < c.classes; k++) {
    present += sums[k] > 0;
    total += sums[k];
  }
  if (present < 2 || n < 2) return;
  for (int64_t i = 0; i < n; i++) {
    w.labels[i] = c.labels[rows[i]];
    w.weights[i] = c.weights[rows[i]];
  }
  C all = empty<C>(c, w);
  for (int64_t k = 0; k < c.classes; k++)
    if (sums[k] > 0) all.add((int32_t)k, sums[k]);
  double whole = all.value(c.classes), best = NONE, least = c.min_leaf > 1 ? c.min_leaf * (1 - TIE) : 0;
  order(c, node, w);
  for (int64_t d = 0; d < c.features; d++) w.best[d] = NONE;
  for (int64_t at = 0; at < c.features && (at < c.tries || best == NONE); at++) {
    if (c.tries < c.features) next(w, at, c.features);
    int64_t d = w.order[at];
    feature<C>(c, node, d, whole, least, w);
    if (!(w.best[d] >= c.least[node] - TIE)) w.best[d] = NONE;
    best = w.best[d] > best ? w.best[d] : best;
  }
  if (best == NONE) return;
  for (int64_t d = 0; d < c.features; d++)
    if (w.best[d] >= best - TIE) {
      c.feature[node] = (int32_t)d;
      c.below[node] = w.below[d];
      c.above[node] = w.above[d];
      c.side[node] = w.side[d];
      c.decrease[node] = best;
      return;
    }
}

// The rows of both children; how many there are.
int64_t part(const TmLevel &c, int64_t node, int32_t *children, Work &w) {
  int64_t n = c.starts[node + 1] - c.starts[node], yes = 0, no = 0, d = c.feature[node];
  const int32_t *rows = c.rows + c.starts[node], *codes = c.codes + d * c.num_rows;
  for (int64_t i = 0; i < n; i++) {
    int32_t code = codes[rows[i]];
    bool first = code == c.counts[d] ? c.side[node] : code <= c.below[node];
    if (first) children[yes++] = rows[i];
    else w.labels[no++] = rows[i];
  }
  for (int64_t i = 0; i < no; i++) children[yes + i] = w.labels[i];
  c.yes[node] = yes;
  return n;
}

template <class C> int64_t level(const TmLevel &c) {
  int64_t largest = 0, written = 0;
  for (int64_t node = 0; node < c.nodes; node++) {
    int64_t n = c.starts[node + 1] - c.starts[node];
    largest = n > largest ? n : largest;
  }
  Work w = work(largest, c.features, c.classes, aligned(c.work));
  for (int64_t node = 0; node < c.nodes; node++) {
    search<C>(c, node, w);
    if (c.feature[node] >= 0) written += part(c, node, c.children + written, w);
  }
  return written;
}

}  // namespace

TM_EXPORT int64_t tm_level_work(int64_t n, int64_t features, int64_t classes) {
  return (int64_t)work(n, features, classes, nullptr).limit + 64;
}

TM_EXPORT int64_t tm_level(const TmLevel *c) {
  if (c->impurity == 0) return level<Gini>(*c);
  if (c->impurity == 1) return level<Entropy>(*c);
  if (c->impurity == 2) return level<Misclassification>(*c);
  return level<KearnsMansour>(*c);
}
