// Matrix products of float64 and float32 by the machine's BLAS.
#pragma once

#include "product.h"

namespace orchard {

struct Blas;

// Whether a BLAS can compute it: it has two dtypes, and its sizes are ints.
bool is_for_blas(const MatrixProduct &product);

// The products of a batch, one after the other; one thread at a time is in the BLAS. Operands that a BLAS can't
// describe (neither rows nor columns adjacent) are copied first. Throws Failure where there is no memory for that.
void multiply_by_blas(const Blas &blas, const BatchedProduct &batch);

} // namespace orchard
