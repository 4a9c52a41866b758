// Which positions of a padded batch count, and whether all of them carry a label.
#include "layout.h"

TM_EXPORT int64_t tm_mask_lengths(const uint8_t *mask, int64_t batch, int64_t steps, int64_t *lengths) {
  return mask_lengths(mask, batch, steps, lengths);
}

// Writes the labels that count, and 0 for the others; whether all of them are labels, from 0 to num_labels - 1.
TM_EXPORT int64_t tm_mask_labels(const uint8_t *mask, const int64_t *labels, int64_t n, int64_t num_labels, int64_t *out) {
  bool known = true;
  for (int64_t i = 0; i < n; i++) {
    out[i] = mask[i] ? labels[i] : 0;
    known &= (uint64_t)out[i] < (uint64_t)num_labels;
  }
  return known;
}
