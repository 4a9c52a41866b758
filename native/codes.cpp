// The search for a code whose rows are far apart: a row as bits, so that a distance is a count of bits, and a code is
// given up at the first two rows that are too near.
#include "codes.h"
#include "vector.h"

namespace {

// Rows as bits: which entries are not 0, and which are negative.
void pack(const TmCodes &c, const int8_t *code, int64_t words) {
  uint64_t *some = c.work, *minus = some + c.rows * words;
  for (int64_t i = 0; i < 2 * c.rows * words; i++) some[i] = 0;
  for (int64_t s = 0; s < c.columns; s++) {
    const int8_t *column = code + s * c.of_column;
    const int64_t word = s / 64, shift = s % 64;
    for (int64_t r = 0; r < c.rows; r++) {
      uint64_t entry = (uint8_t)column[r * c.of_row];
      some[word * c.rows + r] |= (entry & 1) << shift;
      minus[word * c.rows + r] |= (entry >> 7) << shift;
    }
  }
}

// Twice the row distance, L - u.v, surpasses the limit for each two rows.
template <int WORDS> bool apart(const TmCodes &c, int64_t any_words) {
  const int64_t words = WORDS ? WORDS : any_words, K = c.rows;
  const uint64_t *some = c.work, *minus = some + K * words;
  for (int64_t i = 1; i < K; i++)
    for (int64_t j = 0; j < i; j++) {
      int64_t twice = c.columns;
      for (int64_t w = 0; w < words; w++) {
        uint64_t both = some[w * K + i] & some[w * K + j];
        uint64_t against = both & (minus[w * K + i] ^ minus[w * K + j]);
        twice += 2 * __builtin_popcountll(against) - __builtin_popcountll(both);
      }
      if (twice <= c.limit) return false;
    }
  return true;
}

}  // namespace

// The first code from `start` on whose rows are all further apart than the limit; `count` where there is none.
TM_EXPORT int64_t tm_codes_apart(const TmCodes *c) {
  const int64_t words = (c->columns + 63) / 64;
  for (int64_t n = c->start; n < c->count; n++) {
    pack(*c, c->codes + n * c->size, words);
    bool found = words == 1 ? apart<1>(*c, 1) : words == 2 ? apart<2>(*c, 2) : words == 3 ? apart<3>(*c, 3) : apart<0>(*c, words);
    if (found) return n;
  }
  return c->count;
}

// The first of `count` vectors of `rows` entries, `columns` of them a code, of which a code has one without both signs
// or, as far as a number for each tells, two that are equal or opposite; `count` where there is none.
TM_EXPORT int64_t tm_codes_suspect(const TmCodes *c) {
  const uint64_t ones = 0x0101010101010101ull;
  for (int64_t n = c->start; n < c->count; n++) {
    for (int64_t s = 0; s < c->columns; s++) {
      const int8_t *vector = c->codes + n * c->size + s * c->of_column;
      uint64_t flip = 0, key = 0x9e3779b97f4a7c15ull, plus = 0, minus = 0;
      for (int64_t r = 0; r < c->rows; r += 8) {
        uint64_t part = 0, left = c->rows - r < 8 ? c->rows - r : 8;
        memcpy(&part, vector + r, left);
        uint64_t some = part & ones, negative = part >> 7 & ones;
        if (!(plus | minus) && some) flip = (negative & (some & -some)) ? ones : 0;  // the first entry becomes positive
        plus |= some & ~negative;
        minus |= negative;
        key = (key ^ some << 1 ^ ((negative ^ flip) & some)) * 0xff51afd7ed558ccdull;
        key ^= key >> 32;
      }
      if (!plus || !minus) return n;
      for (int64_t other = 0; other < s; other++)
        if (c->work[other] == key) return n;
      c->work[s] = key;
    }
  }
  return c->count;
}
