// Which positions of a padded batch count: one look at each entry.
#pragma once
#include "abi.h"

// Writes how many positions of each row of `mask (B, T)` count. The answer adds 1 where all count, 2 where in every row
// those that count come first.
inline int64_t mask_lengths(const uint8_t *mask, int64_t batch, int64_t steps, int64_t *lengths) {
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
