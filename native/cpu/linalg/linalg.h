// Factorisations of small and medium matrices, row-major without gaps. Each works on one matrix; batches are divided
// among threads.
#pragma once

#include "../block.h"

namespace orchard {

struct CholeskyBlock {
  DTypeField dtype;
  Whole batch;
  Whole size;
};

struct SolveTriangularBlock {
  DTypeField dtype;
  Whole batch;
  Whole rows;
  Whole columns;
  Flag upper;
  Flag unit_diagonal;
};

// X of A X = B for a triangular A of n x n, which replaces B: `columns` of its columns, whose rows are `stride` apart.
template <class T> struct TriangularSystem {
  const T *a;
  T *b;
  int64_t n, columns, stride;
  bool upper, unit_diagonal;
};

template <class T> struct LinalgKernel {
  // Replaces A by L of A = L Lᵀ, reading the lower triangle. Returns the order of the first leading minor that is not
  // positive, from which on L is 0; or 0.
  int64_t (*cholesky)(T *a, int64_t n);
  void (*solve_triangular)(const TriangularSystem<T> &system);
};

struct LinalgKernels {
  LinalgKernel<double> float64;
  LinalgKernel<float> float32;
  template <class T> const LinalgKernel<T> &of() const {
    if constexpr (sizeof(T) == 8) return float64;
    else return float32;
  }
};

// Calls use(T{}) for the type in which a dtype is computed.
template <class Use> void with_real(DType dtype, Use &&use) {
  if (dtype == DType::float64) return use(double{});
  if (dtype == DType::float32) return use(float{});
  fail(ORCHARD_CPU_UNSUPPORTED,
       std::string("expected float32 or float64, got ") + dtype_names[static_cast<int>(dtype)]);
}

// Matrices that one task takes, where each costs about `operations`: a task should be worth 10 µs.
inline int64_t matrices_of_task(int64_t operations) { return std::max<int64_t>(1, (1 << 16) / (operations + 1)); }

} // namespace orchard

ORCHARD_ISA_TABLE(LinalgKernels, linalg_kernels)
