// The elementwise operations by number, in the order of src/ops/elementwise/codes.ts; a test compares the two.
#pragma once

#include "../dtypes.h"
#include "loop.h"

namespace orchard {

#define ORCHARD_UNARY(use)                                                                                              \
  use(neg) use(abs) use(sign) use(square) use(relu) use(floor) use(ceil) use(round) use(reciprocal) use(sqrt) use(rsqrt) \
  use(exp) use(exp2) use(expm1) use(log) use(log2) use(log10) use(log1p) use(tanh) use(sigmoid) use(erf) use(sin)      \
  use(cos) use(tan) use(gelu) use(geluTanh) use(silu) use(bitwiseNot) use(logicalNot) use(isnan) use(isinf)            \
  use(isfinite)
#define ORCHARD_BINARY(use)                                                                                             \
  use(add) use(sub) use(mul) use(div) use(floorDivide) use(truncDivide) use(remainder) use(fmod) use(pow) use(maximum) \
  use(minimum) use(atan2) use(swiglu) use(geluGradient) use(geluTanhGradient) use(siluGradient) use(bitwiseAnd)        \
  use(bitwiseOr) use(bitwiseXor) use(eq) use(ne) use(lt) use(le) use(gt) use(ge) use(logicalAnd) use(logicalOr)        \
  use(logicalXor)
#define ORCHARD_TERNARY(use) use(where) use(clamp) use(lerp) use(softplus)

#define ORCHARD_CODE(name) name,
enum class Unary : int { ORCHARD_UNARY(ORCHARD_CODE) count };
enum class Binary : int { ORCHARD_BINARY(ORCHARD_CODE) count };
enum class Ternary : int { ORCHARD_TERNARY(ORCHARD_CODE) count };
#undef ORCHARD_CODE

// Rows by operation and dtype of the operands (of the second and third where the first is a condition); null where the operation
// has no meaning for the dtype.
template <class Operation> struct ElementwiseRows {
  ElementwiseRow rows[static_cast<int>(Operation::count)][dtype_count];
};
using UnaryRows = ElementwiseRows<Unary>;
using BinaryRows = ElementwiseRows<Binary>;
using TernaryRows = ElementwiseRows<Ternary>;

} // namespace orchard

ORCHARD_ISA_TABLE(UnaryRows, unary_rows)
ORCHARD_ISA_TABLE(BinaryRows, binary_rows)
ORCHARD_ISA_TABLE(TernaryRows, ternary_rows)
