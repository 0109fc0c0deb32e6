// Reductions: how one operation on one dtype makes a state of elements, merges states, and makes results of them.
#pragma once

#include "nest.h"

namespace orchard {

// In the order of `reductionNames` in src/ops/reduction/names.ts.
enum class Reduction : int {
  sum, mean, prod, amax, amin, all, any, norm0, norm1, norm2, norm_inf, norm_neg_inf, norm_p, var, std, logsumexp, max, min
};
inline constexpr int reduction_count = 18;

// What an operation knows beside its elements.
struct ReductionFacts {
  int64_t count;    // elements that become one result
  double parameter; // p of a norm, correction of a variance
  DType out;        // of the results
};

// The functions of one operation on one dtype. A state is `state_bytes` bytes.
struct ReductionKernel {
  size_t state_bytes;
  // Of the elements [begin, end) of a nest.
  void (*row)(const void *in, const Nest &reduced, int64_t begin, int64_t end, const ReductionFacts &, void *state);
  // The same for each of `width` adjacent columns; the state of column j is `step` states after that of column j - 1.
  void (*columns)(const void *in, int64_t width, const Nest &reduced, int64_t begin, int64_t end, const ReductionFacts &, void *states, int64_t step);
  // Merges adjacent states in the order of their elements into the first, as a binary tree of fixed shape.
  void (*merge)(void *states, int64_t count, const ReductionFacts &);
  // Results of states that are `step` apart, to elements that are `out_stride` apart. `indices` is null but for max and min.
  void (*finish)(const void *states, int64_t step, int64_t count, const ReductionFacts &, char *out, int64_t *indices, int64_t out_stride);
};

struct Reductions {
  ReductionKernel kernels[reduction_count][dtype_count];
};

// Columns that are taken at once at most, so that their states fit into the first-level cache.
inline constexpr int64_t reduction_columns = 1024;

} // namespace orchard

ORCHARD_ISA_TABLE(Reductions, reductions)
