// The end of a round of boosting: the weights and the scores of all rows, by the leaf of each.
#include "abi.h"
#include "vector.h"

// What `torch_multiclass/ops/boosting/reweigh.py` packs.
struct TmReweigh {
  double *channels;           // (M, row): weights with the signs of their labels
  double *scores;             // (M, row)
  const int64_t *leaf;        // (M)
  const int32_t *pattern;     // (M), or null: 0
  const double *up, *down;    // (nodes, P, row): the factors of positive and of negative channels
  const double *step;         // (nodes, P, row)
  int64_t rows, row, patterns;
};

namespace {

template <int W> void reweigh(const TmReweigh &a) {
  typedef double V __attribute__((vector_size(W * 8), aligned(8), may_alias));
  const V zero{};
  for (int64_t i = 0; i < a.rows; i++) {
    const int64_t at = (a.leaf[i] * a.patterns + (a.pattern ? a.pattern[i] : 0)) * a.row;
    double *channel = a.channels + i * a.row, *score = a.scores + i * a.row;
    for (int64_t c = 0; c < a.row; c += W) {
      V *v = (V *)(channel + c);
      *v *= *v > zero ? *(const V *)(a.up + at + c) : *(const V *)(a.down + at + c);
      *(V *)(score + c) += *(const V *)(a.step + at + c);
    }
  }
}

}  // namespace

TM_EXPORT int64_t tm_reweigh(const TmReweigh *a) {
  if (a->row % 8 == 0) reweigh<8>(*a);
  else reweigh<1>(*a);
  return 0;
}
