// Matrix products of float64 and float32 by the machine's BLAS: Accelerate, which uses Apple's matrix unit. On Linux
// the dylib's kernels are used, as they share the thread pool of all other operations: a BLAS has a separate pool, and
// two spinning pools compete for cores.
#pragma once

#include "product.h"

namespace orchard {

struct Blas;

// Returns the BLAS that should compute a batch, or null. Does not load one unless the system's table assigns it some
// product.
const Blas *blas_for(const BatchedProduct &batch);

// Computes the products of a batch one after the other; only one thread at a time is in the BLAS. Operands that a BLAS
// can't describe (neither rows nor columns adjacent) are copied first. Throws Failure if there is no memory for that.
void multiply_by_blas(const Blas &blas, const BatchedProduct &batch);

} // namespace orchard
