// Slack rescaling, max_y L(y) [1 + d(y)]_+ with d(y) = s(y) - s(gold), and the gradient of such a difference.
//
// V[t][c][k], the best d of the prefixes that end in k at t and cost c units, is max_j V[t-1][c'][j] + W[j, k], which
// is a product of max and plus for each cost c', and what label k adds at t, to its score and to its cost.
#include "margin.h"
#include "products.h"

namespace {

constexpr double INF = __builtin_inf();
constexpr int LANES = Real<double>::lanes;

struct Tables {
  int64_t Kp;
  double *into, *from;  // (Kp, Kp): [from, to] and its transpose, -inf where padded
  double *own;          // (Kp): what a label adds to d
  int64_t *place;       // (K): how far from a cell is that of a label, with its cost
  double *arrived[2];   // (Kp)
  int64_t *begin;       // (T + 1): where the cells of each position begin
  double *cells;        // (T, costs so far, Kp)
  char *limit;
};

Tables tables(int64_t steps, int64_t K, int64_t most, char *memory) {
  Tables t;
  Arena arena{memory};
  int64_t Kp = t.Kp = round_up(K, LANES);
  t.into = arena.take<double>(Kp * Kp);
  t.from = arena.take<double>(Kp * Kp);
  t.own = arena.take<double>(Kp);
  t.place = arena.take<int64_t>(K);
  t.arrived[0] = arena.take<double>(Kp);
  t.arrived[1] = arena.take<double>(Kp);
  t.begin = arena.take<int64_t>(steps + 1);
  t.cells = arena.take<double>((steps + most * (steps * (steps + 1) / 2)) * Kp);
  t.limit = arena.at;
  return t;
}

struct Cell {
  int64_t cost, label;
};

// Fills the cells of a sequence; the dearest cost at its last position, or -1 where a score is no score.
template <class R> int64_t fill(const TmSlack &c, const Tables &t, int64_t b, int64_t n) {
  int64_t K = c.num_labels, Kp = t.Kp, dearest = 0;
  const R *e = (const R *)c.emissions + b * c.steps * K, *w = (const R *)c.transitions;
  const R *start = (const R *)c.start, *end = (const R *)c.end;
  const int64_t *gold = c.gold + b * c.steps;
  t.begin[0] = 0;
  for (int64_t at = 0; at < n; at++, e += K) {
    int64_t y = gold[at], most = 0, costs = at ? dearest + 1 : 1;
    double move = at ? (double)w[gold[at - 1] * K + y] : (double)start[y];
    if (at == n - 1) move += (double)end[y];
    for (int64_t k = 0; k < K; k++) {
      if (!(e[k] < INF)) return -1;
      double more = (double)e[k] - (double)e[y];
      if (at == 0) more += (double)start[k];
      if (at == n - 1) more += (double)end[k];
      t.own[k] = more - move;
      int64_t units = c.units[y * K + k];
      t.place[k] = units * Kp + k;
      most = larger_of(units, most);
    }
    dearest += most;
    double *now = t.cells + t.begin[at];
    int64_t size = (dearest + 1) * Kp;
    t.begin[at + 1] = t.begin[at] + size;
    for (int64_t i = 0; i < size; i += LANES) store(now + i, splat(-INF));
    if (at == 0) {
      for (int64_t k = 0; k < K; k++) now[t.place[k]] = t.own[k];
      continue;
    }
    auto keep = [&](int s, int64_t v, Vec<double> sum) __attribute__((always_inline)) {
      store(t.arrived[s] + v * LANES, sum);
    };
    for (int64_t cost = 0; cost < costs; cost += 2) {
      const double *before[2] = {t.cells + t.begin[at - 1] + cost * Kp};
      before[1] = before[0] + (cost + 1 < costs ? Kp : 0);
      best<double, 2>(before, t.into, K, Kp, keep);
      for (int s = 0; s < 2 && cost + s < costs; s++)
        for (int64_t k = 0; k < K; k++) now[(cost + s) * Kp + t.place[k]] = t.arrived[s][k] + t.own[k];
    }
  }
  return dearest;
}

// Of the labellings with the largest product, that of the lowest cost, then with the lowest last label.
Cell best_cell(const Tables &t, int64_t K, int64_t n, int64_t dearest) {
  Cell found = {0, 0};
  double most = -1;
  for (int64_t cost = 0; cost <= dearest; cost++) {
    const double *row = t.cells + t.begin[n - 1] + cost * t.Kp;
    int64_t label = 0;
    for (int64_t k = 1; k < K; k++)
      if (row[k] > row[label]) label = k;
    double value = (double)cost * larger_of(1 + row[label], 0.0);
    if (value > most && row[label] > -INF) most = value, found = {cost, label};
  }
  return found;
}

void trace(const TmSlack &c, const Tables &t, int64_t b, int64_t n, Cell at) {
  int64_t K = c.num_labels, *labels = c.labels + b * c.steps;
  const int64_t *gold = c.gold + b * c.steps;
  for (int64_t i = n - 1; i >= 0; i--) {
    labels[i] = at.label;
    if (i == 0) break;
    at.cost -= c.units[gold[i] * K + at.label];
    const double *cell = t.cells + t.begin[i - 1] + at.cost * t.Kp, *into = t.from + at.label * t.Kp;
    int64_t from = 0;
    for (int64_t j = 1; j < K; j++)
      if (cell[j] + into[j] > cell[from] + into[from]) from = j;
    at.label = from;
  }
}

template <class R> int64_t slack(const TmSlack *call) {
  const TmSlack &c = *call;
  int64_t K = c.num_labels, unsound = 0;
  Tables t = tables(c.steps, K, c.most, aligned(c.work));
  const R *w = (const R *)c.transitions;
  bool real = true;
  for (int64_t i = 0; i < t.Kp * t.Kp; i++) t.into[i] = t.from[i] = -INF;
  for (int64_t j = 0; j < K; j++)
    for (int64_t k = 0; k < K; k++) {
      real &= w[j * K + k] < INF;
      t.into[j * t.Kp + k] = t.from[k * t.Kp + j] = (double)w[j * K + k];
    }
  for (int64_t k = 0; k < K; k++) real &= ((const R *)c.start)[k] < INF && ((const R *)c.end)[k] < INF;
  for (int64_t b = 0; b < c.batch; b++) {
    int64_t n = c.lengths ? c.lengths[b] : c.steps, *labels = c.labels + b * c.steps, paid = 0;
    const int64_t *gold = c.gold + b * c.steps;
    bool sound = real && n >= 0 && n <= c.steps && possible<R>(c, c.gold, b, n);
    double loss = 0, slope = 0;
    if (sound && n > 0) {
      int64_t dearest = fill<R>(c, t, b, n);
      sound = dearest >= 0;
      if (sound) {
        trace(c, t, b, n, best_cell(t, K, n, dearest));
        for (int64_t at = 0; at < n; at++) paid += c.units[gold[at] * K + labels[at]];
        double cost = c.unit * (double)paid / (c.normalize ? (double)n : 1), hinge = 1 + difference_of<R>(c, c.labels, c.gold, b, n);
        if (cost > 0 && hinge > 0) loss = cost * hinge, slope = cost;
      }
    }
    for (int64_t at = sound ? n : 0; at < c.steps; at++) labels[at] = -100;
    ((R *)c.value)[b] = (R)loss, ((R *)c.slope)[b] = (R)slope;
    unsound += !(c.sound[b] = sound);
  }
  return unsound;
}

template <class R> int64_t difference(const TmDifference *call) {
  const TmDifference &c = *call;
  int64_t K = c.num_labels, T = c.steps;
  R *e = (R *)c.by_emission, *w = (R *)c.by_transition, *start = (R *)c.by_start, *end = (R *)c.by_end;
  memset(e, 0, c.batch * T * K * sizeof(R));
  memset(w, 0, K * K * sizeof(R));
  memset(start, 0, K * sizeof(R));
  memset(end, 0, K * sizeof(R));
  for (int64_t b = 0; b < c.batch; b++, e += T * K) {
    const int64_t *y = c.found + b * T, *gold = c.gold + b * T, n = c.lengths ? c.lengths[b] : T;
    R by = ((const R *)c.grad)[b] * ((const R *)c.slope)[b];
    if (n == 0 || by == 0) continue;
    for (int64_t at = 0; at < n; at++) {
      if (y[at] != gold[at]) e[at * K + y[at]] = by, e[at * K + gold[at]] = -by;
      if (at && (y[at] != gold[at] || y[at - 1] != gold[at - 1]))
        w[y[at - 1] * K + y[at]] += by, w[gold[at - 1] * K + gold[at]] -= by;
    }
    start[y[0]] += by, start[gold[0]] -= by;
    end[y[n - 1]] += by, end[gold[n - 1]] -= by;
  }
  return 0;
}

}  // namespace

TM_EXPORT int64_t tm_difference_f32(const TmDifference *c) { return difference<float>(c); }
TM_EXPORT int64_t tm_difference_f64(const TmDifference *c) { return difference<double>(c); }

TM_EXPORT int64_t tm_slack_work(int64_t steps, int64_t num_labels, int64_t most) {
  return (int64_t)tables(steps, num_labels, most, nullptr).limit + 64;
}
TM_EXPORT int64_t tm_slack_f32(const TmSlack *c) { return slack<float>(c); }
TM_EXPORT int64_t tm_slack_f64(const TmSlack *c) { return slack<double>(c); }
