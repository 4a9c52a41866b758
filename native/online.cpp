// Online learners: visit a row, compare its scores, and change the weights of a few classes by a multiple of the row.
// The scores of all classes are summed in one order, feature by feature, so that equal weights have equal scores.
#include "online.h"
#include <math.h>
#include <string.h>

namespace {

constexpr double INF = __builtin_inf();
constexpr double ROUNDING = 1e-12;  // a hinge below this is one of 0
typedef double V __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t I __attribute__((vector_size(32), aligned(8), may_alias));

struct Row {
  const double *x;
  const int64_t *columns;  // null: 0, 1, 2, ...
  int64_t count;
  bool zero;
  int64_t column(int64_t j) const { return columns ? columns[j] : j; }
};

struct Learner {
  const TmOnline &c;
  double *x, *scores, *change;
  bool high = false;  // an exponent over the top

  explicit Learner(const TmOnline &c)
      : c(c), x(c.work), scores(c.work + c.width + c.bias), change(scores + c.padded) {}

  Row row(int64_t i) {
    int64_t begin = c.offsets ? c.offsets[i] : i * c.width;
    int64_t count = c.offsets ? c.offsets[i + 1] - begin : c.width;
    bool zero = !c.bias;
    for (int64_t j = 0; j < count; j++) {
      x[j] = c.wide ? ((const double *)c.values)[begin + j] : (double)((const float *)c.values)[begin + j];
      zero &= x[j] == 0;
    }
    return {x, c.offsets ? c.columns + begin : nullptr, count, zero};
  }

  // scores[k] = sum over features of x weights[k], `wide` vectors of classes at a time.
  template <int wide> void score(const Row &r, int64_t k) {
    V sum[wide] = {};
    for (int64_t j = 0; j < r.count; j++) {
      const V *w = (const V *)(c.weights + r.column(j) * c.padded + k);
      for (int v = 0; v < wide; v++) sum[v] += r.x[j] * w[v];
    }
    if (c.bias)
      for (int v = 0; v < wide; v++) sum[v] += ((const V *)(c.weights + c.width * c.padded + k))[v];
    for (int v = 0; v < wide; v++) ((V *)(scores + k))[v] = sum[v];
  }
  void score(const Row &r) {
    int64_t k = 0;
    for (; k + 32 <= c.padded; k += 32) score<8>(r, k);
    for (; k + 16 <= c.padded; k += 16) score<4>(r, k);
    for (; k < c.padded; k += 4) score<1>(r, k);
  }

  // Calls f(a, b) for each preference of a row, in order.
  template <class F> void each(int64_t i, F f) const {
    int64_t K = c.classes;
    if (c.asks == TM_LABELS) {
      int64_t y = ((const int64_t *)c.target)[i];
      for (int64_t z = 0; z < K; z++)
        if (z != y) f(y, z);
    } else if (c.asks == TM_SIGNS) {
      const int8_t *sign = (const int8_t *)c.target + i * K;
      for (int64_t a = 0; a < K; a++)
        for (int64_t b = 0; b < K && sign[a] > 0; b++)
          if (sign[b] < 0) f(a, b);
    } else {
      const int64_t *pair = (const int64_t *)c.target;
      for (int64_t p = c.first[i]; p < c.first[i + 1]; p++) f(pair[2 * p], pair[2 * p + 1]);
    }
  }

  // The preference a > b with the smallest scores[a] - scores[b], the first among equals; b = -1 where there is none.
  void worst(int64_t i, int64_t &a, int64_t &b) const {
    int64_t K = c.classes;
    a = b = -1;
    if (c.asks == TM_PAIRS) {
      double least = INF;
      each(i, [&](int64_t above, int64_t below) {
        double margin = scores[above] - scores[below];
        if (b < 0 || margin < least) least = margin, a = above, b = below;
      });
      return;
    }
    int64_t y = c.asks == TM_LABELS ? ((const int64_t *)c.target)[i] : -1;
    const int8_t *sign = y < 0 ? (const int8_t *)c.target + i * K : nullptr;
    double low = INF, top = -INF;
    for (int64_t k = 0; k < K; k++) {
      bool above = sign ? sign[k] > 0 : k == y, below = sign ? sign[k] < 0 : k != y;
      if (above && (a < 0 || scores[k] < low)) low = scores[k], a = k;
      if (below && (b < 0 || scores[k] > top)) top = scores[k], b = k;
    }
    if (a < 0) b = -1;
  }

  // Fills `change`, class by class, with what the row asks for; returns how many preferences ask.
  int64_t ask(int64_t i, const Row &r) {
    memset(change, 0, c.padded * sizeof(double));
    double step = c.steps[i];
    if (c.kind == TM_WINNOW_BINARY) {  // class 1 is w+, class 0 is w-
      bool positive = ((const int64_t *)c.target)[i] == 1;
      bool guess = scores[1] - scores[0] >= c.threshold * pow(c.ratio, -*c.shift);
      change[1] = positive ? step : -step, change[0] = -change[1];
      return guess != positive;
    }
    if (c.rule == TM_CONSERVATIVE) {
      int64_t a, b;
      worst(i, a, b);
      if (b < 0) return 0;
      double margin = scores[a] - scores[b];
      if (c.kind == TM_PASSIVE_AGGRESSIVE) {
        double square = c.bias, loss = 1 - margin;
        for (int64_t j = 0; j < r.count; j++) square += r.x[j] * r.x[j];
        if (!(loss > ROUNDING)) return 0;
        step = fmin(step, loss / (2 * square));
      } else if (margin > 0) {
        return 0;
      }
      change[a] = step, change[b] = -step;
      return 1;
    }
    int64_t violated = 0;
    each(i, [&](int64_t a, int64_t b) { violated += scores[a] <= scores[b]; });
    double share = c.rule == TM_UNIFORM ? step / violated : step;
    each(i, [&](int64_t a, int64_t b) {
      if (scores[a] <= scores[b]) change[a] += share, change[b] -= share;
    });
    return violated;
  }

  void add(int64_t column, int64_t k, double x) {
    int64_t at = column * c.padded + k;
    double move = change[k] * x;
    if (c.exponents) {
      double power = (c.exponents[at] += move) - *c.shift;
      high |= power > c.top;
      c.weights[at] = pow(c.ratio, power);
    } else {
      c.weights[at] += move;
      if (c.drift) c.drift[at] += (double)c.counts[0] * move;
    }
  }
  void update(const Row &r) {
    for (int64_t k = 0; k < c.classes; k++) {
      if (change[k] == 0) continue;
      add(r, k);
    }
    if (high) lower();
  }
  void add(const Row &r, int64_t k) {
    for (int64_t j = 0; j < r.count; j++) add(r.column(j), k, r.x[j]);
    if (c.bias) add(c.width, k, 1);
  }

  // The largest weight becomes 1.
  void lower() {
    double most = -INF;
    for (int64_t d = 0; d < c.width + c.bias; d++)
      for (int64_t k = 0; k < c.classes; k++) most = fmax(most, c.exponents[d * c.padded + k]);
    *c.shift = most;
    high = false;
    for (int64_t d = 0; d < c.width + c.bias; d++)
      for (int64_t k = 0; k < c.classes; k++) {
        int64_t at = d * c.padded + k;
        c.weights[at] = pow(c.ratio, c.exponents[at] - most);
      }
  }
};

// The structured perceptron: the best labelling against the gold one.
struct Chains : Learner {
  const int64_t K, P, begin;  // where the weights of moves begin
  double *emissions, *values, *next;
  int64_t *back, *path;

  explicit Chains(const TmOnline &c) : Learner(c), K(c.classes), P(c.padded), begin(c.width + c.bias) {
    emissions = change + P;
    values = emissions + c.longest * P;
    next = values + P;
    back = (int64_t *)(next + P);
    path = back + c.longest * P;
  }

  V move(int64_t from, int64_t k) const {
    V score = *(const V *)(c.weights + (begin + from) * P + k);
    return c.allowed ? score + *(const V *)(c.allowed + from * P + k) : score;
  }

  // The best labels of a sequence; ties go to the lowest last label, then backwards.
  void decode(int64_t first, int64_t steps) {
    for (int64_t t = 0; t < steps; t++) {
      scores = emissions + t * P;
      score(row(first + t));
      for (int64_t k = 0; k < P; k += 4) {
        V best = {-INF, -INF, -INF, -INF};
        I from = {};
        if (t == 0) best = move(K, k);
        for (int64_t j = 0; j < K && t > 0; j++) {
          V value = values[j] + move(j, k);
          I better = value > best;
          best = better ? value : best;
          from = better ? I{j, j, j, j} : from;
        }
        *(V *)(next + k) = best + *(const V *)(scores + k);
        *(I *)(back + t * P + k) = from;
      }
      double *last = values;
      values = next, next = last;
    }
    int64_t best = 0;
    for (int64_t k = 0; k < P; k += 4) *(V *)(values + k) += move(K + 1, k);
    for (int64_t k = 1; k < K; k++)
      if (values[k] > values[best]) best = k;
    for (int64_t t = steps; t-- > 0; best = back[t * P + best]) path[t] = best;
  }

  void shift(int64_t at, int64_t k, double step) {
    change[k] = step;
    add(at, k, 1);
  }

  bool visit(int64_t i) {
    int64_t first = c.first[i], steps = c.first[i + 1] - first;
    if (steps == 0) return false;
    const int64_t *gold = (const int64_t *)c.target + first;
    decode(first, steps);
    if (memcmp(gold, path, steps * sizeof(int64_t)) == 0) return false;
    double step = c.steps[i];
    for (int64_t t = 0; t < steps; t++) {
      if (gold[t] != path[t]) {
        Row r = row(first + t);
        change[gold[t]] = step, change[path[t]] = -step;
        add(r, gold[t]);
        add(r, path[t]);
      }
      if (t > 0 && (gold[t] != path[t] || gold[t - 1] != path[t - 1])) {
        shift(begin + gold[t - 1], gold[t], step);
        shift(begin + path[t - 1], path[t], -step);
      }
    }
    if (gold[0] != path[0]) shift(begin + K, gold[0], step), shift(begin + K, path[0], -step);
    if (gold[steps - 1] != path[steps - 1])
      shift(begin + K + 1, gold[steps - 1], step), shift(begin + K + 1, path[steps - 1], -step);
    return true;
  }
};

// Sub-gradient descent with W = scale V and the average = share (U + lead V), so that a step costs what its rows do and
// not what all weights do: V and U are what the caller's weights and average are between calls, where the factors are 1.
struct Descent : Learner {
  const TmPegasos &p;
  const int64_t cells;
  int64_t *worst;
  double scale = 1, share = 1, lead = 0, square;  // `square` = |W|^2

  explicit Descent(const TmPegasos &p)
      : Learner(p.rows), p(p), cells((c.width + c.bias) * c.padded), worst((int64_t *)(change + c.padded)) {
    fold();
  }

  // Factors of 1 again, and |W|^2 without what rounding has added to it.
  void fold() {
    square = 0;
    for (int64_t i = 0; i < cells; i++) {
      p.average[i] = share * (p.average[i] + lead * c.weights[i]);
      c.weights[i] *= scale;
      square += c.weights[i] * c.weights[i];
    }
    scale = share = 1, lead = 0;
  }

  // The label of the largest loss, the first among equals, its own at 0.
  int64_t worst_of(int64_t i, int64_t y) {
    score(row(i));
    int64_t found = 0;
    double top = -INF;
    for (int64_t k = 0; k < c.classes; k++) {
      double loss = k == y ? 0 : scale * (scores[k] - scores[y]) + 1;
      if (loss > top) top = loss, found = k;
    }
    return found;
  }

  // W[:, y] += step x, W[:, z] -= step x; the average stays.
  void move(int64_t j, int64_t y, int64_t z, double d, double x, double &inner, double &norm) {
    double *v = c.weights + j * c.padded, *u = p.average + j * c.padded;
    inner += x * (v[y] - v[z]), norm += x * x;
    v[y] += d * x, v[z] -= d * x;
    u[y] -= lead * d * x, u[z] += lead * d * x;
  }
  void move(const Row &r, int64_t y, int64_t z, double step) {
    double inner = 0, norm = 0, d = step / scale;
    for (int64_t j = 0; j < r.count; j++) move(r.column(j), y, z, d, r.x[j], inner, norm);
    if (c.bias) move(c.width, y, z, d, 1, inner, norm);
    square += 2 * step * (scale * inner + step * norm);
  }

  void step(const int64_t *chosen, int64_t size) {
    const int64_t *labels = (const int64_t *)c.target;
    for (int64_t b = 0; b < size; b++) worst[b] = worst_of(chosen[b], labels[chosen[b]]);
    double t = (double)++p.steps[0], shrink = 1 - 1 / t;
    scale *= shrink, square *= shrink * shrink;
    if (!(scale > 1e-3 && share > 1e-3)) fold();
    for (int64_t b = 0; b < size; b++) {
      int64_t i = chosen[b], y = labels[i];
      if (worst[b] != y) move(row(i), y, worst[b], c.steps[i] / (p.strength * t * (double)size));
    }
    double norm = sqrt(fmax(square, 0)), most = sqrt(2 / p.strength);
    if (norm > most) scale *= most / norm, square = most * most;
    if (p.expected != 0 && 2 * t <= p.expected) return;
    double averaged = (double)++p.steps[1], part = p.expected == 0 ? 2 / (averaged + 1) : 1 / averaged;
    if (part == 1) {
      memset(p.average, 0, cells * sizeof(double));
      share = 1, lead = scale;
    } else {
      share *= 1 - part;
      lead += part * scale / share;
    }
  }
};

}  // namespace

// Visits the rows in turn; counts what it has done.
TM_EXPORT int64_t tm_online(const TmOnline *call) {
  Learner learner(*call);
  for (int64_t n = 0; n < call->visits; n++) {
    int64_t i = call->order[n];
    Row row = learner.row(i);
    if (!row.zero) {
      learner.score(row);
      int64_t asked = learner.ask(i, row);
      if (asked) learner.update(row);
      call->counts[1] += asked > 0;
      call->counts[2] += asked;
    }
    call->counts[0]++;
  }
  return 0;
}

// How many doubles a visit of chains works in.
TM_EXPORT int64_t tm_online_work(int64_t width, int64_t padded, int64_t longest) {
  return width + 1 + 4 * padded + longest * (2 * padded + 1);
}

// The same for chains: perceptrons, of labels.
TM_EXPORT int64_t tm_online_chains(const TmOnline *call) {
  Chains learner(*call);
  for (int64_t n = 0; n < call->visits; n++) {
    bool wrong = learner.visit(call->order[n]);
    call->counts[1] += wrong;
    call->counts[2] += wrong;
    call->counts[0]++;
  }
  return 0;
}

// A step for each batch: W <- (1 - 1/t) W - slope / (strength t), then back into the ball of radius sqrt(2/strength).
TM_EXPORT int64_t tm_pegasos(const TmPegasos *call) {
  Descent descent(*call);
  for (int64_t n = 0; n < call->rows.visits; n += call->batch) {
    int64_t left = call->rows.visits - n;
    descent.step(call->rows.order + n, left < call->batch ? left : call->batch);
  }
  descent.fold();
  return 0;
}
