// LAPACK for the matrices of a batch.
//
//   if (const Lapack<T> *library = lapack<T>()) {
//     const int size = lapack_int(n);
//     with_lapack(*library, batch, n * n * n, scratch, [&](int64_t matrix, T *work) { … library->potrf('U', size, a,
//     size) … });
//   }
#pragma once

#include "../lapack.h"
#include "batches.h"

namespace orchard {

// Calls body(matrix, scratch) for each matrix of a batch, where it may call LAPACK; the scratch has so many elements,
// undefined, and is the call's own. Where there are as many matrices as threads, each is computed on one thread; else
// one after the other, with all threads of the library. The body must not throw. See `for_each_matrix`.
template <class T, class Body>
void with_lapack(const Lapack<T> &lapack, int64_t batch, int64_t operations, int64_t elements, Body &&body) {
  const bool is_divided = batch >= thread_count();
  BlasScope scope(lapack.library, is_divided ? BlasThreads::one : BlasThreads::all);
  if (is_divided) return for_each_matrix<T>(batch, operations, elements, body);
  Scratch<T> scratch(elements);
  for (int64_t matrix = 0; matrix < batch; matrix++) body(matrix, scratch.data());
}

} // namespace orchard
