// Histograms: the number of elements in each bin, or the sum of their weights.
#pragma once

// Bin b counts elements that are at least edge b and less than edge b + 1; the last bin includes its upper edge. With
// `is_even`, the edges are approximately evenly spaced. Without weights the result is int64; with weights it has their
// dtype.
#include "../../.build/generated/histogram_block.h"

// Bin b counts the integers equal to b.
#include "../../.build/generated/bincount_block.h"

#include "../dtypes.h"
#include "../functions.h"

namespace orchard {

enum HistogramOperand { histogram_x, histogram_edges, histogram_weights, histogram_out };

// Adds elements [begin, end) of x to `sums`: each adds 1, or its weight, to one bin. Sums are int64 for counts and
// int64 weights, which wrap around, and double for float weights. Elements outside all bins are skipped. `add` returns
// an integer outside all bins if there is one, else 0.
struct HistogramPart {
  const void *x, *edges, *weights; // edges and weights may be null
  int64_t x_stride, edge_stride, weight_stride, begin, end, bins;
  bool is_even;
  void *sums;
};
using AddToHistogram = int64_t (*)(const HistogramPart &part);

// Indexed by the dtype of x, which is a float or a 32-bit or 64-bit integer, then by the dtype of the weights. Without
// weights, the latter is int64, and edges have the dtype of x. Float weights have the dtype of x, or float32 for
// float16 and bfloat16.
struct Histograms {
  AddToHistogram add[dtype_count][dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Histograms, histograms)
