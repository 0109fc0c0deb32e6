// Reductions: for each operation and dtype, how elements are reduced to a state, states are merged, and results are
// computed from them.
#pragma once

#include "../../.build/generated/reduce_block.h"
#include "../nest.h"
#include "tuning.h"

namespace orchard {

inline constexpr int reduction_count = static_cast<int>(Reduction::count);

// Parameters of an operation besides its elements.
struct ReductionFacts {
  int64_t count;    // number of elements per result
  double parameter; // p of a norm, correction of a variance
  DType out;        // of the results
};

// The functions of one operation for one dtype. The size of a state is `state_bytes`.
struct ReductionKernel {
  size_t state_bytes;
  bool has_lines; // whether `lines` reduces several lines together
  // Reduces elements [begin, end) of a nest.
  void (*row)(const void *in, const Nest<1> &reduced, int64_t begin, int64_t end, const ReductionFacts &, void *state);
  // Reduces all elements of `count` lines, which are adjacent, to adjacent states. The first elements of lines are
  // `step` apart. The results equal those of `row`.
  void (*lines)(const void *in, int64_t step, int64_t count, const ReductionFacts &, void *states);
  // Reduces elements [begin, end) of each of `width` adjacent columns; the state of column j is `step` states after
  // that of column j - 1.
  void (*columns)(const void *in, int64_t width, const Nest<1> &reduced, int64_t begin, int64_t end,
                  const ReductionFacts &, void *states, int64_t step);
  // Reduces all elements of the nest to each of `width` adjacent states; the elements of result j begin at `starts[j]`.
  // The nest has at most `short_row` elements, and `width` is at most `short_rows`.
  void (*rows)(const void *in, const int64_t *starts, int64_t width, const Nest<1> &reduced, const ReductionFacts &,
               void *states);
  // Merges adjacent states in order into the first one, as a binary tree whose shape depends only on `count`.
  void (*merge)(void *states, int64_t count, const ReductionFacts &);
  // Writes the results of states that are `step` apart to elements that are `out_stride` apart. `indices` is null
  // except for max and min.
  void (*finish)(const void *states, int64_t step, int64_t count, const ReductionFacts &, char *out, int64_t *indices,
                 int64_t out_stride);
};

struct Reductions {
  ReductionKernel kernels[reduction_count][dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Reductions, reductions)
