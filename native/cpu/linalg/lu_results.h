// Results computed from the factors of an LU factorization.
#pragma once

#include "matrices.h"

namespace orchard {

// A = P L U, of k = min(rows, columns) pivots: P is [rows, rows], L [rows, k] and U [k, columns]. Without pivots, P is
// not written.
struct LuPartsBlock {
  DTypeField dtype;
  Whole batch, rows, columns;
  Flag pivot;
};

// The determinant of square matrices, or with `is_logarithm` its sign and log |det|.
struct LuDeterminantBlock {
  DTypeField dtype;
  Whole batch, size;
  Flag is_logarithm;
};

} // namespace orchard
