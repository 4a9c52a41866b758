// Slack rescaling, max_y L(y) [1 + d(y)]_+ with d(y) = s(y) - s(gold), and the gradient of such a difference.
//
// V[t][c][k], the best d of the prefixes that end in k at t and cost c units, is max_j V[t-1][c'][j] + W[j, k], which
// is a product of max and plus for each cost c', and what label k adds at t, to its score and to its cost.
//
// Of long sequences most of these cells cannot win, and a search over max_y d(y) + lambda c(y), a Viterbi each, says
// which: its lines bound V from above (Choi, Meshi and Srebro, 2016, as `ops/chain/slack.py` has it). Costs that can
// still win are those whose bound is no less than the best product found; and of the cells on the way those that what
// may follow at one lambda, `rest`, can bring there.
#include "margin.h"
#include "products.h"

#include <math.h>

namespace {

constexpr double INF = __builtin_inf();
constexpr int LANES = Real<double>::lanes;

constexpr int64_t DIRECT = 16;         // units of cost up to which all cells are less work than a search
constexpr int ROUNDS = 40;             // of the search
constexpr int64_t CELLS = 1ll << 24;   // 128 MB; a sequence that needs more is not vouched for

struct Tables {
  int64_t Kp;
  double *into, *from;  // (Kp, Kp): [from, to] less `level`, and its transpose, -inf where padded
  double level;         // the largest transition
  double *own;          // (T, Kp): what a label adds to d
  double *paid;         // (T, Kp): and to its cost
  double *value;        // (T, Kp): of the prefixes of a search
  double *rest;         // (T, Kp): the most that follows
  double *arrived[2];   // (Kp)
  int64_t *labels;      // (T), of the best corner
  int64_t *begin, *low, *high;  // (T): where the cells of each position begin, and which costs they are of
  double *cells;
  int64_t room;         // how many
  char *limit;
};

Tables tables(int64_t steps, int64_t K, int64_t most, char *memory) {
  Tables t;
  Arena arena{memory};
  int64_t Kp = t.Kp = round_up(K, LANES);
  t.into = arena.take<double>(Kp * Kp);
  t.from = arena.take<double>(Kp * Kp);
  t.own = arena.take<double>(steps * Kp);
  t.paid = arena.take<double>(steps * Kp);
  t.value = arena.take<double>(steps * Kp);
  t.rest = arena.take<double>(steps * Kp);
  t.arrived[0] = arena.take<double>(Kp);
  t.arrived[1] = arena.take<double>(Kp);
  t.labels = arena.take<int64_t>(steps);
  t.begin = arena.take<int64_t>(steps);
  t.low = arena.take<int64_t>(steps);
  t.high = arena.take<int64_t>(steps);
  t.room = (steps + most * (steps * (steps + 1) / 2)) * Kp;
  t.room = most * steps > DIRECT && t.room > CELLS ? CELLS : t.room;
  t.cells = arena.take<double>(t.room);
  t.limit = arena.at;
  return t;
}

// A labelling, its cost and its d.
struct Corner {
  double cost, d;
};

struct Cell {
  int64_t cost, label;
};

// What each label adds to d and to the cost; false where a score is no score. `dearest` is the largest cost there is.
template <class R> bool measure(const TmSlack &c, const Tables &t, int64_t b, int64_t n, int64_t &dearest) {
  int64_t K = c.num_labels;
  const R *e = (const R *)c.emissions + b * c.steps * K, *w = (const R *)c.transitions;
  const R *start = (const R *)c.start, *end = (const R *)c.end;
  const int64_t *gold = c.gold + b * c.steps;
  bool real = true;
  dearest = 0;
  for (int64_t at = 0; at < n; at++, e += K) {
    int64_t y = gold[at], most = 0;
    double *own = t.own + at * t.Kp, *paid = t.paid + at * t.Kp;
    double move = at ? (double)w[gold[at - 1] * K + y] - t.level : 0;
    for (int64_t k = 0; k < t.Kp; k++) own[k] = -INF, paid[k] = 0;
    for (int64_t k = 0; k < K; k++) {
      real &= e[k] < INF;
      double more = (double)e[k] - (double)e[y];
      if (at == 0) more += (double)start[k] - (double)start[y];
      if (at == n - 1) more += (double)end[k] - (double)end[y];
      own[k] = more - move;
      int64_t units = c.units[y * K + k];
      paid[k] = (double)units;
      most = larger_of(units, most);
    }
    dearest += most;
  }
  return real;
}

// d + by * cost of what a label adds.
INLINE Vec<double> weighed(const Tables &t, int64_t i, Vec<double> by) { return load(t.own + i) + by * load(t.paid + i); }

// The labels of max_y d(y) + lambda c(y) into `labels`.
Corner corner(const Tables &t, int64_t K, int64_t n, double lambda, int64_t *labels) {
  int64_t Kp = t.Kp;
  Vec<double> by = splat(lambda);
  for (int64_t at = 0; at < n; at++) {
    double *now = t.value + at * Kp;
    const double *before = now - Kp;
    if (at == 0)
      for (int64_t k = 0; k < Kp; k += LANES) store(now + k, weighed(t, k, by));
    else
      best<double, 1>(&before, t.into, K, Kp, [&](int, int64_t v, Vec<double> sum) __attribute__((always_inline)) {
        store(now + v * LANES, sum + weighed(t, at * Kp + v * LANES, by));
      });
  }
  Corner found = {0, 0};
  const double *into = nullptr;
  for (int64_t at = n - 1; at >= 0; at--) {
    const double *now = t.value + at * Kp;
    int64_t label = 0;
    for (int64_t k = 1; k < K; k++)
      if (now[k] + (into ? into[k] : 0) > now[label] + (into ? into[label] : 0)) label = k;
    labels[at] = label;
    found.cost += t.paid[at * Kp + label];
    found.d += t.own[at * Kp + label] + (into ? into[label] : 0);
    into = t.from + label * Kp;
  }
  return found;
}

struct Search {
  Corner best;
  int rounds;
  double slope[ROUNDS], ceiling[ROUNDS];
};

// Closes in on the corner of the hull with the largest product; its labels into `t.labels`.
Search search(const Tables &t, int64_t K, int64_t n, int64_t *labels) {
  Search found;
  found.rounds = 0;
  Corner left, right{};
  bool bounded = false;
  double slope = 0;
  for (; found.rounds < ROUNDS;) {
    Corner now = corner(t, K, n, slope, labels);
    double u = 1 + now.d;
    bool first = found.rounds == 0;
    found.slope[found.rounds] = slope, found.ceiling[found.rounds++] = now.d + slope * now.cost;
    if (first || now.cost * larger_of(u, 0.0) > found.best.cost * larger_of(1 + found.best.d, 0.0)) {
      found.best = now;
      memcpy(t.labels, labels, n * sizeof(int64_t));
    }
    if (first) {
      left = now;
      slope = 1 + larger_of(now.d, 0.0);
      continue;
    }
    if (!bounded)
      right = now, bounded = true;
    else {
      double line = u + slope * now.cost, known = 1 + left.d + slope * left.cost;
      if (line <= known + 1e-15 * ::fabs(known)) break;
      (u > slope * now.cost ? left : right) = now;
    }
    if (right.cost <= left.cost) break;
    slope = larger_of((left.d - right.d) / (right.cost - left.cost), 0.0);
  }
  return found;
}

// Which costs can still win, and at which of the lines the cells are to be measured.
struct Window {
  int64_t low, high;
  double slope, least;  // what d + slope * cost has to be at least
};

// False where the best corner of the search is the best labelling.
bool hopeful(const Search &s, int64_t dearest, Window &w) {
  double value = s.best.cost * larger_of(1 + s.best.d, 0.0), narrowest = INF;
  bool open = false;
  w.low = dearest + 1, w.high = -1;
  for (int64_t cost = 1; cost <= dearest; cost++) {
    double c = (double)cost, most = INF;
    for (int i = 0; i < s.rounds; i++) {
      double rounding = 1e-13 * (::fabs(s.ceiling[i]) + s.slope[i] * c + 1), line = s.ceiling[i] - s.slope[i] * c;
      most = line + rounding < most ? line + rounding : most;
    }
    double bound = c * (1 + most);
    if (!(bound > 0 && bound >= value)) continue;
    open |= c != s.best.cost;
    w.low = cost < w.low ? cost : w.low, w.high = cost;
  }
  if (!open) return false;
  for (int i = 0; i < s.rounds; i++) {  // the line that leaves the least room above what is needed
    double least = INF;
    for (int64_t cost = w.low; cost <= w.high; cost++) {
      double needed = value / (double)cost - 1 + s.slope[i] * (double)cost;
      least = needed < least ? needed : least;
    }
    double scale = 1 + ::fabs(s.ceiling[i]) + s.slope[i] * (double)dearest;
    if (s.ceiling[i] - least < narrowest)
      narrowest = s.ceiling[i] - least, w.slope = s.slope[i], w.least = least - 1e-11 * scale;
  }
  return true;
}

// The most that can follow a label, of d + slope * cost.
void follow(const Tables &t, int64_t K, int64_t n, double slope) {
  int64_t Kp = t.Kp;
  double *after = t.arrived[0];
  for (int64_t k = 0; k < Kp; k += LANES) store(t.rest + (n - 1) * Kp + k, Vec<double>{});
  for (int64_t at = n - 1; at > 0; at--) {
    for (int64_t k = 0; k < Kp; k += LANES)
      store(after + k, load(t.rest + at * Kp + k) + weighed(t, at * Kp + k, splat(slope)));
    const double *given = after;
    best<double, 1>(&given, t.from, K, Kp, [&](int, int64_t v, Vec<double> sum) __attribute__((always_inline)) {
      store(t.rest + (at - 1) * Kp + v * LANES, sum);
    });
  }
}

// Whether a cell of this cost at this position may end in the window.
INLINE bool alive(const Tables &t, const Window &w, int64_t at, int64_t cost, const double *row) {
  Vec<double> most = splat(-INF);
  for (int64_t k = 0; k < t.Kp; k += LANES) most = larger(load(row + k) + load(t.rest + at * t.Kp + k), most);
  return largest_of<double>(most) + w.slope * (double)cost >= w.least;
}

// The cells of a sequence, those alone that may end in the `window` where there is one; false where there is no room.
bool fill(const Tables &t, int64_t K, int64_t n, const Window *window) {
  int64_t Kp = t.Kp, taken = 0;
  for (int64_t at = 0; at < n; at++) {
    const double *own = t.own + at * Kp, *paid = t.paid + at * Kp;
    double most = 0;
    for (int64_t k = 0; k < K; k++) most = larger_of(paid[k], most);
    int64_t before_low = at ? t.low[at - 1] : 0, before_high = at ? t.high[at - 1] : 0;
    int64_t low = before_low, high = before_high + (int64_t)most, size = (high - low + 1) * Kp;
    if (taken + size > t.room) return false;
    double *now = t.cells + taken;
    for (int64_t i = 0; i < size; i += LANES) store(now + i, splat(-INF));
    if (at == 0)
      for (int64_t k = 0; k < K; k++) now[(int64_t)paid[k] * Kp + k] = own[k];
    auto keep = [&](int s, int64_t v, Vec<double> sum) __attribute__((always_inline)) {
      store(t.arrived[s] + v * LANES, sum);
    };
    for (int64_t cost = before_low; at > 0 && cost <= before_high; cost += 2) {
      const double *before[2] = {t.cells + t.begin[at - 1] + (cost - before_low) * Kp};
      before[1] = before[0] + (cost < before_high ? Kp : 0);
      best<double, 2>(before, t.into, K, Kp, keep);
      for (int s = 0; s < 2 && cost + s <= before_high; s++)
        for (int64_t k = 0; k < K; k++) now[(cost + s - low + (int64_t)paid[k]) * Kp + k] = t.arrived[s][k] + own[k];
    }
    int64_t first = low;
    if (window) {
      while (low <= high && !alive(t, *window, at, low, now + (low - first) * Kp)) low++;
      while (high > low && !alive(t, *window, at, high, now + (high - first) * Kp)) high--;
      if (low > high) return false;  // not but for rounding
    }
    t.begin[at] = taken + (low - first) * Kp, t.low[at] = low, t.high[at] = high;
    taken = t.begin[at] + (high - low + 1) * Kp;
  }
  return true;
}

// Of the labellings with the largest product, that of the lowest cost, then with the lowest last label.
Cell best_cell(const Tables &t, int64_t K, int64_t n) {
  Cell found = {t.low[n - 1], 0};
  double most = -1;
  for (int64_t cost = t.low[n - 1]; cost <= t.high[n - 1]; cost++) {
    const double *row = t.cells + t.begin[n - 1] + (cost - t.low[n - 1]) * t.Kp;
    int64_t label = 0;
    for (int64_t k = 1; k < K; k++)
      if (row[k] > row[label]) label = k;
    double value = (double)cost * larger_of(1 + row[label], 0.0);
    if (value > most && row[label] > -INF) most = value, found = {cost, label};
  }
  return found;
}

void trace(const Tables &t, int64_t K, int64_t n, Cell at, int64_t *labels) {
  for (int64_t i = n - 1; i >= 0; i--) {
    labels[i] = at.label;
    if (i == 0) break;
    at.cost -= (int64_t)t.paid[i * t.Kp + at.label];
    const double *cell = t.cells + t.begin[i - 1] + (at.cost - t.low[i - 1]) * t.Kp, *into = t.from + at.label * t.Kp;
    int64_t from = 0;
    for (int64_t j = 1; j < K; j++)
      if (cell[j] + into[j] > cell[from] + into[from]) from = j;
    at.label = from;
  }
}

// The labels with the largest product; false where the library does not vouch for them.
template <class R> bool best_labels(const TmSlack &c, const Tables &t, int64_t b, int64_t n) {
  int64_t K = c.num_labels, dearest, *labels = c.labels + b * c.steps;
  if (!measure<R>(c, t, b, n, dearest)) return false;
  Window window, *within = nullptr;
  if (dearest > DIRECT) {
    Search s = search(t, K, n, labels);
    memcpy(labels, t.labels, n * sizeof(int64_t));
    if (!hopeful(s, dearest, window)) return true;
    within = &window;
    follow(t, K, n, window.slope);
  }
  if (!fill(t, K, n, within)) return false;
  trace(t, K, n, best_cell(t, K, n), labels);
  return true;
}

template <class R> int64_t slack(const TmSlack *call) {
  const TmSlack &c = *call;
  int64_t K = c.num_labels, unsound = 0;
  Tables t = tables(c.steps, K, c.most, aligned(c.work));
  const R *w = (const R *)c.transitions;
  bool real = true;
  t.level = level_of(w, K * K);
  for (int64_t i = 0; i < t.Kp * t.Kp; i++) t.into[i] = t.from[i] = -INF;
  for (int64_t j = 0; j < K; j++)
    for (int64_t k = 0; k < K; k++) {
      real &= w[j * K + k] < INF;
      t.into[j * t.Kp + k] = t.from[k * t.Kp + j] = (double)w[j * K + k] - t.level;
    }
  for (int64_t k = 0; k < K; k++) real &= ((const R *)c.start)[k] < INF && ((const R *)c.end)[k] < INF;
  for (int64_t b = 0; b < c.batch; b++) {
    int64_t n = c.lengths ? c.lengths[b] : c.steps, *labels = c.labels + b * c.steps, paid = 0;
    const int64_t *gold = c.gold + b * c.steps;
    bool sound = real && n >= 0 && n <= c.steps && possible<R>(c, c.gold, b, n);
    double loss = 0, slope = 0;
    if (sound && n > 0) {
      sound = best_labels<R>(c, t, b, n);
      if (sound) {
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
