// Runs LAPACK on the matrices of a batch.
//
//   if (const Lapack<T> *library = lapack<T>()) {
//     const int size = lapack_int(n);
//     with_lapack<T>(
//         *library, {batch, n * n * n, scratch},
//         [&](int64_t matrix, T *work) { copy_elements(a + matrix * n * n, copy, n * n); return true; },
//         [&](int64_t matrix, T *work) { … library->potrf('U', size, copy, size) … },
//         [&](int64_t matrix, T *work) { … use the result … });
//   }
#pragma once

#include "../lapack.h"
#include "batches.h"
#include "tuning.h"

namespace orchard {

using tuning::passes::between_arrays;

// Matrices for LAPACK: their count, the approximate operations and the scratch elements of each, and whether the
// library is at least as fast with one thread as with several.
struct LapackBatch {
  int64_t count, operations, elements;
  bool is_for_one_thread = false;
};

// Calls prepare, compute and finish, each with (matrix, scratch), for every matrix of a batch. Only `compute` may call
// LAPACK. If `prepare` returns false, `compute` and `finish` are skipped. The scratch is uninitialized and serves one
// matrix at a time. If there are as many matrices as threads, or several and the library is best with one thread, each
// matrix is computed on one thread. Otherwise the matrices are computed one after the other: `compute` uses all threads
// of the library while the dylib's pool sleeps, or one of the library's threads; `prepare` and `finish` use the pool.
// The callbacks must not throw. See `for_each_matrix`.
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

// Like the other `with_lapack`, without `finish`.
template <class T, class Prepare, class Compute>
void with_lapack(const Lapack<T> &lapack, const LapackBatch &batch, Prepare &&prepare, Compute &&compute) {
  with_lapack<T>(lapack, batch, prepare, compute, [](int64_t, T *) {});
}

} // namespace orchard
