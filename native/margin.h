// A labelling beside the gold one.
#pragma once
#include "chain.h"
#include "vector.h"

// Whether the gold labels are labels that nothing forbids; of what has the parts of a chain and their sizes.
template <class R, class C> bool possible(const C &c, const int64_t *gold, int64_t b, int64_t n) {
  int64_t K = c.num_labels;
  const R *e = (const R *)c.emissions + b * c.steps * K, *w = (const R *)c.transitions;
  const R *start = (const R *)c.start, *end = (const R *)c.end;
  const int64_t *y = gold + b * c.steps;
  constexpr R none = (R)-__builtin_inf();
  for (int64_t at = 0; at < n; at++, e += K) {
    if (y[at] < 0 || y[at] >= K || !(e[y[at]] > none)) return false;
    if (at && !(w[y[at - 1] * K + y[at]] > none)) return false;
  }
  return n == 0 || (start[y[0]] > none && end[y[n - 1]] > none);
}

// The score of labels less that of the gold ones, difference by difference: nothing large cancels.
template <class R, class C>
double difference_of(const C &c, const int64_t *found, const int64_t *gold, int64_t b, int64_t n) {
  int64_t K = c.num_labels;
  const R *e = (const R *)c.emissions + b * c.steps * K, *w = (const R *)c.transitions;
  const R *start = (const R *)c.start, *end = (const R *)c.end;
  const int64_t *y = found + b * c.steps, *z = gold + b * c.steps;
  if (n == 0) return 0;
  double more = (double)start[y[0]] - (double)start[z[0]];
  for (int64_t at = 0; at < n; at++, e += K) {
    more += (double)e[y[at]] - (double)e[z[at]];
    if (at) more += (double)w[y[at - 1] * K + y[at]] - (double)w[z[at - 1] * K + z[at]];
  }
  return more + ((double)end[y[n - 1]] - (double)end[z[n - 1]]);
}

// The largest of the scores; 0 where that is not finite.
template <class R> double level_of(const R *scores, int64_t n) {
  double most = -__builtin_inf();
  for (int64_t i = 0; i < n; i++) most = (double)scores[i] > most ? (double)scores[i] : most;
  return most > -__builtin_inf() && most < __builtin_inf() ? most : 0;
}
