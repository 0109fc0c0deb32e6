// The dylib's own matrix product, for every dtype but bool and any strides.
#pragma once

#include "product.h"

namespace orchard {

struct MatmulKernels {
  // Null for bool. Runs on all threads; throws Failure where there is no memory.
  void (*multiply[dtype_count])(const MatrixProduct &product);
};

} // namespace orchard

ORCHARD_ISA_TABLE(MatmulKernels, matmul_kernels)
