// Tables of the elementwise operations of each instruction set: their names and row functions.
#pragma once

#include "../dtypes.h"
#include "row.h"

namespace orchard {

// Row functions, indexed by the dtype of the operands, or of the second and third operand if the first is a condition.
// Null if the operation does not support the dtype.
struct ElementwiseOperation {
  const char *name;
  bool is_predicate;  // the result is bool
  bool divides;       // an integer divisor of 0 is an error
  bool has_condition; // the first operand is bool
  ElementwiseRow rows[dtype_count];
};

struct ElementwiseOperations {
  const ElementwiseOperation *first;
  int64_t count;
};

} // namespace orchard

ORCHARD_ISA_TABLE(ElementwiseOperations, unary_operations)
ORCHARD_ISA_TABLE(ElementwiseOperations, binary_operations)
ORCHARD_ISA_TABLE(ElementwiseOperations, ternary_operations)
