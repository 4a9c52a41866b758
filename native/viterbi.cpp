// The best labelling. Values are kept in float64, where sums of float32 scores are all but exact: equal scores stay
// equal, and ties go to the lowest last label, then backwards. Only max values are stored; the best predecessors are
// found again along the one path that is read back.
#include "chain.h"
#include "layout.h"
#include "margin.h"
#include "products.h"

namespace {

constexpr double INF = __builtin_inf();
constexpr int LANES = Real<double>::lanes;
constexpr int64_t WORTH = 24;  // labels from which on it pays to look for those that cannot be best
constexpr int64_t AHEAD = 16;  // positions whose emissions are read at once: they do not wait for each other
typedef Vec<double> V;

// Two moves into a label that is not open, which may be one.
struct Pair {
  int64_t to, first, from[2];
  double score[2];
};

struct Tables {
  int64_t Kp;
  double *into, *from;  // (Kp, Kp): [from, to] and its transpose, -inf where padded
  double *start, *end;
  double *costs;            // (K, Kp), what labels cost where a label is the gold one; all alike, one row
  // of the moves into open labels, those that no label is barred from: the largest and the smallest from each label
  double *most, *least;
  bool prune;               // whether the smallest tell anything
  int64_t pairs;
  Pair *pair;               // (4 K): the moves into labels that are not open
  // where these come from the label itself or from the one `back` places before it only, as within spans: the scores
  // of either move, -inf where there is none; back is 0 elsewhere
  int64_t back;
  double *stay, *step;
  uint8_t *open;            // (K)
  double *extra[2];         // (Kp), of each sequence of a pair: the best of these moves, -inf for an open label
  int64_t *some[2];         // labels, of each sequence of a pair
  double *values[2], *arrivals[2];  // (T, Kp) of each sequence of a pair
  int64_t *order, *count, *lengths;
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
  t.costs = arena.take<double>(c.costs.matrix ? c.num_labels * t.Kp : t.Kp);
  t.most = arena.take<double>(t.Kp);
  t.least = arena.take<double>(t.Kp);
  t.pair = arena.take<Pair>(4 * c.num_labels);
  t.stay = arena.take<double>(t.Kp);
  t.step = arena.take<double>(t.Kp);
  t.open = arena.take<uint8_t>(c.num_labels);
  t.extra[0] = arena.take<double>(t.Kp);
  t.extra[1] = arena.take<double>(t.Kp);
  t.some[0] = arena.take<int64_t>(t.Kp);
  t.some[1] = arena.take<int64_t>(t.Kp);
  for (int s = 0; s < 2; s++) {
    t.values[s] = arena.take<double>((c.steps + 1) * t.Kp) + t.Kp;  // a row to be read, and not used, before the first
    t.arrivals[s] = arena.take<double>(c.steps * t.Kp);
  }
  t.order = arena.take<int64_t>(c.batch);
  t.count = arena.take<int64_t>(c.steps + 2);
  t.lengths = arena.take<int64_t>(c.batch);
  t.limit = arena.at;
  return t;
}

// What each label costs, the rest of a row being 0.
template <class R> void fill_costs(const TmViterbi &c, Tables &t) {
  int64_t K = c.num_labels, rows = c.costs.matrix ? K : 1;
  memset(t.costs, 0, rows * t.Kp * sizeof(double));
  for (int64_t y = 0; y < rows; y++)
    for (int64_t k = 0; k < K; k++)
      t.costs[y * t.Kp + k] = c.costs.matrix ? (double)((const R *)c.costs.matrix)[y * K + k] : c.costs.cost;
}

// Whether the moves into labels that are not open are from the label itself or from `back` places before it.
void fill_steps(const TmViterbi &c, Tables &t) {
  int64_t K = c.num_labels, Kp = t.Kp;
  t.back = 0;
  for (int64_t k = 0; k < Kp; k++) t.stay[k] = t.step[k] = -INF;
  for (int64_t i = 0; i < t.pairs; i++)
    for (int side = 0; side < 2; side++) {
      int64_t k = t.pair[i].to, back = k - t.pair[i].from[side];
      if (back == 0) {
        t.stay[k] = t.pair[i].score[side];
        continue;
      }
      if (t.back != 0 && back != t.back) {
        t.back = 0;
        return;
      }
      t.back = back;
      t.step[k] = t.pair[i].score[side];
    }
  for (int s = 0; s < 2 && c.batch; s++) memset(t.values[s] - Kp, 0, Kp * sizeof(double));
}

// False where a score is no score: NaN or +inf.
template <class R> bool fill(const TmViterbi &c, Tables &t) {
  const R *w = (const R *)c.transitions, *start = (const R *)c.start, *end = (const R *)c.end;
  bool real = true;
  int64_t K = c.num_labels, Kp = t.Kp;
  double level = c.costs.gold ? level_of(w, K * K) : 0;
  for (int64_t i = 0; i < Kp * Kp; i++) t.into[i] = t.from[i] = -INF;
  for (int64_t j = 0; j < K; j++)
    for (int64_t k = 0; k < K; k++) {
      double score = w[j * K + k];
      real &= score < INF;
      score -= level;
      t.into[j * Kp + k] = t.from[k * Kp + j] = score;
    }
  t.prune = K >= WORTH;
  int64_t open = 0, moves = 0;
  t.pairs = 0;
  for (int64_t k = 0; k < K && t.prune; k++) {
    int64_t legal = 0;
    for (int64_t j = 0; j < K; j++) legal += t.from[k * Kp + j] > -INF;
    t.open[k] = legal == K;
    open += t.open[k];
    if (t.open[k]) continue;
    moves += legal;
    t.prune = moves <= 4 * K;
    int64_t found = 0;
    for (int64_t j = 0; j < K && t.prune; j++) {
      if (!(t.from[k * Kp + j] > -INF)) continue;
      Pair *p = t.pair + t.pairs - found % 2;
      if (found % 2 == 0) *p = {k, found == 0, {j, j}, {t.from[k * Kp + j], t.from[k * Kp + j]}}, t.pairs++;
      else p->from[1] = j, p->score[1] = t.from[k * Kp + j];
      found++;
    }
  }
  t.prune &= open > 0;
  t.back = 0;
  if (t.prune) fill_steps(c, t);
  for (int64_t j = 0; j < Kp; j++) t.most[j] = t.least[j] = t.extra[0][j] = t.extra[1][j] = -INF;
  for (int64_t j = 0; j < K && t.prune; j++) {
    t.least[j] = INF;
    for (int64_t k = 0; k < K; k++) {
      if (!t.open[k]) continue;
      double score = t.into[j * Kp + k];
      t.most[j] = larger_of(score, t.most[j]);
      t.least[j] = score < t.least[j] ? score : t.least[j];
    }
  }
  for (int64_t k = 0; k < Kp; k++) {
    t.start[k] = k < K ? (double)start[k] : 0;
    t.end[k] = k < K ? (double)end[k] : -INF;
    real &= t.start[k] < INF && t.end[k] < INF;
  }
  return real;
}

typedef float Half __attribute__((vector_size(TM_BYTES / 2), aligned(4), may_alias));
typedef double Any __attribute__((vector_size(TM_BYTES), aligned(8), may_alias));
INLINE V wide(const float *p) { return __builtin_convertvector(*(const Half *)p, V); }
INLINE V wide(const double *p) { return *(const Any *)p; }

// In which lanes a is b, at least b, or not below b (nor is a number), as bits.
INLINE uint64_t equal(V a, V b) {
#if TM_BYTES == 64
  return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_EQ_OQ);
#elif TM_BYTES == 32
  return (uint64_t)_mm256_movemask_pd(_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_EQ_OQ));
#else
  Mask<double> same = a == b;
  return (same[0] & 1) | (same[1] & 2);
#endif
}
INLINE uint64_t at_least(V a, V b) { return equal(larger(a, b), a); }
INLINE uint64_t not_below(V a, V b) {
#if TM_BYTES == 64
  return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_NLT_UQ);
#elif TM_BYTES == 32
  return (uint64_t)_mm256_movemask_pd(_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_NLT_UQ));
#else
  Mask<double> below = a < b;
  return (~below[0] & 1) | (~below[1] & 2);
#endif
}

// Emissions of a position less that of the gold label, and what labels cost over `length`; the largest.
double beside(double *out, int64_t Kp, int64_t gold, const double *costs, double length) {
  V top = splat(-INF), own = splat(out[gold]), by = splat(1 / length);
  for (int64_t k = 0; k < Kp; k += LANES) {
    V v = load(out + k) - own + load(costs + k) * by;
    top = larger(v, top);
    store(out + k, v);
  }
  out[gold] = 0;
  return larger_of(largest_of<double>(top), 0.0);
}

// Emissions of a position less the largest, which keeps the digits of their sums; padded by -inf. `inner` says that a
// whole vector may be read where a row ends. With costs, measured from the `gold` label. Not 0 where an emission is NaN
// or +inf, or all are -inf.
template <class R>
INLINE uint64_t emit(const R *e, int64_t K, int64_t Kp, bool inner, V last, double *out, int64_t gold, const double *costs, double length) {
  V top = splat(-INF);
  uint64_t bad = 0;
  for (int64_t k = 0; k < Kp; k += LANES) {
    V v = splat(-INF);
    if (k + LANES <= K)
      v = wide(e + k);
    else if (inner)
      v = last == V{} ? wide(e + k) : v;
    else
      for (int64_t i = k; i < K; i++) v[i - k] = (double)e[i];
    bad |= not_below(v, splat(INF));
    top = larger(v, top);
    store(out + k, v);
  }
  double highest = costs ? beside(out, Kp, gold, costs, length) : largest_of<double>(top);
  for (int64_t k = 0; k < Kp; k += LANES) store(out + k, load(out + k) - highest);
  return bad | (highest == -INF);
}

struct Sequence {
  int64_t b, n;
  bool sound;
  uint64_t bad;  // not 0 where an emission is no score
  double *values, *arrivals;
};

// The labels that the best prefix of some label may come from: those from which the largest transition leads as high as
// the smallest does from another. Few, where scores differ more than transitions do.
INLINE int64_t contenders(const Tables &t, const double *values, int64_t *labels) {
  V highest = splat(-INF);
  for (int64_t k = 0; k < t.Kp; k += LANES) highest = larger(load(values + k) + load(t.least + k), highest);
  V bar = splat(largest_of<double>(highest));
  int64_t n = 0;
  for (int64_t k = 0; k < t.Kp; k += LANES)
    for (uint64_t bits = at_least(load(values + k) + load(t.most + k), bar); bits; bits &= bits - 1)
      labels[n++] = k + __builtin_ctzll(bits);
  return n;
}

// The best moves into the labels that are not open: of those into a label the first two are compared at once, and most
// labels, such as those inside a span, have no more.
INLINE void narrow(const Tables &t, const double *values, double *extra) {
  for (int64_t i = 0; i < t.pairs; i++) {
    const Pair &p = t.pair[i];
    double best = larger_of(values[p.from[0]] + p.score[0], values[p.from[1]] + p.score[1]);
    extra[p.to] = p.first ? best : larger_of(best, extra[p.to]);
  }
}

// The scores of the best prefixes that end in each label (`values`), and the same without the emission (`arrivals`),
// at the positions from <= t < to.
template <class R, int S> void advance(const TmViterbi &c, const Tables &t, Sequence *const *seq, int64_t from, int64_t to) {
  int64_t K = c.num_labels, Kp = t.Kp;
  V last;
  for (int i = 0; i < LANES; i++) last[i] = Kp - LANES + i < K ? 0 : 1;
  for (int64_t at = from; at < to; at++) {
    const double *before[S];
    double *now[S], *arrived[S];
    if ((at - from) % AHEAD == 0)
      for (int s = 0; s < S; s++)
        for (int64_t next = at; next < to && next < at + AHEAD; next++) {
          const R *e = (const R *)c.emissions + (seq[s]->b * c.steps + next) * K;
          bool inner = seq[s]->b + 1 < c.batch || next + 1 < c.steps;
          int64_t gold = c.costs.gold ? c.costs.gold[seq[s]->b * c.steps + next] : 0;
          const double *costs = c.costs.gold ? t.costs + (c.costs.matrix ? gold * Kp : 0) : nullptr;
          double length = c.costs.normalize ? (double)seq[s]->n : 1;
          seq[s]->bad |= emit(e, K, Kp, inner, last, seq[s]->values + next * Kp, gold, costs, length);
        }
    for (int s = 0; s < S; s++)
      now[s] = seq[s]->values + at * Kp, before[s] = now[s] - Kp, arrived[s] = seq[s]->arrivals + at * Kp;
    if (at == 0)
      for (int s = 0; s < S; s++)
        for (int64_t k = 0; k < Kp; k += LANES) store(now[s] + k, load(now[s] + k) + load(t.start + k));
    else {
      auto keep = [&](int s, int64_t v, V sum) __attribute__((always_inline)) {
        store(arrived[s] + v * LANES, sum);
        store(now[s] + v * LANES, load(now[s] + v * LANES) + sum);
      };
      int64_t some[S];
      bool few = t.prune;
      for (int s = 0; s < S && few; s++) few = (some[s] = contenders(t, before[s], t.some[s])) * 2 < K;
      if (!few)
        best<double, S>(before, t.into, K, Kp, keep);
      else
        for (int s = 0; s < S; s++) {
          if (t.back) {
            best_of(before[s], t.into, t.some[s], some[s], Kp, [&](int64_t v, V sum) __attribute__((always_inline)) {
              const double *own = before[s] + v * LANES;
              V moved = larger(wide(own - t.back) + load(t.step + v * LANES), load(own) + load(t.stay + v * LANES));
              keep(s, v, larger(sum, moved));
            });
            continue;
          }
          narrow(t, before[s], t.extra[s]);
          best_of(before[s], t.into, t.some[s], some[s], Kp, [&](int64_t v, V sum) __attribute__((always_inline)) {
            keep(s, v, larger(sum, load(t.extra[s] + v * LANES)));
          });
        }
    }
  }
}

// The lowest label at which a + b is `top`; one more than all if it is at none.
INLINE int64_t lowest(const double *a, const double *b, int64_t Kp, double top) {
  for (int64_t from = 0; from < Kp; from += 64) {
    int64_t to = from + 64 < Kp ? from + 64 : Kp;
    uint64_t found = 0;
    for (int64_t k = from; k < to; k += LANES) found |= equal(load(a + k) + load(b + k), splat(top)) << (k - from);
    if (found) return from + __builtin_ctzll(found);
  }
  return Kp;
}

// The score of a sequence's best labels, of which -inf is no part.
template <class R> double score_of(const TmViterbi &c, const Sequence &seq) {
  const R *e = (const R *)c.emissions + seq.b * c.steps * c.num_labels, *w = (const R *)c.transitions;
  const int64_t *y = c.labels + seq.b * c.steps;
  if (seq.n == 0) return 0;
  double emitted = 0, moved = (double)((const R *)c.start)[y[0]] + (double)((const R *)c.end)[y[seq.n - 1]];
  for (int64_t at = 0; at < seq.n; at++, e += c.num_labels) {
    emitted += (double)e[y[at]];
    if (at) moved += (double)w[y[at - 1] * c.num_labels + y[at]];
  }
  return emitted + moved;
}

// The best last label, and from each label the lowest before it that its best prefix may have come from.
template <int S> void read_back(const TmViterbi &c, const Tables &t, Sequence *const *seq) {
  const double *next[S];
  int64_t *labels[S], most = 0;
  double top[S];
  for (int s = 0; s < S; s++) {
    labels[s] = c.labels + seq[s]->b * c.steps;
    next[s] = t.end;
    for (int64_t at = seq[s]->n; at < c.steps; at++) labels[s][at] = -100;
    if (seq[s]->n == 0) continue;
    const double *values = seq[s]->values + (seq[s]->n - 1) * t.Kp;
    V highest = splat(-INF);
    for (int64_t k = 0; k < t.Kp; k += LANES) highest = larger(load(values + k) + load(t.end + k), highest);
    top[s] = largest_of<double>(highest);
    seq[s]->sound &= top[s] > -INF && top[s] < INF;
    most = larger_of(most, seq[s]->sound ? seq[s]->n : 0);
  }
  for (int64_t at = most - 1; at >= 0; at--)
    for (int s = 0; s < S; s++) {
      if (at >= seq[s]->n || !seq[s]->sound) continue;
      int64_t label = lowest(seq[s]->values + at * t.Kp, next[s], t.Kp, top[s]);
      if (label >= c.num_labels) {
        seq[s]->sound = false;
        continue;
      }
      labels[s][at] = label;
      next[s] = t.from + label * t.Kp;
      top[s] = seq[s]->arrivals[at * t.Kp + label];
    }
}

// What the best labels cost, and their score less that of the gold ones.
template <class R> double loss_of(const TmViterbi &c, const Tables &t, const Sequence &seq) {
  const int64_t *y = c.labels + seq.b * c.steps, *gold = c.costs.gold + seq.b * c.steps;
  double paid = 0;
  for (int64_t at = 0; at < seq.n; at++)
    if (y[at] != gold[at]) paid += t.costs[(c.costs.matrix ? gold[at] * t.Kp : 0) + y[at]];
  return difference_of<R>(c, c.labels, c.costs.gold, seq.b, seq.n) + (c.costs.normalize && seq.n ? paid / (double)seq.n : paid);
}

// How many sequences are not vouched for; one more than all where a mask has holes, and nothing has been computed.
template <class R> int64_t viterbi(const TmViterbi *call) {
  TmViterbi c = *call;
  Tables t = tables(c, aligned(c.work));
  if (c.mask) {
    int64_t found = mask_lengths(c.mask, c.batch, c.steps, t.lengths);
    if (!(found & 2)) return c.batch + 1;
    c.lengths = found & 1 ? nullptr : t.lengths;
  }
  bool real = fill<R>(c, t);
  if (c.costs.gold) fill_costs<R>(c, t);
  by_length(c.lengths, c.batch, c.steps, t.order, t.count);
  int64_t unsound = 0;
  for (int64_t first = 0; first < c.batch; first += 2) {
    int pair = first + 1 < c.batch ? 2 : 1;
    Sequence one[2], *both[2] = {one, one + 1};
    for (int s = 0; s < pair; s++) {
      int64_t b = t.order[first + s], n = c.lengths ? c.lengths[b] : c.steps;
      bool valid = n >= 0 && n <= c.steps;
      one[s] = {b, valid ? n : 0, real && valid, 0, t.values[s], t.arrivals[s]};
      if (c.costs.gold && !possible<R>(c, c.costs.gold, b, one[s].n)) one[s].n = 0, one[s].sound = false;
    }
    int64_t shared = pair == 2 ? (one[0].n < one[1].n ? one[0].n : one[1].n) : 0;
    if (shared > 0) advance<R, 2>(c, t, both, 0, shared);
    Sequence *longer = pair == 2 && one[1].n > shared ? one + 1 : one;
    if (longer->n > shared) advance<R, 1>(c, t, &longer, shared, longer->n);
    for (int s = 0; s < pair; s++) one[s].sound &= one[s].bad == 0;
    if (pair == 2)
      read_back<2>(c, t, both);
    else
      read_back<1>(c, t, both);
    for (int s = 0; s < pair; s++) {
      c.sound[one[s].b] = one[s].sound;
      if (one[s].sound && c.costs.gold) {
        double loss = c.score[one[s].b] = loss_of<R>(c, t, one[s]);
        ((R *)c.costs.value)[one[s].b] = (R)larger_of(loss, 0.0);
        ((R *)c.costs.slope)[one[s].b] = loss < 0 ? 0 : 1;
      } else if (one[s].sound)
        c.score[one[s].b] = score_of<R>(c, one[s]);
      unsound += !one[s].sound;
    }
  }
  return unsound;
}

}  // namespace

TM_EXPORT int64_t tm_viterbi_work(int64_t batch, int64_t steps, int64_t num_labels, int64_t matrix) {
  TmViterbi c{};
  c.costs.matrix = matrix ? &c : nullptr;
  c.batch = batch, c.steps = steps, c.num_labels = num_labels;
  return (int64_t)tables(c, nullptr).limit + 64;
}
TM_EXPORT int64_t tm_viterbi_f32(const TmViterbi *c) { return viterbi<float>(c); }
TM_EXPORT int64_t tm_viterbi_f64(const TmViterbi *c) { return viterbi<double>(c); }
