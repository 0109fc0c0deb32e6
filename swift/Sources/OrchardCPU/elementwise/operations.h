// The elementwise operations by number, in the order of src/ops/elementwise/codes.ts; a test compares the two.
#pragma once

#include "../dtypes.h"
#include "loop.h"

namespace orchard {

#define ORCHARD_UNARY(use) use(neg) use(exp)
#define ORCHARD_BINARY(use) use(add) use(sub) use(mul) use(div)

#define ORCHARD_COUNT(name) +1
inline constexpr int unary_count = 0 ORCHARD_UNARY(ORCHARD_COUNT);
inline constexpr int binary_count = 0 ORCHARD_BINARY(ORCHARD_COUNT);
#undef ORCHARD_COUNT

// By operation and dtype of the operands; null where the operation has no meaning for the dtype.
struct UnaryRows {
  ElementwiseRow rows[unary_count][dtype_count];
};
struct BinaryRows {
  ElementwiseRow rows[binary_count][dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(UnaryRows, unary_rows)
ORCHARD_ISA_TABLE(BinaryRows, binary_rows)
