// The row functions of recorded calls, for code that computes parts of them.
#pragma once

#include "../dtypes.h"
#include "loop.h"

namespace orchard {

struct ElementwiseCall {
  int operands; // with the result, which is the last
  int64_t operation;
  DType dtype;
  ElementwiseRow row;
  int64_t sizes[max_operands]; // of an element in bytes
};

// Describes a call of "unary", "binary" or "ternary". Returns false for other functions, and for calls that first check
// their operands. Throws Failure if there is no such operation.
bool describe_call(const char *function, const double *block, ElementwiseCall &call);

} // namespace orchard
