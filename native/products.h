// Products of a few row vectors with one padded table, each result handed on while it is in a register.
#pragma once
#include "vector.h"

constexpr int WIDEST = 3;  // vectors of a row to be held at a time

// then(s, v, sum) for s < S and v0 <= v < v0 + V, where sum is the v-th vector of a[s] W.
// The order of the additions depends on K only, so that no sequence depends on which others it is paired with.
template <class R, int S, int V, int P, class Then>
INLINE void product_block(const R *const *a, const R *W, int64_t K, int64_t Kp, int64_t v0, Then then) {
  constexpr int lanes = Real<R>::lanes;
  constexpr int64_t stretch = 32;  // sums of sums keep digits
  Vec<R> sum[P][S][V], total[S][V];
  const R *at = W + v0 * lanes;
  for (int64_t from = 0; from < K; from += stretch) {
    int64_t to = from + stretch < K ? from + stretch : K;
    for (int p = 0; p < P; p++)
      for (int s = 0; s < S; s++)
        for (int v = 0; v < V; v++) sum[p][s][v] = Vec<R>{};
    for (int64_t j = from; j < to; j += P, at += P * Kp)  // what is past K is zero
      for (int p = 0; p < P; p++) {
        Vec<R> w[V];
        for (int v = 0; v < V; v++) w[v] = load(at + p * Kp + v * lanes);
        for (int s = 0; s < S; s++)
          for (int v = 0; v < V; v++) sum[p][s][v] += splat(a[s][j + p]) * w[v];
      }
    for (int half = P / 2; half; half /= 2)
      for (int p = 0; p < half; p++)
        for (int s = 0; s < S; s++)
          for (int v = 0; v < V; v++) sum[p][s][v] += sum[p + half][s][v];
    for (int s = 0; s < S; s++)
      for (int v = 0; v < V; v++) total[s][v] = from ? total[s][v] + sum[0][s][v] : sum[0][s][v];
  }
  for (int s = 0; s < S; s++)
    for (int v = 0; v < V; v++) then(s, v0 + v, total[s][v]);
}

// The same of max-plus: the v-th vector of max_j a[s][j] + W[j].
template <class R, int S, int V, int P, class Then>
INLINE void best_block(const R *const *a, const R *W, int64_t K, int64_t Kp, int64_t v0, Then then) {
  constexpr int lanes = Real<R>::lanes;
  Vec<R> best[P][S][V];
  for (int p = 0; p < P; p++)
    for (int s = 0; s < S; s++)
      for (int v = 0; v < V; v++) best[p][s][v] = splat<R>((R)-__builtin_inf());
  const R *at = W + v0 * lanes;
  for (int64_t j = 0; j < K; j += P, at += P * Kp)
    for (int p = 0; p < P; p++) {
      Vec<R> w[V];
      for (int v = 0; v < V; v++) w[v] = load(at + p * Kp + v * lanes);
      for (int s = 0; s < S; s++)
        for (int v = 0; v < V; v++) best[p][s][v] = larger(splat(a[s][j + p]) + w[v], best[p][s][v]);
    }
  for (int half = P / 2; half; half /= 2)
    for (int p = 0; p < half; p++)
      for (int s = 0; s < S; s++)
        for (int v = 0; v < V; v++) best[p][s][v] = larger(best[p][s][v], best[p + half][s][v]);
  for (int s = 0; s < S; s++)
    for (int v = 0; v < V; v++) then(s, v0 + v, best[0][s][v]);
}

// The same over the n labels of a list, for one vector.
template <class R, int V, class Then>
INLINE void best_of_block(const R *a, const R *W, const int64_t *labels, int64_t n, int64_t Kp, int64_t v0, Then then) {
  constexpr int lanes = Real<R>::lanes;
  Vec<R> best[V];
  for (int v = 0; v < V; v++) best[v] = splat<R>((R)-__builtin_inf());
  for (int64_t i = 0; i < n; i++) {
    const R *w = W + labels[i] * Kp + v0 * lanes;
    Vec<R> from = splat(a[labels[i]]);
    for (int v = 0; v < V; v++) best[v] = larger(from + load(w + v * lanes), best[v]);
  }
  for (int v = 0; v < V; v++) then(v0 + v, best[v]);
}

// Calls block(V, v0) so that blocks of at most WIDEST and nearly equal widths cover the vectors of a row. Of two or more
// vectors none is left alone.
template <class Block> INLINE void by_blocks(int64_t vectors, Block block) {
  int64_t v0 = 0;
  for (int64_t left = (vectors + WIDEST - 1) / WIDEST; left > 0; left--) {
    int64_t width = left == 1 ? vectors - v0 : (vectors - v0 + left - 1) / left;
    block(width, v0);
    v0 += width;
  }
}

template <class R, int S, class Then>
INLINE void product(const R *const *a, const R *W, int64_t K, int64_t Kp, Then then) {
  constexpr int lanes = Real<R>::lanes;
  if (Kp == lanes) return product_block<R, S, 1, lanes < 4 ? lanes : 4>(a, W, K, Kp, 0, then);
  by_blocks(Kp / lanes, [&](int64_t width, int64_t v0) __attribute__((always_inline)) {
    if (width == 2) product_block<R, S, 2, 2>(a, W, K, Kp, v0, then);
    if (width == 3) product_block<R, S, 3, 2>(a, W, K, Kp, v0, then);
  });
}

template <class R, int S, class Then>
INLINE void best(const R *const *a, const R *W, int64_t K, int64_t Kp, Then then) {
  constexpr int lanes = Real<R>::lanes;
  if (Kp == lanes) return best_block<R, S, 1, lanes < 4 ? lanes : 4>(a, W, K, Kp, 0, then);
  by_blocks(Kp / lanes, [&](int64_t width, int64_t v0) __attribute__((always_inline)) {
    if (width == 2) best_block<R, S, 2, 2>(a, W, K, Kp, v0, then);
    if (width == 3) best_block<R, S, 3, 2>(a, W, K, Kp, v0, then);
  });
}

template <class R, class Then>
INLINE void best_of(const R *a, const R *W, const int64_t *labels, int64_t n, int64_t Kp, Then then) {
  by_blocks(Kp / Real<R>::lanes, [&](int64_t width, int64_t v0) __attribute__((always_inline)) {
    if (width == 1) best_of_block<R, 1>(a, W, labels, n, Kp, v0, then);
    if (width == 2) best_of_block<R, 2>(a, W, labels, n, Kp, v0, then);
    if (width == 3) best_of_block<R, 3>(a, W, labels, n, Kp, v0, then);
  });
}
