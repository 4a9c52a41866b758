// What `torch_multiclass/ops/words_native.py` packs for the search for a code.
#pragma once
#include "abi.h"

// n codes of K rows and L columns, entries -1, 0 and +1; an entry is at n * size + row * of_row + column * of_column.
struct TmCodes {
  const int8_t *codes;
  int64_t count, rows, columns, size, of_row, of_column;
  int64_t start;     // the first code to look at
  int64_t limit;     // twice the row distance that has to be surpassed
  uint64_t *work;    // 2 K ceil(L / 64) words
};
