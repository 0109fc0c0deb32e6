// The Hessenberg and Schur forms of a real matrix. Rows are `stride` elements apart, a multiple of the lanes of any
// vector, and zeros follow the n elements of a row.
#pragma once

#include "../isa.h"

#include <cstdint>

namespace orchard {

// A matrix, and the matrix of its transformations, which is null if only eigenvalues are computed.
struct RealProblem {
  double *a, *q;
  int64_t n, stride;

  static constexpr int64_t widest_lanes = 8;
  // Rows that are a whole number of 512 bytes apart would share few cache sets.
  static int64_t stride_of(int64_t n) {
    const int64_t whole = (n + widest_lanes - 1) / widest_lanes * widest_lanes;
    return whole % 64 == 0 ? whole + widest_lanes : whole;
  }
};

struct SchurKernels {
  // Replaces A by H in A = Q H Qᵀ, and computes Q. H is 0 below the diagonal under the main one. The first row and the
  // first column of Q are those of the identity. `work` has 8 strides.
  void (*to_hessenberg)(const RealProblem &problem, double *work);
  // Replaces a Hessenberg matrix by its Schur form, and multiplies Q by the same transformations. Without Q, only the
  // eigenvalues are valid. Returns whether the iteration converged. 2 x 2 blocks remain for pairs of conjugates, of
  // which the one with a positive imaginary part is first.
  bool (*to_schur)(const RealProblem &problem, double *re, double *im);
};

} // namespace orchard

ORCHARD_ISA_TABLE(SchurKernels, schur_kernels)
