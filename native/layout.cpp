// Which positions of a padded batch count, and whether all of them carry a label: one look at each entry.
#include "abi.h"

// Writes how many positions of each row of `mask (B, T)` count. The answer adds 1 where all count, 2 where in every row
// those that count come first.
TM_EXPORT int64_t tm_mask_lengths(const uint8_t *mask, int64_t batch, int64_t steps, int64_t *lengths) {
  bool all = true, left = true;
  for (int64_t b = 0; b < batch; b++, mask += steps) {
    int64_t count = 0, turns = 0;
    for (int64_t t = 0; t < steps; t++) count += mask[t] != 0, turns += t > 0 && mask[t] && !mask[t - 1];
    lengths[b] = count;
    all &= count == steps;
    left &= turns == 0 && (count == 0 || mask[0]);
  }
  return all + 2 * left;
}

// Writes the labels that count, and 0 for the others; whether none that counts is `missing`.
TM_EXPORT int64_t tm_mask_labels(const uint8_t *mask, const int64_t *labels, int64_t n, int64_t missing, int64_t *out) {
  bool known = true;
  for (int64_t i = 0; i < n; i++) {
    known &= !mask[i] || labels[i] != missing;
    out[i] = mask[i] ? labels[i] : 0;
  }
  return known;
}
