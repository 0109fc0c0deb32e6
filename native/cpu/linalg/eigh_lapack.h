#pragma once

#include "eigh.h"
#include "lapack.h"

namespace orchard {

// The eigenvalues, and the eigenvectors where there is room for them, of `count` matrices.
template <class T> void eigh_with_lapack(const Lapack<T> &library, const EighBatch<T> &batch, int64_t count);

} // namespace orchard
