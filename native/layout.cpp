// Which positions of a padded batch count, and whether all of them carry a label.
#include "layout.h"

TM_EXPORT int64_t tm_mask_lengths(const uint8_t *mask, int64_t batch, int64_t steps, int64_t *lengths) {
  return mask_lengths(mask, batch, steps, lengths);
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
