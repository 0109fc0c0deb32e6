// Exponentials of small matrices, by scaling and squaring with a Taylor polynomial.
#pragma once

#include "../../.build/generated/matrix_exp_block.h"

#include "matrices.h"
#include "tuning.h"

namespace orchard {

// `batch` dense matrices of `size` rows. A matrix whose 1-norm is at most limits[i] gets the polynomial of degree
// exponential_degrees[i]; if no limit is as large, it is divided by a power of 2 and gets the last one. The polynomials
// and the limits are those of src/linalg/exponential/taylor.ts.
constexpr int exponential_degrees[] = {1, 2, 4, 8, 12, 18};
constexpr int exponential_limits = std::extent_v<decltype(MatrixExpBlock::limits)>;

// The coefficients, and the largest norm for each degree.
struct ExponentialPlan {
  double limits[exponential_limits];
  double coefficients8[7], coefficients12[16], coefficients18[25];
};

using tuning::exponential::most_exponential_rows;
// Rows in memory are multiples of this number of elements.
constexpr int64_t exponential_unit = 16;
// Padded matrices of scratch memory that a computation needs.
constexpr int64_t exponential_matrices = 12;

template <class T> struct ExponentialKernels {
  // Writes exp(a) of a matrix of n rows to `out`.
  void (*compute)(const T *a, T *out, int64_t n, const ExponentialPlan &plan, T *scratch);
};
using Exponentials = OfReals<ExponentialKernels>;

} // namespace orchard

ORCHARD_ISA_TABLE(Exponentials, exponentials)
