#pragma once

#include "eigh.h"
#include "lapack.h"

namespace orchard {

// Computes the eigenvalues of `count` matrices, and their eigenvectors if the batch has room for them.
template <class T> void eigh_with_lapack(const Lapack<T> &library, const EighBatch<T> &batch, int64_t count);

} // namespace orchard
