// Singular value decompositions by LAPACK's gesdd.
#pragma once

#include "lapack.h"
#include "svd.h"

namespace orchard {

// Returns whether LAPACK, if it is available, is faster than rotations.
template <class T> bool is_for_lapack(const SvdBatch<T> &batch);

template <class T> void factorize_all(const Lapack<T> &library, const SvdBatch<T> &batch);

} // namespace orchard
