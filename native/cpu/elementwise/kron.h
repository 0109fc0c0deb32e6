// Kronecker products of two matrices.
#pragma once

// Dense matrices of one float dtype: a is [rows, columns], b is [other_rows, other_columns].
#include "../../.build/generated/kron_block.h"

#include "../bounds.h"
#include "../isa.h"

namespace orchard {

struct KronOperands {
  const void *a, *b;
  void *out;
  int64_t columns, other_rows, other_columns;
};

// Computes rows [begin, end) of the result.
using KronRows = void (*)(const KronOperands &operands, int64_t begin, int64_t end);
struct KronKernels {
  KronRows rows[4]; // by dtype: float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(KronKernels, kron_kernels)
