// The best labelling. Values are kept in float64, where sums of float32 scores are all but exact: equal scores stay
// equal, and ties go to the lowest last label, then backwards. Only max values are stored; the best predecessors are
// found again along the one path that is read back.
#include "abi.h"
#include "products.h"

namespace {

constexpr double INF = __builtin_inf();
constexpr int LANES = Real<double>::lanes;
typedef Vec<double> V;

struct Tables {
  int64_t Kp;
  double *into, *from;  // (Kp, Kp): [from, to] and its transpose, -inf where padded
  double *start, *end;
  double *values[2];  // (T, Kp) of each sequence of a pair
  int64_t *order, *count;
  char *limit;
};

Tables tables(const TmViterbi &c, char *memory) {
  Tables t;
  Arena arena{memory};
  t.Kp = round_up(c.num_labels, LANES);
  t.into = arena.take<double>(t.Kp * t.Kp);
  t.from = arena.take<double>(t.Kp * t.Kp);
  t.start = arena.take<double>(t.Kp);
  t.end = arena.take<double>(t.Kp);
  for (double *&values : t.values) values = arena.take<double>(c.steps * t.Kp);
  t.order = arena.take<int64_t>(c.batch);
  t.count = arena.take<int64_t>(c.steps + 2);
  t.limit = arena.at;
  return t;
}

// False where a score is no score: NaN or +inf.
template <class R> bool fill(const TmViterbi &c, const Tables &t) {
  const R *w = (const R *)c.transitions, *start = (const R *)c.start, *end = (const R *)c.end;
  bool real = true;
  int64_t K = c.num_labels, Kp = t.Kp;
  for (int64_t i = 0; i < Kp * Kp; i++) t.into[i] = t.from[i] = -INF;
  for (int64_t j = 0; j < K; j++)
    for (int64_t k = 0; k < K; k++) {
      double score = w[j * K + k];
      real &= score < INF;
      t.into[j * Kp + k] = t.from[k * Kp + j] = score;
    }
  for (int64_t k = 0; k < Kp; k++) {
    t.start[k] = k < K ? (double)start[k] : 0;
    t.end[k] = k < K ? (double)end[k] : -INF;
    real &= t.start[k] < INF && t.end[k] < INF;
  }
  return real;
}

// Emissions of a position less the largest, which keeps the digits of their sums; padded by -inf.
template <class R> INLINE bool emit(const R *e, int64_t K, int64_t Kp, double *out) {
  V top = splat(-INF);
  Mask<double> real = top < splat(INF);
  for (int64_t k = 0; k < Kp; k += LANES) {
    V v;
    for (int i = 0; i < LANES; i++) v[i] = k + i < K ? (double)e[k + i] : -INF;
    real &= v < splat(INF);
    top = larger(v, top);
    store(out + k, v);
  }
  double highest = largest_of<double>(top);
  for (int64_t k = 0; k < Kp; k += LANES) store(out + k, load(out + k) - highest);
  return !any<double>(~real) && highest > -INF;
}

struct Sequence {
  int64_t b, n;
  bool sound;
  double *values;
};

// max_y of the scores of the prefixes that end in each label, at the positions from <= t < to.
template <class R, int S> void advance(const TmViterbi &c, const Tables &t, Sequence *const *seq, int64_t from, int64_t to) {
  int64_t K = c.num_labels, Kp = t.Kp;
  const double *before[S];
  for (int64_t at = from; at < to; at++) {
    double *now[S];
    for (int s = 0; s < S; s++) {
      now[s] = seq[s]->values + at * Kp, before[s] = now[s] - Kp;
      seq[s]->sound &= emit((const R *)c.emissions + (seq[s]->b * c.steps + at) * K, K, Kp, now[s]);
    }
    if (at == 0)
      for (int s = 0; s < S; s++)
        for (int64_t k = 0; k < Kp; k += LANES) store(now[s] + k, load(now[s] + k) + load(t.start + k));
    else
      best<double, S>(before, t.into, K, Kp, [&](int s, int64_t v, V sum) __attribute__((always_inline)) {
        double *p = now[s] + v * LANES;
        store(p, load(p) + sum);
      });
  }
}

INLINE V counting() {
  V iota;
  for (int i = 0; i < LANES; i++) iota[i] = i;
  return iota;
}

// The lowest label of the largest sum.
INLINE int64_t argmax(const double *a, const double *b, int64_t Kp, double &top) {
  V best = splat(-INF), where{}, label = counting();
  for (int64_t k = 0; k < Kp; k += LANES, label += (double)LANES) {
    V v = load(a + k) + load(b + k);
    Mask<double> higher = v > best;
    best = higher ? v : best;
    where = higher ? label : where;
  }
  top = largest_of<double>(best);
  where = best == splat(top) ? -where : splat(-INF);
  return (int64_t)-largest_of<double>(where);
}

void read_back(const TmViterbi &c, const Tables &t, Sequence &seq) {
  int64_t *labels = c.labels + seq.b * c.steps;
  for (int64_t at = seq.n; at < c.steps; at++) labels[at] = -100;
  const double *next = t.end;
  for (int64_t at = seq.n - 1; at >= 0 && seq.sound; at--) {
    double top;
    labels[at] = argmax(seq.values + at * t.Kp, next, t.Kp, top);
    seq.sound = top > -INF && top < INF;
    if (seq.sound) next = t.from + labels[at] * t.Kp;
  }
}

template <class R> int64_t viterbi(const TmViterbi *call) {
  const TmViterbi &c = *call;
  Tables t = tables(c, aligned(c.work));
  bool real = fill<R>(c, t);
  by_length(c.lengths, c.batch, c.steps, t.order, t.count);
  int64_t unsound = 0;
  for (int64_t first = 0; first < c.batch; first += 2) {
    int pair = first + 1 < c.batch ? 2 : 1;
    Sequence one[2], *both[2] = {one, one + 1};
    for (int s = 0; s < pair; s++) {
      int64_t b = t.order[first + s], n = c.lengths ? c.lengths[b] : c.steps;
      bool valid = n >= 0 && n <= c.steps;
      one[s] = {b, valid ? n : 0, real && valid, t.values[s]};
    }
    int64_t shared = pair == 2 ? one[0].n : 0;  // the shorter comes first
    if (shared > 0) advance<R, 2>(c, t, both, 0, shared);
    Sequence *longer = one + pair - 1;
    if (longer->n > shared) advance<R, 1>(c, t, &longer, shared, longer->n);
    for (int s = 0; s < pair; s++) {
      read_back(c, t, one[s]);
      c.sound[one[s].b] = one[s].sound;
      unsound += !one[s].sound;
    }
  }
  return unsound;
}

}  // namespace

TM_EXPORT int64_t tm_viterbi_work(const TmViterbi *c) { return (int64_t)(tables(*c, nullptr).limit - (char *)nullptr) + 64; }
TM_EXPORT int64_t tm_viterbi_f32(const TmViterbi *c) { return viterbi<float>(c); }
TM_EXPORT int64_t tm_viterbi_f64(const TmViterbi *c) { return viterbi<double>(c); }
