// The best score of another class than the label, row by row: one look at each score.
#include "abi.h"
#include "vector.h"

// What `torch_multiclass/ops/rivals.py` packs.
struct TmRivals {
  const void *scores;  // (n, K), K >= 2
  const int64_t *labels;  // (n)
  const void *costs;      // (K, K), or null
  int64_t rows, classes;
  double margin;
  int64_t rescaled;
  void *hinge;     // (n): [margin + best rival - label]_+; with costs [max_k L(y, k) + score_k - label]_+,
                   // rescaled max_k L(y, k) [margin + score_k - label]_+
  int64_t *rival;  // (n), the lowest class among the best
};

namespace {

template <class R> INLINE Vec<R> any_vector(const R *p) { return *(const typename Real<R>::U *)p; }

// The largest of n scores and `best`; `bad` where one is no number.
template <class R> INLINE R best_of(const R *p, int64_t n, R best, bool &bad) {
  constexpr int lanes = Real<R>::lanes;
  Vec<R> top = splat(best);
  Mask<R> odd{};
  int64_t k = 0;
  for (; k + lanes <= n; k += lanes) {
    Vec<R> v = any_vector(p + k);
    odd |= v != v;
    top = larger(v, top);
  }
  if (k) best = largest_of<R>(top), bad |= any<R>(odd);
  for (; k < n; k++) bad |= p[k] != p[k], best = larger_of(p[k], best);
  return best;
}

// The first of n scores that is `best`; n where none is.
template <class R> INLINE int64_t first_of(const R *p, int64_t n, R best) {
  constexpr int lanes = Real<R>::lanes;
  int64_t k = 0;
  while (k + lanes <= n && !any<R>(any_vector(p + k) == splat(best))) k += lanes;
  while (k < n && p[k] != best) k++;
  return k;
}

template <class R> struct Slack {  // of scores with costs
  R own, margin;
  bool rescaled;
  template <class V> INLINE V of(V score, V cost, V least) const {
    V d = score - own;
    return rescaled ? larger_of_two(least, d + margin) * cost : d + cost;
  }
  static INLINE R larger_of_two(R a, R b) { return larger_of(a, b); }
  static INLINE Vec<R> larger_of_two(Vec<R> a, Vec<R> b) { return larger(a, b); }
};

// The largest slack of the n classes, and the first that has it.
template <class R> INLINE R worst_of(const R *scores, const R *costs, int64_t n, Slack<R> slack, int64_t &at, bool &bad) {
  constexpr int lanes = Real<R>::lanes;
  Vec<R> top = splat((R)-__builtin_inf()), zero = splat((R)0);
  Mask<R> odd{};
  R best = (R)-__builtin_inf();
  int64_t k = 0;
  for (; k + lanes <= n; k += lanes) {
    Vec<R> v = slack.of(any_vector(scores + k), any_vector(costs + k), zero);
    odd |= v != v;
    top = larger(v, top);
  }
  if (k) best = largest_of<R>(top), bad |= any<R>(odd);
  for (; k < n; k++) {
    R v = slack.of(scores[k], costs[k], (R)0);
    bad |= v != v, best = larger_of(v, best);
  }
  Vec<R> wanted = splat(best);
  for (k = 0; k + lanes <= n; k += lanes)
    if (any<R>(slack.of(any_vector(scores + k), any_vector(costs + k), zero) == wanted)) break;
  while (k < n && slack.of(scores[k], costs[k], (R)0) != best) k++;
  at = k;
  return best;
}

template <class R> int64_t rivals(const TmRivals &c) {
  bool bad = false;
  for (int64_t i = 0; i < c.rows; i++) {
    const R *row = (const R *)c.scores + i * c.classes;
    int64_t y = c.labels[i], after = c.classes - y - 1;
    if (c.costs) {
      Slack<R> slack{row[y], (R)c.margin, c.rescaled != 0};
      R worst = worst_of(row, (const R *)c.costs + y * c.classes, c.classes, slack, c.rival[i], bad);
      ((R *)c.hinge)[i] = larger_of(worst, (R)0);
      continue;
    }
    R best = best_of(row, y, (R)-__builtin_inf(), bad);
    best = best_of(row + y + 1, after, best, bad);
    int64_t rival = first_of(row, y, best);
    c.rival[i] = rival < y ? rival : y + 1 + first_of(row + y + 1, after, best);
    R hinge = best - row[y] + (R)c.margin;
    bad |= hinge != hinge;
    ((R *)c.hinge)[i] = larger_of(hinge, (R)0);
  }
  return bad;
}

}  // namespace

// 1 where a score is no number: what has been written means nothing then.
TM_EXPORT int64_t tm_rivals_f32(const TmRivals *c) { return rivals<float>(*c); }
TM_EXPORT int64_t tm_rivals_f64(const TmRivals *c) { return rivals<double>(*c); }
