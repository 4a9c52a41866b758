// Forward and backward recursions of a linear chain in scaled probability space.
//
//   x_t = exp(e_t - max e_t), start and end counted with the first and the last e;   W = exp(w - max w)
//   alpha_t = (alpha_{t-1} W) * x_t,    u_t = x_t * beta_t,    beta_{t-1} = W u_t,    counts = W * sum_t alpha_{t-1}' u_t
//
// x_t is multiplied, every few steps, by the power of two that brings the sum of alpha_{t-1} into [1, 2): exact, and
// its exponents add up to integers. Values are sums of logarithms in float64.
//
// The certificate. Where transitions span little, nothing that matters is lost between two rescalings (`plan`). Else
// every step is rescaled, and what lies below CLEAR is told apart: factors below it become exact zeros, as -inf does,
// and the largest of them is kept (`dropped`); the sum over all paths through such a factor is at most that factor, in
// units in which each x_t sums to one, and must be exp(-MARGIN) of the total or less. With these zeros, the labels
// whose alpha is at least CLEAR, before rescaling, must be exactly those that can be reached in one step from such
// labels before them: by induction every alpha that is not an exact zero then has all its digits. The quotient of a
// marginal, at most 1, by such an alpha bounds the backward vectors, so that nothing overflows; u of labels that cannot
// be reached is bounded by nothing and set to zero; and what underflows there is that small in the marginals. Last,
// sum(alpha_t * beta_t) must be 1.
//
// In float32 the rounding of every step adds up in log Z, which is no matter beside a large loss. A smaller one is what
// is against each gold label, one after the other (`log_against`), where nothing adds up but what counts. Where few of
// these make up the loss, and so the rounding of each shows, it is computed once more in float64; and so is any small
// loss where the value alone is asked for, since beside a gradient that would take as long again. So is a log Z that
// happens to be near 0.
#include "chain.h"
#include "products.h"

#include <math.h>

namespace {

template <class R> INLINE Vec<R> iota() {
  Vec<R> v;
  for (int i = 0; i < Real<R>::lanes; i++) v[i] = (R)i;
  return v;
}

template <class R> struct Limits;
template <> struct Limits<float> {
  static constexpr float clear = 1e-30f, low = -69.0f;
  static constexpr double budget = 30, reach = 67, drift = 1e-4;
};
template <> struct Limits<double> {
  static constexpr double clear = 1e-290, low = -667.0;
  static constexpr double budget = 300, reach = 640, drift = 1e-9;
};
constexpr double INF = __builtin_inf(), MARGIN = 40;
constexpr double LIKELY = 0.1;  // loss a position below which gradients are counted by what the gold labelling lacks
constexpr double FAIR = 0.5;    // loss a position below which it is counted by what is against the gold labels
constexpr double CANCELLED = 0.04;  // share of what it sums below which a gradient has too few digits left in float32
constexpr double LN2 = 0.69314718055994530942;

// What holds for the whole batch.
struct Plan {
  bool valid, certify;
  int64_t every;
  double top, dropped;  // of the transitions
  double first, last;   // the largest that is added up for start and end
};

template <class R> struct Tables {
  int64_t Kp;
  Plan *plan;
  R *W, *WT, *reach;  // (Kp, Kp): [from, to], its transpose, and 1 where W is not 0
  R *counts, *lost;   // (Kp, Kp): and what their sums have been rounded by
  double *moves;      // (K, K): what the gold moves add to the gradient
  double *first, *last;  // (K): what is added up for start and end
  R *found;           // (2, Kp): as 0 and 1, the labels found at the last step of each of a pair
  Mask<R> *was, *can;  // (2, Kp / lanes): the same as masks, and what can be reached from them
  R *start, *end;     // (Kp): filled up by 0
  R *rest;            // (2, Kp): what the sums at the first and at the last position have been rounded by
  int64_t *order, *count;
  uint8_t *coarse;  // (B): which losses the rounding of float32 shows in
  R *alpha, *x;  // (2, T, Kp): of a pair of sequences, which goes forth and back before the next one
  char *limit;
};

template <class R> Tables<R> tables(const TmChain &c, char *memory) {
  Tables<R> t;
  Arena arena{memory};
  int64_t Kp = t.Kp = round_up(c.num_labels, Real<R>::lanes), vectors = Kp / Real<R>::lanes;
  t.plan = arena.take<Plan>(1);
  t.W = arena.take<R>(Kp * Kp);
  t.WT = arena.take<R>(Kp * Kp);
  t.reach = arena.take<R>(Kp * Kp);
  t.counts = arena.take<R>(Kp * Kp);
  t.lost = arena.take<R>(Kp * Kp);
  t.moves = arena.take<double>(c.num_labels * c.num_labels);
  t.first = arena.take<double>(c.num_labels);
  t.last = arena.take<double>(c.num_labels);
  t.found = arena.take<R>(2 * Kp);
  t.was = arena.take<Mask<R>>(2 * vectors);
  t.can = arena.take<Mask<R>>(2 * vectors);
  t.start = arena.take<R>(Kp);
  t.end = arena.take<R>(Kp);
  t.rest = arena.take<R>(2 * Kp);
  t.order = arena.take<int64_t>(c.batch);
  t.count = arena.take<int64_t>(c.steps + 2);
  t.coarse = arena.take<uint8_t>(c.batch);
  t.alpha = arena.take<R>(2 * c.steps * Kp);
  t.x = arena.take<R>(2 * c.steps * Kp);
  t.limit = arena.at;
  return t;
}

constexpr int64_t TOGETHER = 8;  // sequences of float32 that are computed again at a time

// Those of a call in float32 that are computed again, in float64.
struct Again {
  TmChain chain;
  double *emissions, *transitions, *start, *end;
  int64_t *lengths, *labels;
  char *limit;
};

Again again(const TmChain &c, char *memory) {
  Again a{};
  Arena arena{memory};
  int64_t K = c.num_labels, many = c.batch < TOGETHER ? c.batch : TOGETHER;
  a.emissions = arena.take<double>(many * c.steps * K);
  a.transitions = arena.take<double>(K * K);
  a.start = arena.take<double>(K);
  a.end = arena.take<double>(K);
  a.lengths = arena.take<int64_t>(many);
  a.labels = arena.take<int64_t>(many * c.steps);
  double *value = arena.take<double>(many);
  uint8_t *sound = arena.take<uint8_t>(many);
  a.chain = {a.emissions, a.transitions, a.start, a.end, a.lengths, a.labels, many, c.steps, K, arena.at, value, nullptr,
             sound, nullptr, nullptr, nullptr, nullptr, nullptr};
  a.limit = tables<double>(a.chain, arena.at).limit + 64;
  return a;
}

template <class R> int64_t work(int64_t batch, int64_t steps, int64_t num_labels) {
  TmChain c{};
  c.batch = batch, c.steps = steps, c.num_labels = num_labels;
  char *limit = tables<R>(c, nullptr).limit;
  if (sizeof(R) == sizeof(float)) limit = again(c, limit).limit;
  return (int64_t)limit + 64;  // and what it takes to align the rest
}

// The logarithm of a product of positive numbers, one logarithm now and then.
struct Product {
  double factor = 1, sum = 0;
  INLINE void by(double f) {
    factor *= f;
    if (!(factor < 1e200 && factor > 1e-200)) sum += ::log(factor), factor = 1;
  }
  double log() const { return sum + ::log(factor); }
};

template <class R> Plan plan(const TmChain &c) {
  const R *w = (const R *)c.transitions;
  int64_t K = c.num_labels;
  double high = -INF, least = INF;
  bool forbids = false, real = true;
  for (int64_t i = 0; i < K * K; i++) {
    double score = w[i];
    real &= score < INF;
    forbids |= score == -INF;
    high = larger_of(high, score);
    least = score > -INF && score < least ? score : least;
  }
  if (!real || high == -INF) return {false, false, 1, 0, 0, 0, 0};
  // The sum of alpha shrinks by exp(span) a step at most and grows by K; what matters lies within exp(2 span + 20).
  double span = larger_of(high - least, 1e-4);
  double every = Limits<R>::budget / (span + ::log((double)K)), reach = Limits<R>::reach / span - 3;
  every = every < reach ? every : reach;
  every = every < 64 ? every : 64;
  bool certify = forbids || every < 1;
  return {true, certify, certify ? 1 : (int64_t)every, high, -INF, 0, 0};
}

template <class R> void tabulate(const TmChain &c, Tables<R> &t) {
  constexpr int lanes = Real<R>::lanes;
  const R *w = (const R *)c.transitions;
  Plan &p = *t.plan;
  int64_t K = c.num_labels, Kp = t.Kp;
  memset(t.W, 0, Kp * Kp * sizeof(R));
  memset(t.WT, 0, Kp * Kp * sizeof(R));
  memset(t.start, 0, Kp * sizeof(R));
  memset(t.end, 0, Kp * sizeof(R));
  memcpy(t.start, c.start, K * sizeof(R));
  memcpy(t.end, c.end, K * sizeof(R));
  for (int64_t j = 0; j < K; j++) {
    for (int64_t k = 0; k < K; k += Real<double>::lanes) {
      Vec<double> v = splat(-INF);
      for (int64_t i = k; i < K && i < k + Real<double>::lanes; i++) v[i - k] = (double)w[j * K + i] - p.top;
      v = exp_of<double>(v);
      for (int64_t i = k; i < K && i < k + Real<double>::lanes; i++) t.W[j * Kp + i] = (R)v[i - k];
    }
    if (p.certify)
      for (int64_t k = 0; k < K; k++) {
        double score = (double)w[j * K + k] - p.top;
        if (score < Limits<R>::low) t.W[j * Kp + k] = 0, p.dropped = larger_of(p.dropped, score);
      }
    for (int64_t k = 0; k < K; k++) t.WT[k * Kp + j] = t.W[j * Kp + k];
  }
  if (p.certify)
    for (int64_t i = 0; i < Kp * Kp; i += lanes)
      store(t.reach + i, load(t.W + i) > Vec<R>{} ? splat<R>(1) : Vec<R>{});
}

template <class R> struct Sequence {
  int64_t b, n;
  R *alpha, *x;
  bool sound;
  double origin;      // the logarithm of what was taken out: the gold labelling, or the tops of all factors
  double gold;        // with labels: the logarithm of the gold labelling's share of alpha, before rescaling
  double dropped;     // the largest logarithm of a factor that was set to zero
  double whole;       // certify: the sum over positions of log sum x_t
  int64_t exponent;   // what rescaling has taken out of alpha
};

// a + b; what it has been rounded by is added to `rest`, and is no number where a sum is infinite.
template <class R> INLINE Vec<R> sum_with_rest(Vec<R> a, Vec<R> b, Vec<R> &rest) {
  Vec<R> sum = a + b, from_a = sum - b, from_b = sum - from_a;
  rest += (a - from_a) + (b - from_b);
  return sum;
}

constexpr int64_t AHEAD = 32;  // positions that are read, and then exponentiated, at a time: they wait for nothing

// Reads the scores at the positions from <= t < to into x, start and end counted; the largest of each into `high`.
template <class R> void read(const TmChain &c, const Tables<R> &t, const Sequence<R> &seq, int64_t from, int64_t to, R *high) {
  constexpr int lanes = Real<R>::lanes;
  int64_t K = c.num_labels, Kp = t.Kp;
  for (int64_t at = from; at < to; at++) {
    const R *e = (const R *)c.emissions + (seq.b * c.steps + at) * K;
    R *x = seq.x + at * Kp;
    bool inner = seq.b + 1 < c.batch || at + 1 < c.steps, first = at == 0, last = at == seq.n - 1;
    Vec<R> top = splat<R>((R)-INF);
    for (int64_t k = 0; k < Kp; k += lanes) {
      Vec<R> v = load_part<R>(e + k, K - k, (R)-INF, inner);
      if (first || last) {
        Vec<R> rest{};
        if (first) v = sum_with_rest<R>(v, load(t.start + k), rest);
        if (last) v = sum_with_rest<R>(v, load(t.end + k), rest);
        store((last ? t.rest + Kp : t.rest) + k, rest);
      }
      store(x + k, v);
      top = larger(v, top);
    }
    high[at - from] = largest_of<R>(top);
  }
}

// exp(x - high) with the digits that sums have been rounded by; what lies below `low` becomes 0, and the largest of it is
// kept in `dropped`.
template <class R, bool certify> INLINE Vec<R> factor(Vec<R> score, R high, Vec<R> rest, Vec<R> &dropped) {
  Vec<R> depth = sum_with_rest<R>(score, splat(-high), rest), found = exp_of<R>(depth);
  found += found * (found > Vec<R>{} ? rest : Vec<R>{});
  if (certify) {
    Mask<R> low = depth < splat<R>(Limits<R>::low);
    dropped = larger(low ? depth : splat<R>((R)-INF), dropped);
    found = low ? Vec<R>{} : found;
  }
  return found;
}

// x of all positions of a sequence.
template <class R, bool certify> void emissions(const TmChain &c, const Tables<R> &t, Sequence<R> &seq) {
  constexpr int lanes = Real<R>::lanes;
  int64_t K = c.num_labels, Kp = t.Kp, n = seq.n;
  const R *start = (const R *)c.start, *end = (const R *)c.end, *w = (const R *)c.transitions;
  const int64_t *labels = c.labels ? c.labels + seq.b * c.steps : nullptr;
  double tops = 0, far = 0;
  Vec<R> dropped = splat<R>((R)-INF);
  Product whole, gold;
  R high[AHEAD];
  for (int64_t from = 0; from < n; from += AHEAD) {
    int64_t to = from + AHEAD < n ? from + AHEAD : n;
    read(c, t, seq, from, to, high);
    for (int64_t at = from; at < to; at++) {
      R *x = seq.x + at * Kp;
      if (at == 0 || at == n - 1) {
        const R *rest = at == n - 1 ? t.rest + Kp : t.rest;
        for (int64_t k = 0; k < Kp; k += lanes)
          store(x + k, factor<R, certify>(load(x + k), high[at - from], load(rest + k), dropped));
      } else
        for (int64_t k = 0; k < Kp; k += lanes)
          store(x + k, factor<R, certify>(load(x + k), high[at - from], Vec<R>{}, dropped));
      tops += (double)high[at - from];
    }
    for (int64_t at = from; at < to; at++) {
      const R *e = (const R *)c.emissions + (seq.b * c.steps + at) * K, *x = seq.x + at * Kp;
      if (certify) {
        Vec<R> sum{};
        for (int64_t k = 0; k < Kp; k += lanes) sum += load(x + k);
        whole.by(sum_of<R>(sum));
      }
      if (!labels) continue;
      int64_t y = labels[at], before = at ? labels[at - 1] : 0;
      if (y < 0 || y >= K) {
        seq.sound = false;
        return;
      }
      double share = x[y];
      if (share >= Limits<R>::clear)
        gold.by(share);
      else
        far += (double)e[y] + (at == 0 ? (double)start[y] : 0.0) + (at == n - 1 ? (double)end[y] : 0.0) - (double)high[at - from];
      if (at) {
        double move = t.W[before * Kp + y];
        if (move >= Limits<R>::clear)
          gold.by(move);
        else
          far += (double)w[before * K + y] - t.plan->top;
      }
    }
  }
  seq.origin = tops + (double)(n - 1) * t.plan->top;
  seq.gold = gold.log() + far;
  seq.whole = whole.log();
  seq.dropped = larger_of(t.plan->dropped, (double)largest_of<R>(dropped));
}

template <class R> struct Watch {  // of one sequence: the labels found, and those that can be reached from them
  Mask<R> *was, *can, wrong, changed;
  R *found;
};

template <class R> void reachable(const Tables<R> &t, int64_t K, Watch<R> &watch) {
  constexpr int lanes = Real<R>::lanes;
  for (int64_t v = 0; v < t.Kp / lanes; v++) store(watch.found + v * lanes, watch.was[v] ? splat<R>(1) : Vec<R>{});
  const R *from = watch.found;
  product<R, 1>(&from, t.reach, K, t.Kp, [&](int, int64_t v, Vec<R> sum) { watch.can[v] = sum > Vec<R>{}; });
  watch.changed = Mask<R>{};
}

// alpha at the positions from <= t < to.
template <class R, int S, bool certify>
void advance(const TmChain &c, const Tables<R> &t, Sequence<R> *const *seq, Watch<R> *watch, int64_t from, int64_t to) {
  constexpr int lanes = Real<R>::lanes;
  int64_t K = c.num_labels, Kp = t.Kp, every = t.plan->every;
  const Vec<R> clear = splat<R>(Limits<R>::clear);
  for (int64_t at = from; at < to; at++) {
    const R *before[S];
    R *now[S], *x[S];
    Vec<R> inverse[S];
    bool rescale = certify || at % every == 0;
    for (int s = 0; s < S; s++) {
      now[s] = seq[s]->alpha + at * Kp, before[s] = now[s] - Kp, x[s] = seq[s]->x + at * Kp;
      if (at > 0 && rescale) {
        Vec<R> sum{};
        for (int64_t k = 0; k < Kp; k += lanes) sum += load(before[s] + k);
        inverse[s] = splat(unscale(sum_of<R>(sum), seq[s]->exponent));
      } else
        inverse[s] = splat<R>(1);
    }
    auto keep = [&](int s, int64_t v, Vec<R> arrived) __attribute__((always_inline)) {
      int64_t k = v * lanes;
      Vec<R> here = load(x[s] + k), mass = arrived * here;
      if (certify) {
        Watch<R> &w = watch[s];
        Mask<R> has = mass >= clear, can = w.can[v] & (here > Vec<R>{});
        w.wrong |= has ^ can;
        w.changed |= has ^ w.was[v];
        w.was[v] = has;
        store(x[s] + k, has ? here * inverse[s] : Vec<R>{});
        store(now[s] + k, mass * inverse[s]);
      } else if (rescale) {
        store(x[s] + k, here * inverse[s]);
        store(now[s] + k, mass * inverse[s]);
      } else
        store(now[s] + k, mass);
    };
    if (at == 0) {
      for (int s = 0; s < S; s++) {
        if (certify)
          for (int64_t v = 0; v < Kp / lanes; v++) watch[s].can[v] = ~Mask<R>{}, watch[s].was[v] = Mask<R>{};
        for (int64_t v = 0; v < Kp / lanes; v++) keep(s, v, splat<R>(1));
      }
    } else
      product<R, S>(before, t.W, K, Kp, keep);
    if (certify)
      for (int s = 0; s < S; s++)
        if (at == 0 || any<R>(watch[s].changed)) reachable(t, K, watch[s]);
  }
}

// log Z less the gold score, of a labelling that is drawn from its end: each label by alpha * W, given the next. What is
// against a gold label is one sum over the others, whose rounding it shares with nothing; and what adds up is the
// product of one and these odds, less one, so that nothing cancels.
template <class R> double log_against(const TmChain &c, const Tables<R> &t, const Sequence<R> &seq) {
  constexpr int lanes = Real<R>::lanes;
  const int64_t *labels = c.labels + seq.b * c.steps;
  double odds = 0, sum = 0, spread = 0;
  for (int64_t at = 0; at < seq.n; at++) {
    const R *alpha = seq.alpha + at * t.Kp, *into = at + 1 < seq.n ? t.WT + labels[at + 1] * t.Kp : nullptr;
    Vec<R> others{}, label = iota<R>(), gold = splat((R)labels[at]);
    for (int64_t k = 0; k < t.Kp; k += lanes, label += (R)lanes) {
      Vec<R> mass = load(alpha + k);
      if (into) mass *= load(into + k);
      others += label == gold ? Vec<R>{} : mass;
    }
    double own = (double)alpha[labels[at]] * (into ? (double)into[labels[at]] : 1.0);
    double against = (double)sum_of<R>(others) / own;
    odds += against + odds * against;
    double share = against / (1 + against);
    spread += share * share;
    if (odds > 1e200) sum += ::log(odds), odds = 0;
  }
  sum += ::log1p(odds);
  t.coarse[seq.b] = 25 * spread > larger_of(1.0, sum * sum);  // what is against a label is off by 2.5e-7, seldom by 5e-7
  return sum;
}

template <class R, bool certify> void finish(const TmChain &c, const Tables<R> &t, Sequence<R> &seq, const Watch<R> *watch) {
  constexpr int lanes = Real<R>::lanes;
  double value = 0;
  if (seq.n > 0 && seq.sound) {
    Vec<R> sum{};
    for (int64_t k = 0; k < t.Kp; k += lanes) sum += load(seq.alpha + (seq.n - 1) * t.Kp + k);
    double mass = ::log((double)sum_of<R>(sum)) + (double)seq.exponent * LN2;
    value = c.labels ? mass - seq.gold : mass + seq.origin;
    if (c.labels && (value < 7 || value < FAIR * (double)seq.n)) {
      double exact = log_against(c, t, seq);
      value = exact - exact == 0 ? exact : value;
    }
    seq.sound = value - value == 0 && mass - mass == 0;
    if (certify) seq.sound &= !any<R>(watch->wrong) && seq.dropped <= mass - seq.whole - MARGIN;
  }
  c.value[seq.b] = value;
  if (c.result) ((R *)c.result)[seq.b] = (R)value;
  c.sound[seq.b] = seq.sound;
}

template <class R> Sequence<R> sequence(const TmChain &c, const Tables<R> &t, int64_t b, int slot) {
  int64_t n = c.lengths ? c.lengths[b] : c.steps;
  bool valid = n >= 0 && n <= c.steps;
  int64_t at = slot * c.steps * t.Kp;
  return {b, valid ? n : 0, t.alpha + at, t.x + at, valid, 0, 0, -INF, 0, 0};
}

template <class R> R weight_of(const TmChain &c, int64_t b) { return c.grad ? ((const R *)c.grad)[b] : (R)1; }

// cell += v, with what has been rounded off in `lost`.
template <class R> INLINE void add_to(R *cell, R *lost, Vec<R> v) {
  Vec<R> rest = load(lost);
  store(cell, sum_with_rest<R>(load(cell), v, rest));
  store(lost, rest);
}

// Takes the moves of the gold labelling out of what `outer` counts, and counts them by what they lack to 1: in float32
// that is lost between two counts that are nearly equal. Wanted where the labelling is likely.
template <class R> void take_out_gold(const TmChain &c, const Tables<R> &t, const Sequence<R> &seq, R grad) {
  constexpr int lanes = Real<R>::lanes;
  int64_t K = c.num_labels, Kp = t.Kp;
  const int64_t *labels = c.labels + seq.b * c.steps;
  const R *by_emission = (const R *)c.by_emission + seq.b * c.steps * K;
  for (int64_t at = 1; at < seq.n; at++) {
    int64_t from = labels[at - 1], to = labels[at];
    R *alpha = seq.alpha + (at - 1) * Kp, *counts = t.counts + from * Kp, *lost = t.lost + from * Kp;
    const R *u = seq.x + at * Kp, *into = t.WT + to * Kp;
    R share = alpha[from] * grad;
    alpha[from] = 0;
    Vec<R> sum{}, label = iota<R>();
    for (int64_t k = 0; k < Kp; k += lanes, label += (R)lanes) {
      sum += load(alpha + k) * load(into + k);
      add_to(counts + k, lost + k, share * (label == splat<R>((R)to) ? Vec<R>{} : load(u + k)));
    }
    t.moves[from * K + to] += by_emission[at * K + to] - grad * u[to] * sum_of<R>(sum);
  }
}

// counts += weight * sum of alpha_{t-1}' u_t over from <= t < to, for J rows from j on and V vectors from v0 on.
template <class R, int J, int V>
INLINE void outer_block(const Sequence<R> &seq, const Tables<R> &t, int64_t from, int64_t to, int64_t j, int64_t v0, R weight) {
  constexpr int lanes = Real<R>::lanes;
  const int64_t Kp = t.Kp;
  Vec<R> sum[J][V];
  for (int i = 0; i < J; i++)
    for (int v = 0; v < V; v++) sum[i][v] = Vec<R>{};
  const R *a = seq.alpha + (from - 1) * Kp + j, *u = seq.x + from * Kp + v0 * lanes;
  for (int64_t at = from; at < to; at++, a += Kp, u += Kp) {
    Vec<R> now[V];
    for (int v = 0; v < V; v++) now[v] = load(u + v * lanes);
    for (int i = 0; i < J; i++)
      for (int v = 0; v < V; v++) sum[i][v] += splat(a[i]) * now[v];
  }
  for (int i = 0; i < J; i++)
    for (int v = 0; v < V; v++) {
      int64_t cell = (j + i) * Kp + (v0 + v) * lanes;
      add_to(t.counts + cell, t.lost + cell, weight * sum[i][v]);
    }
}

template <class R> void outer(const Sequence<R> &seq, const Tables<R> &t, int64_t K, R weight) {
  constexpr int lanes = Real<R>::lanes, many = lanes < 8 ? lanes : 8, few = lanes < 4 ? lanes : 4;
  constexpr int64_t stretch = 512;  // sums of sums: float32 would lose digits over long sequences
  for (int64_t from = 1; from < seq.n; from += stretch) {
    int64_t to = from + stretch < seq.n ? from + stretch : seq.n;
    if (t.Kp == lanes) {
      for (int64_t j = 0; j < K; j += many) outer_block<R, many, 1>(seq, t, from, to, j, 0, weight);
      continue;
    }
    by_blocks(t.Kp / lanes, [&](int64_t width, int64_t v0) __attribute__((always_inline)) {
      for (int64_t j = 0; j < K; j += few) {
        if (width == 2) outer_block<R, few, 2>(seq, t, from, to, j, v0, weight);
        if (width == 3) outer_block<R, few, 3>(seq, t, from, to, j, v0, weight);
      }
    });
  }
}

template <class R> struct Return {  // of one sequence on its way back
  R grad, beta;  // beta: what all labels have at the last position
  R drift;       // 1 over the sum of alpha * beta at the position before
};

// From u at `from` down to u at `to`, x's place taken by u, and the gradient by emissions on the way.
template <class R, int S>
void retreat(const TmChain &c, const Tables<R> &t, Sequence<R> *const *seq, Return<R> *back, int64_t from, int64_t to) {
  constexpr int lanes = Real<R>::lanes;
  int64_t K = c.num_labels, Kp = t.Kp;
  for (int64_t at = from; at >= to; at--) {
    R *u[S], *d[S];
    const R *after[S], *alpha[S];
    Vec<R> all[S], others[S], gold[S];
    bool probe = t.plan->certify || at % 16 == 0;
    for (int s = 0; s < S; s++) {
      u[s] = seq[s]->x + at * Kp, after[s] = u[s] + Kp, alpha[s] = seq[s]->alpha + at * Kp;
      d[s] = (R *)c.by_emission + (seq[s]->b * c.steps + at) * K;
      all[s] = others[s] = Vec<R>{};
      gold[s] = splat<R>(c.labels ? (R)c.labels[seq[s]->b * c.steps + at] : (R)-1);
    }
    const Vec<R> label = iota<R>();
    auto keep = [&](int s, int64_t v, Vec<R> beta) __attribute__((always_inline)) {
      int64_t k = v * lanes;
      beta *= back[s].drift;
      Vec<R> mass = beta * load(alpha[s] + k);
      store(u[s] + k, beta * load(u[s] + k));
      all[s] += mass;
      others[s] += (label + (R)k) == gold[s] ? Vec<R>{} : mass;
      store_part(d[s] + k, mass * back[s].grad, K - k);
    };
    for (int s = 0; s < S; s++)
      if (at == seq[s]->n - 1)
        for (int64_t v = 0; v < Kp / lanes; v++) keep(s, v, splat(back[s].beta));
    if (at < seq[0]->n - 1) product<R, S>(after, t.WT, K, Kp, keep);
    for (int s = 0; s < S; s++) {
      back[s].drift = 1;
      if (probe) {
        R sum = sum_of<R>(all[s]);
        if (!(::fabs((double)sum - 1) <= Limits<R>::drift)) seq[s]->sound = false;
        back[s].drift = 1 / sum;
      }
      if (c.labels) d[s][c.labels[seq[s]->b * c.steps + at]] = -back[s].grad * sum_of<R>(others[s]);
    }
  }
}

// What a pair adds to the gradient.
template <class R> void gradient(const TmChain &c, const Tables<R> &t, Sequence<R> *const *seq, int pair) {
  constexpr int lanes = Real<R>::lanes;
  int64_t K = c.num_labels, Kp = t.Kp, T = c.steps;
  R *by_emission = (R *)c.by_emission;
  Return<R> back[2];
  for (int s = 0; s < pair; s++) {
    Sequence<R> &one = *seq[s];
    if (!one.sound) one.n = 0;
    memset(by_emission + (one.b * T + one.n) * K, 0, (T - one.n) * K * sizeof(R));
    Vec<R> sum{};
    if (one.n > 0)
      for (int64_t k = 0; k < Kp; k += lanes) sum += load(one.alpha + (one.n - 1) * Kp + k);
    back[s] = {weight_of<R>(c, one.b), 1 / sum_of<R>(sum), 1};
  }
  int64_t shared = pair == 2 ? (seq[0]->n < seq[1]->n ? seq[0]->n : seq[1]->n) : 0;
  for (int s = 0; s < pair; s++)
    if (seq[s]->n > shared) retreat<R, 1>(c, t, seq + s, back + s, seq[s]->n - 1, shared);
  if (shared > 0) {
    if (seq[0]->n == seq[1]->n)
      retreat<R, 2>(c, t, seq, back, shared - 1, 0);
    else {
      int ended = seq[0]->n == shared ? 0 : 1;  // starts here; the other goes on
      retreat<R, 1>(c, t, seq + ended, back + ended, shared - 1, shared - 1);
      retreat<R, 1>(c, t, seq + 1 - ended, back + 1 - ended, shared - 1, shared - 1);
      if (shared > 1) retreat<R, 2>(c, t, seq, back, shared - 2, 0);
    }
  }
  for (int s = 0; s < pair; s++) {
    const Sequence<R> &one = *seq[s];
    c.sound[one.b] &= one.sound;
    if (one.n == 0) continue;
    const R *head = by_emission + one.b * T * K, *tail = head + (one.n - 1) * K;
    for (int64_t k = 0; k < K; k++) {
      t.first[k] += head[k], t.last[k] += tail[k];
      t.plan->first = larger_of(::fabs((double)head[k]), t.plan->first);
      t.plan->last = larger_of(::fabs((double)tail[k]), t.plan->last);
    }
    if (one.n < 2) continue;
    const int64_t *labels = c.labels + one.b * T;
    if (c.labels && c.value[one.b] < LIKELY * (double)one.n)
      take_out_gold(c, t, one, back[s].grad);
    else if (c.labels)
      for (int64_t at = 1; at < one.n; at++) t.moves[labels[at - 1] * K + labels[at]] -= back[s].grad;
    outer(one, t, K, back[s].grad);
  }
}

template <class R, bool certify> void by_pairs(const TmChain &c, const Tables<R> &t) {
  for (int64_t first = 0; first < c.batch; first += 2) {
    int pair = first + 1 < c.batch ? 2 : 1;
    Sequence<R> one[2], *both[2] = {one, one + 1};
    Watch<R> watch[2];
    int64_t vectors = t.Kp / Real<R>::lanes;
    for (int s = 0; s < pair; s++) {
      one[s] = sequence(c, t, t.order[first + s], s);
      watch[s] = {t.was + s * vectors, t.can + s * vectors, Mask<R>{}, Mask<R>{}, t.found + s * t.Kp};
      if (weight_of<R>(c, one[s].b) == 0) one[s].n = 0, one[s].sound = true;
      if (one[s].n > 0) emissions<R, certify>(c, t, one[s]);
      if (!one[s].sound) one[s].n = 0;
    }
    int64_t shared = pair == 2 ? (one[0].n < one[1].n ? one[0].n : one[1].n) : 0;
    if (shared > 0) advance<R, 2, certify>(c, t, both, watch, 0, shared);
    for (int s = 0; s < pair; s++) {
      if (one[s].n > shared) advance<R, 1, certify>(c, t, both + s, watch + s, shared, one[s].n);
      finish<R, certify>(c, t, one[s], watch + s);
    }
    if (c.by_emission) gradient(c, t, both, pair);
  }
}

template <class R> int64_t chain(const TmChain *call);

// Whether a loss is small beside what rounding adds up to over so many steps, a random walk.
INLINE bool small(double value, int64_t n) { return value < 7 || value * value < (double)n; }

void compute_again(const TmChain &c, const Tables<float> &t) {
  Again a = again(c, t.limit);
  int64_t K = c.num_labels, T = c.steps, rows[TOGETHER], many = 0;
  const float *parts[] = {(const float *)c.transitions, (const float *)c.start, (const float *)c.end};
  double *wide[] = {a.transitions, a.start, a.end};
  for (int64_t b = 0; b < c.batch; b++) {
    int64_t n = c.lengths ? c.lengths[b] : T;
    double value = c.value[b];
    bool wanted = c.sound[b] && n > 0 && weight_of<float>(c, b) != 0;  // else nothing is known of its length
    wanted &= !c.labels ? value * value < (double)n : c.by_emission ? t.coarse[b] != 0 : small(value, n);
    if (wanted) {
      const float *e = (const float *)c.emissions + b * T * K;
      for (int64_t i = 0; i < n * K; i++) a.emissions[many * T * K + i] = e[i];
      if (c.labels) memcpy(a.labels + many * T, c.labels + b * T, T * sizeof(int64_t));
      a.lengths[many] = n, rows[many++] = b;
    }
    if (many == 0 || (many < a.chain.batch && b + 1 < c.batch)) continue;
    for (int i = 0; i < 3; i++)
      for (int64_t k = 0; k < (i ? K : K * K); k++) wide[i][k] = parts[i][k];
    TmChain now = a.chain;
    now.batch = many;
    if (!c.labels) now.labels = nullptr;
    chain<double>(&now);
    for (int64_t i = 0; i < many; i++)
      if (now.sound[i]) {
        c.value[rows[i]] = now.value[i];
        if (c.result) ((float *)c.result)[rows[i]] = (float)now.value[i];
      }
    many = 0;
  }
}

// The gradient by transitions, start and end; whether one of them is small beside what it sums.
template <class R> bool put_sums(const TmChain &c, const Tables<R> &t) {
  int64_t K = c.num_labels, Kp = t.Kp;
  double all = 0, part = 0, first = 0, last = 0;
  for (int64_t j = 0; j < K; j++)
    for (int64_t k = 0; k < K; k++) {
      double move = t.moves[j * K + k], count = 0;
      if (t.plan->valid) count = ((double)t.counts[j * Kp + k] + (double)t.lost[j * Kp + k]) * (double)t.W[j * Kp + k];
      ((R *)c.by_transition)[j * K + k] = (R)(count + move);
      all = larger_of(::fabs(count + move), all), part = larger_of(::fabs(count), part);
    }
  for (int64_t k = 0; k < K; k++) {
    ((R *)c.by_start)[k] = (R)t.first[k], ((R *)c.by_end)[k] = (R)t.last[k];
    first = larger_of(::fabs(t.first[k]), first), last = larger_of(::fabs(t.last[k]), last);
  }
  return all < 0.2 * CANCELLED * part || first < CANCELLED * t.plan->first || last < CANCELLED * t.plan->last;
}

template <class R> int64_t chain(const TmChain *call) {
  const TmChain &c = *call;
  FlushDenormals guard;
  Tables<R> t = tables<R>(c, aligned(c.work));
  int64_t K = c.num_labels, Kp = t.Kp, unsound = 0;
  memset(c.sound, 0, c.batch);
  memset(t.coarse, 0, c.batch);
  *t.plan = plan<R>(c);
  if (c.by_emission) {
    memset(t.first, 0, K * sizeof(double));
    memset(t.last, 0, K * sizeof(double));
    memset(t.moves, 0, K * K * sizeof(double));
    memset(t.counts, 0, Kp * Kp * sizeof(R));
    memset(t.lost, 0, Kp * Kp * sizeof(R));
    if (!t.plan->valid) memset(c.by_emission, 0, c.batch * c.steps * K * sizeof(R));
  }
  if (!t.plan->valid) {
    if (c.by_emission) put_sums(c, t);
    for (int64_t b = 0; b < c.batch; b++) unsound += !(c.sound[b] = weight_of<R>(c, b) == 0);
    return unsound;
  }
  tabulate(c, t);
  by_length(c.lengths, c.batch, c.steps, t.order, t.count);
  if (t.plan->certify)
    by_pairs<R, true>(c, t);
  else
    by_pairs<R, false>(c, t);
  if (c.by_emission && put_sums(c, t) && sizeof(R) == sizeof(float) && c.labels)
    for (int64_t b = 0; b < c.batch; b++) c.sound[b] &= weight_of<R>(c, b) == 0;
  if constexpr (sizeof(R) == sizeof(float))
    compute_again(c, t);
  for (int64_t b = 0; b < c.batch; b++) unsound += !c.sound[b];
  return unsound;
}

}  // namespace

TM_EXPORT int64_t tm_chain_work_f32(int64_t batch, int64_t steps, int64_t num_labels) {
  return work<float>(batch, steps, num_labels);
}
TM_EXPORT int64_t tm_chain_work_f64(int64_t batch, int64_t steps, int64_t num_labels) {
  return work<double>(batch, steps, num_labels);
}
TM_EXPORT int64_t tm_chain_f32(const TmChain *c) { return chain<float>(c); }
TM_EXPORT int64_t tm_chain_f64(const TmChain *c) { return chain<double>(c); }
