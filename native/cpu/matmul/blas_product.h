// Matrix products of float64 and float32 by the system's BLAS: on macOS Accelerate, which uses Apple's matrix unit. On
// Linux the dylib's kernels are used, since they share the thread pool with all other operations. A BLAS has a separate
// pool, and two spinning pools compete for cores.
#pragma once

#include "product.h"

namespace orchard {

struct Blas;

// Returns the BLAS that should compute a batch, or null. Loads a BLAS only if the table for the system assigns products
// to it.
const Blas *blas_for(const BatchedProduct &batch);

// Computes the products of a batch one after the other; only one thread at a time calls the BLAS. Operands that a BLAS
// does not support (neither rows nor columns adjacent) are copied first. Throws Failure if memory for the copies can't
// be allocated.
void multiply_by_blas(const Blas &blas, const BatchedProduct &batch);

} // namespace orchard
