// The end of a round of boosting: the weights and the scores of all rows, by the leaf of each.
#include "abi.h"

// What `torch_multiclass/ops/boosting/reweigh.py` packs.
struct TmReweigh {
  double *channels;           // (M, C)
  double *scores;             // (M, K)
  const int64_t *leaf;        // (M)
  const double *up, *down;    // (nodes, C): the factors of positive and of negative channels
  const double *step;         // (nodes, K)
  int64_t rows, width, columns;
};

TM_EXPORT int64_t tm_reweigh(const char *packed) {
  const TmReweigh &a = *reinterpret_cast<const TmReweigh *>(packed);
  for (int64_t i = 0; i < a.rows; ++i) {
    const int64_t at = a.leaf[i];
    double *channel = a.channels + i * a.width, *score = a.scores + i * a.columns;
    const double *up = a.up + at * a.width, *down = a.down + at * a.width, *step = a.step + at * a.columns;
    for (int64_t c = 0; c < a.width; ++c) channel[c] *= channel[c] > 0 ? up[c] : down[c];
    for (int64_t c = 0; c < a.columns; ++c) score[c] += step[c];
  }
  return 0;
}
