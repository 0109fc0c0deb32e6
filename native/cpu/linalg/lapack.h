// LAPACK for the matrices of a batch.
//
//   if (const Lapack<T> *library = lapack<T>()) {
//     const int size = lapack_int(n);
//     with_lapack<T>(
//         *library, {batch, n * n * n, scratch},
//         [&](int64_t matrix, T *work) { copy_elements(a + matrix * n * n, own, n * n); return true; },
//         [&](int64_t matrix, T *work) { … library->potrf('U', size, own, size) … },
//         [&](int64_t matrix, T *work) { … what is done with the result … });
//   }
#pragma once

#include "../lapack.h"
#include "batches.h"

namespace orchard {

// Elements between a matrix and the memory that a routine works in. Where arrays are whole pages apart, loads from one
// wait for stores to the other: eigh of 256 rows took 3.03 ms so, and takes 2.75 ms.
constexpr int64_t between_arrays = 272;

// Matrices for LAPACK: how many, about how many operations one costs, how many elements of scratch it needs, and
// whether the library computes it no slower with one thread than with several.
struct LapackBatch {
  int64_t count, operations, elements;
  bool is_for_one_thread = false;
};

// Calls prepare, compute and finish, each with (matrix, scratch), for every matrix of a batch. Only `compute` may call
// LAPACK, and it is passed over, as is `finish`, where `prepare` returns false. The scratch is the matrix's own, and
// undefined at first. Where there are as many matrices as threads, or several for one thread, each is computed on one;
// else one after the other: `compute` with all threads of the library while ours sleep, or with one, the others with
// ours. None of them may throw. See `for_each_matrix`.
template <class T, class Prepare, class Compute, class Finish>
void with_lapack(const Lapack<T> &lapack, const LapackBatch &batch, Prepare &&prepare, Compute &&compute,
                 Finish &&finish) {
  if (batch.count >= thread_count() || (batch.is_for_one_thread && batch.count > 1)) {
    BlasScope scope(lapack.library, BlasThreads::one);
    return for_each_matrix<T>(batch.count, batch.operations, batch.elements, [&](int64_t matrix, T *scratch) {
      if (!prepare(matrix, scratch)) return;
      compute(matrix, scratch);
      finish(matrix, scratch);
    });
  }
  Scratch<T> scratch(batch.elements);
  for (int64_t matrix = 0; matrix < batch.count; matrix++) {
    if (!prepare(matrix, scratch.data())) continue;
    {
      BlasScope scope(lapack.library, batch.is_for_one_thread ? BlasThreads::one : BlasThreads::all);
      compute(matrix, scratch.data());
    }
    finish(matrix, scratch.data());
  }
}

// Without a last step.
template <class T, class Prepare, class Compute>
void with_lapack(const Lapack<T> &lapack, const LapackBatch &batch, Prepare &&prepare, Compute &&compute) {
  with_lapack<T>(lapack, batch, prepare, compute, [](int64_t, T *) {});
}

} // namespace orchard
