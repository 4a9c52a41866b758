// The levels of a tree: for each open node the cut that lowers the impurity most, over all thresholds of the features that
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
  double *cell_weight;       // (n)
  int32_t *cell_label;
  double *suffix, *heavy;    // (n + 1, 2): impurity and weight of the rows after a code, without and with the missing ones
  double *values;            // (n, 2)
  int32_t *labels, *code, *order;
  uint64_t *draws;
  double *best;              // (D), and what is best of each feature
  int32_t *below, *above;
  uint8_t *side;
  int64_t *starts;           // (n + 1): of the next level
  const int32_t *at;         // the rows of the node at hand, and how many these are
  int64_t n;
  char *limit;
};

Work work(int64_t n, int64_t features, int64_t classes, char *memory) {
  Work w;
  Arena arena{memory};
  w.keys = arena.take<Key>(n);
  w.other = arena.take<Key>(n);
  w.weights = arena.take<double>(n);
  w.cell_weight = arena.take<double>(n);
  w.cell_label = arena.take<int32_t>(n);
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
  w.starts = arena.take<int64_t>(n + 1);
  w.limit = arena.at;
  return w;
}

template <class C> C empty(const TmGrow &c, Work &w) {
  memset(w.sums, 0, c.classes * sizeof(double));
  return C{w.sums};
}

// What is added in the order of the codes: the rows of the node, or for each code the rows of a class together.
struct Items {
  const Key *keys;
  int64_t n;
  const int32_t *labels;
  const double *weights;
  template <class C> INLINE void add(C &all, int64_t i) const { all.add(labels[row_of(keys[i])], weights[row_of(keys[i])]); }
};

// The node's rows by their codes, which are at most `high`; no items where they are all the same.
APART Items items(const TmGrow &c, const int32_t *codes, Work &w) {
  int32_t low = INT32_MAX, high = -1;
  for (int64_t i = 0; i < w.n; i++) {
    int32_t code = codes[w.at[i]];
    w.keys[i] = key(code, i);
    low = code < low ? code : low;
    high = code > high ? code : high;
  }
  if (low == high) return Items{w.keys, 0, w.labels, w.weights};
  int64_t cells = ((int64_t)high - low + 1) * c.classes;
  if (2 * cells > w.n) return Items{sort_keys(w.keys, w.other, w.n, (int64_t)high + 1), w.n, w.labels, w.weights};
  double *sums = w.values;
  memset(sums, 0, cells * sizeof(double));
  for (int64_t i = 0; i < w.n; i++) sums[(int64_t)(code_of(w.keys[i]) - low) * c.classes + w.labels[i]] += w.weights[i];
  int64_t n = 0;
  for (int32_t code = low; code <= high; code++)
    for (int32_t k = 0; k < c.classes; k++) {
      double sum = *sums++;
      if (sum == 0) continue;
      w.other[n] = key(code, n);
      w.cell_label[n] = k;
      w.cell_weight[n++] = sum;
    }
  return Items{w.other, n, w.cell_label, w.cell_weight};
}

// The best cut of one feature at a node, into w.best[d].
template <class C> APART void feature(const TmGrow &c, int64_t node, int64_t d, double whole, double least, Work &w) {
  w.best[d] = NONE;
  const Items all_rows = items(c, c.codes + d * c.num_rows, w);
  const Key *keys = all_rows.keys;
  int64_t n = all_rows.n;
  if (n == 0) return;
  int64_t known = n;
  while (code_of(keys[known - 1]) == c.counts[d]) known--;
  int sides = known < n ? 2 : 1;
  double total = 0;
  for (int64_t k = 0; k < c.classes; k++) total += c.sums[node * c.classes + k];
  // from the right: after each code, without and with the missing rows
  for (int s = 0; s < sides; s++) {
    C all = empty<C>(c, w);
    if (s)
      for (int64_t i = known; i < n; i++) all_rows.add(all, i);
    for (int64_t i = known - 1; i >= 0; i--) {
      if (i == known - 1 || code_of(keys[i]) != code_of(keys[i + 1])) {
        w.suffix[2 * i + s] = all.n > 0 ? all.value(c.classes) : 0;
        w.heavy[2 * i + s] = all.n;
      }
      all_rows.add(all, i);
    }
  }
  // from the left
  double best = NONE;
  for (int s = 0; s < sides; s++) {
    C all = empty<C>(c, w);
    if (s == 0)
      for (int64_t i = known; i < n; i++) all_rows.add(all, i);
    for (int64_t i = 0; i < known; i++) {
      all_rows.add(all, i);
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
          for (int64_t j = 0; j <= i; j++) yes += all_rows.weights[row_of(keys[j])];
        w.side[d] = sides == 2 ? s == 0 : 2 * yes >= total * (1 - TIE);
        return;
      }
}

// The order in which features are tried: all, or as they are drawn.
APART void order(const TmGrow &c, int64_t node, Work &w) {
  for (int64_t d = 0; d < c.features; d++) {
    w.order[d] = (int32_t)d;
    if (c.tries < c.features) w.draws[d] = mixed(c.keys[node] + (uint64_t)d * 0xD1B54A32D192ED03u);
  }
}

// Brings the feature with the smallest draw of those from `at` on to this place.
APART void next(Work &w, int64_t at, int64_t features) {
  int64_t least = at;
  for (int64_t i = at + 1; i < features; i++)
    if (w.draws[w.order[i]] < w.draws[w.order[least]]) least = i;
  int32_t swap = w.order[at];
  w.order[at] = w.order[least];
  w.order[least] = swap;
}

template <class C> double value_of(const TmGrow &c, const double *sums, Work &w) {
  C all = empty<C>(c, w);
  for (int64_t k = 0; k < c.classes; k++)
    if (sums[k] > 0) all.add((int32_t)k, sums[k]);
  return all.value(c.classes);
}

double value_of(const TmGrow &c, const double *sums, Work &w) {
  if (c.impurity == 0) return value_of<Gini>(c, sums, w);
  if (c.impurity == 1) return value_of<Entropy>(c, sums, w);
  if (c.impurity == 2) return value_of<Misclassification>(c, sums, w);
  return value_of<KearnsMansour>(c, sums, w);
}

void feature(const TmGrow &c, int64_t node, int64_t d, double whole, double least, Work &w) {
  if (c.impurity == 0) feature<Gini>(c, node, d, whole, least, w);
  else if (c.impurity == 1) feature<Entropy>(c, node, d, whole, least, w);
  else if (c.impurity == 2) feature<Misclassification>(c, node, d, whole, least, w);
  else feature<KearnsMansour>(c, node, d, whole, least, w);
}

APART void search(const TmGrow &c, int64_t node, Work &w) {
  int64_t n = w.n, present = 0;
  const int32_t *rows = w.at;
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
  double lower = c.total > 0 ? c.min_decrease * c.total / total : c.min_decrease;
  double whole = value_of(c, sums, w), best = NONE, least = c.min_leaf > 1 ? c.min_leaf * (1 - TIE) : 0;
  order(c, node, w);
  for (int64_t d = 0; d < c.features; d++) w.best[d] = NONE;
  for (int64_t at = 0; at < c.features && (at < c.tries || best == NONE); at++) {
    if (c.tries < c.features) next(w, at, c.features);
    int64_t d = w.order[at];
    feature(c, node, d, whole, least, w);
    if (!(w.best[d] >= lower - TIE)) w.best[d] = NONE;
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

// The rows of both children, with the weights of their classes and their keys; how many of them go to yes.
APART int64_t part(const TmGrow &c, int64_t node, int32_t *children, int64_t child, Work &w) {
  int64_t yes = 0, no = 0, d = c.feature[node];
  const int32_t *codes = c.codes + d * c.num_rows;
  double *sums = c.sums + child * c.classes;
  memset(sums, 0, 2 * c.classes * sizeof(double));
  for (int64_t i = 0; i < w.n; i++) {
    int32_t row = w.at[i], code = codes[row];
    bool first = code == c.counts[d] ? c.side[node] : code <= c.below[node];
    sums[(first ? 0 : c.classes) + c.labels[row]] += c.weights[row];
    if (first) children[yes++] = row;
    else w.labels[no++] = row;
  }
  for (int64_t i = 0; i < no; i++) children[yes + i] = w.labels[i];
  c.keys[child] = mixed(c.keys[node]);
  c.keys[child + 1] = mixed(~c.keys[node]);
  return yes;
}

void grow(const TmGrow &c) {
  int64_t first = c.state[0], nodes = c.state[1], n = c.state[3], levels = 0, read = 0;
  Work w = work(n, c.features, c.classes, aligned(c.work));
  int32_t *rows = c.rows, *other = c.other;
  while (first < nodes && levels < c.levels && read < c.budget) {
    int64_t last = nodes, written = 0, open = 0;
    read += n * c.tries;
    for (int64_t node = first; node < last; node++) {
      w.at = rows + c.starts[node - first];
      w.n = c.starts[node - first + 1] - c.starts[node - first];
      search(c, node, w);
      if (c.feature[node] < 0) continue;
      int64_t yes = part(c, node, other + written, nodes, w);
      w.starts[open++] = written;
      w.starts[open++] = written + yes;
      written += w.n;
      nodes += 2;
    }
    w.starts[open] = written;
    for (int64_t i = 0; i <= open; i++) c.starts[i] = w.starts[i];
    int32_t *swap = rows;
    rows = other;
    other = swap;
    n = written;
    first = last;
    levels++;
  }
  c.state[0] = first;
  c.state[1] = nodes;
  c.state[2] = levels;
  c.state[3] = n;
}

}  // namespace

TM_EXPORT int64_t tm_grow_work(int64_t n, int64_t features, int64_t classes) {
  return (int64_t)work(n, features, classes, nullptr).limit + 64;
}

TM_EXPORT int64_t tm_grow(const TmGrow *c) {
  grow(*c);
  return 0;
}
