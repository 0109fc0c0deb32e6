// Matrix products of float64 and float32 by the machine's BLAS: by Accelerate, which reaches Apple's matrix unit. On
// Linux the dylib's own serve, whose threads are those of all other operations: a BLAS has threads of its own, and two
// pools that wait in loops take the processors from each other.
#pragma once

#include "product.h"

namespace orchard {

struct Blas;

// The BLAS that is to compute a batch, or null. Does not look for one where no product of the system's table wants it.
const Blas *blas_for(const BatchedProduct &batch);

// The products of a batch, one after the other; one thread at a time is in the BLAS. Operands that a BLAS can't
// describe (neither rows nor columns adjacent) are copied first. Throws Failure where there is no memory for that.
void multiply_by_blas(const Blas &blas, const BatchedProduct &batch);

} // namespace orchard
