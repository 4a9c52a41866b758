// Vectors of the width that the level has (-DTM_BYTES), and the few functions of them that the loops need.
#pragma once
#include <stdint.h>
#include <string.h>

#ifndef TM_BYTES
#define TM_BYTES 16
#endif
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#define INLINE inline __attribute__((always_inline))

template <class R> struct Real;

template <> struct Real<float> {
  typedef float V __attribute__((vector_size(TM_BYTES), may_alias));
  typedef float U __attribute__((vector_size(TM_BYTES), aligned(4), may_alias));  // at any address
  typedef int32_t I __attribute__((vector_size(TM_BYTES), may_alias));
  typedef float Q __attribute__((vector_size(16)));
  typedef int32_t Int;
  static constexpr int lanes = TM_BYTES / 4, digits = 23, bias = 127;
  static constexpr float log_least = -87.0f;  // where exp leaves the normal numbers
};

template <> struct Real<double> {
  typedef double V __attribute__((vector_size(TM_BYTES), may_alias));
  typedef double U __attribute__((vector_size(TM_BYTES), aligned(8), may_alias));
  typedef int64_t I __attribute__((vector_size(TM_BYTES), may_alias));
  typedef double Q __attribute__((vector_size(16)));
  typedef int64_t Int;
  static constexpr int lanes = TM_BYTES / 8, digits = 52, bias = 1023;
  static constexpr double log_least = -708.0;
};

template <class R> using Vec = typename Real<R>::V;
template <class R> using Mask = typename Real<R>::I;

template <class R> INLINE Vec<R> splat(R a) { return a - Vec<R>{}; }
template <class R> INLINE Vec<R> load(const R *p) { return *(const Vec<R> *)p; }
template <class R> INLINE void store(R *p, Vec<R> v) { *(Vec<R> *)p = v; }

// The larger of two; where a is not a number, b.
INLINE Vec<float> larger(Vec<float> a, Vec<float> b) {
#if TM_BYTES == 64
  return (Vec<float>)_mm512_max_ps((__m512)a, (__m512)b);
#elif TM_BYTES == 32
  return (Vec<float>)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return a > b ? a : b;
#endif
}
INLINE Vec<double> larger(Vec<double> a, Vec<double> b) {
#if TM_BYTES == 64
  return (Vec<double>)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif TM_BYTES == 32
  return (Vec<double>)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
  return a > b ? a : b;
#endif
}

template <class R> INLINE R larger_of(R a, R b) { return a > b ? a : b; }

// The parts of 16 bytes of a vector. Compilers take them through memory unless told how.
template <class R> INLINE void quarters(Vec<R> v, typename Real<R>::Q *part) {
#if TM_BYTES == 64
  part[0] = (typename Real<R>::Q)_mm512_castps512_ps128((__m512)v);
  part[1] = (typename Real<R>::Q)_mm512_extractf32x4_ps((__m512)v, 1);
  part[2] = (typename Real<R>::Q)_mm512_extractf32x4_ps((__m512)v, 2);
  part[3] = (typename Real<R>::Q)_mm512_extractf32x4_ps((__m512)v, 3);
#elif TM_BYTES == 32
  part[0] = (typename Real<R>::Q)_mm256_castps256_ps128((__m256)v);
  part[1] = (typename Real<R>::Q)_mm256_extractf128_ps((__m256)v, 1);
#else
  part[0] = v;
#endif
}

// Folds the lanes of a vector by `join`, halves first.
template <class R, class Join> INLINE R fold(Vec<R> v, Join join) {
  constexpr int parts = TM_BYTES / 16;
  typename Real<R>::Q part[parts];
  quarters<R>(v, part);
  for (int half = parts / 2; half; half /= 2)
    for (int i = 0; i < half; i++) part[i] = join(part[i], part[i + half]);
  if constexpr (sizeof(R) == 8)
    return join(part[0][0], part[0][1]);
  else
    return join(join(part[0][0], part[0][2]), join(part[0][1], part[0][3]));
}
template <class R> INLINE R sum_of(Vec<R> v) {
  return fold<R>(v, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}
template <class R> INLINE R largest_of(Vec<R> v) {
  return fold<R>(v, [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; });
}
template <class R> INLINE bool any(Mask<R> m) {
  int64_t word[TM_BYTES / 8], all = 0;
  memcpy(word, &m, sizeof m);
  for (int i = 0; i < TM_BYTES / 8; i++) all |= word[i];
  return all != 0;
}

// exp of x <= 0 to about one unit in the last place; 0 from where it would leave the normal numbers.
INLINE Vec<float> exp_tail(Vec<float> r) {
  Vec<float> p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p;
}
INLINE Vec<double> exp_tail(Vec<double> r) {
  Vec<double> p = splat(1.0 / 6227020800);
  const double one_over[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                             1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      1.0 / 2};
  for (double c : one_over) p = p * r + c;
  return p;
}
template <class R> INLINE Vec<R> exp_of(Vec<R> x) {
  constexpr bool is_float = sizeof(R) == 4;
  const R high = is_float ? (R)0.693359375 : (R)0.693147180369123816490;
  const R low = is_float ? (R)-2.12194440e-4 : (R)1.90821492927058770002e-10;
  const R magic = is_float ? (R)12582912.0 : (R)6755399441055744.0;  // 1.5 * 2^digits: rounds, and keeps the integer
  const Vec<R> least = splat<R>(Real<R>::log_least);
  Mask<R> dead = x < least;
  x = dead ? least : x;
  Vec<R> shifted = x * (R)1.44269504088896340736 + magic;
  Vec<R> n = shifted - magic;
  Vec<R> r = (x - n * high) - n * low;
  Vec<R> p = exp_tail(r) * (r * r) + r + (R)1;
  Mask<R> power;
  memcpy(&power, &shifted, sizeof power);
  power = (power << Real<R>::digits) + ((typename Real<R>::Int)Real<R>::bias << Real<R>::digits);
  Vec<R> scale;
  memcpy(&scale, &power, sizeof scale);
  return dead ? Vec<R>{} : p * scale;
}

// The power of two that brings a positive number into [1, 2); adds the exponent taken out.
template <class R> INLINE R unscale(R a, int64_t &exponent) {
  typename Real<R>::Int bits;
  memcpy(&bits, &a, sizeof a);
  constexpr int digits = Real<R>::digits, bias = Real<R>::bias;
  int64_t biased = (bits >> digits) & (2 * bias + 1);
  exponent += biased - bias;
  bits = (typename Real<R>::Int)(2 * bias - biased) << digits;
  memcpy(&a, &bits, sizeof a);
  return a;
}

#if TM_BYTES == 64
INLINE Vec<float> load_first(const float *p, int64_t n, Vec<float> rest) {
  return (Vec<float>)_mm512_mask_loadu_ps((__m512)rest, (__mmask16)((1u << n) - 1), p);
}
INLINE Vec<double> load_first(const double *p, int64_t n, Vec<double> rest) {
  return (Vec<double>)_mm512_mask_loadu_pd((__m512d)rest, (__mmask8)((1u << n) - 1), p);
}
INLINE void store_first(float *p, Vec<float> v, int64_t n) {
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
}
INLINE void store_first(double *p, Vec<double> v, int64_t n) {
  _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v);
}
#else
template <class R, int N> INLINE void store_just(R *p, Vec<R> v) { memcpy(p, &v, N * sizeof(R)); }
template <class R> INLINE void store_first(R *p, Vec<R> v, int64_t n) {
  constexpr int lanes = Real<R>::lanes;
#define CASE(N) case N: if constexpr (N < lanes) store_just<R, N>(p, v); return;
  switch (n) {
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
  }
#undef CASE
}
#endif

// n entries of a row of K at k, the last vector filled up; `inner` says that a whole vector may be read.
template <class R> INLINE Vec<R> load_part(const R *p, int64_t n, R fill, bool inner) {
  constexpr int lanes = Real<R>::lanes;
  if (n >= lanes) return *(const typename Real<R>::U *)p;
#if TM_BYTES == 64
  return load_first(p, n, splat(fill));
#else
  if (!inner) {
    Vec<R> v = splat(fill);
    for (int64_t i = 0; i < n; i++) v[i] = p[i];
    return v;
  }
  Vec<R> v = *(const typename Real<R>::U *)p;
  Mask<R> keep;
  for (int i = 0; i < lanes; i++) keep[i] = i;
  keep = keep < (typename Real<R>::Int)n;
  return keep ? v : splat(fill);
#endif
}
template <class R> INLINE void store_part(R *p, Vec<R> v, int64_t n) {
  if (n >= Real<R>::lanes)
    *(typename Real<R>::U *)p = v;
  else
    store_first(p, v, n);
}

INLINE int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Hands out parts of a piece of memory, each at a multiple of 64 bytes; with no memory it only counts.
struct Arena {
  char *at;
  template <class T> T *take(int64_t n) {
    T *part = (T *)at;
    at += round_up(n * (int64_t)sizeof(T), 64);
    return part;
  }
};
INLINE char *aligned(void *p) { return (char *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }

// Numbers below the normal ones are zero while this lives: they have lost digits, and cost a hundred cycles each.
struct FlushDenormals {
#if defined(__SSE__)
  unsigned int before = __builtin_ia32_stmxcsr();
  FlushDenormals() { __builtin_ia32_ldmxcsr(before | 0x8040); }
  ~FlushDenormals() { __builtin_ia32_ldmxcsr(before); }
#elif defined(__aarch64__)
  uint64_t before;
  FlushDenormals() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | (1ull << 24)));
  }
  ~FlushDenormals() { __asm__ volatile("msr fpcr, %0" : : "r"(before)); }
#endif
};

// A sequence order in which neighbours are of like lengths: by counting.
inline void by_length(const int64_t *lengths, int64_t batch, int64_t steps, int64_t *order, int64_t *count) {
  if (!lengths) {
    for (int64_t b = 0; b < batch; b++) order[b] = b;
    return;
  }
  auto clamped = [&](int64_t b) { return lengths[b] < 0 ? 0 : lengths[b] > steps ? steps : lengths[b]; };
  for (int64_t n = 0; n <= steps + 1; n++) count[n] = 0;
  for (int64_t b = 0; b < batch; b++) count[clamped(b) + 1]++;
  for (int64_t n = 0; n <= steps; n++) count[n + 1] += count[n];
  for (int64_t b = 0; b < batch; b++) order[count[clamped(b)]++] = b;
}
