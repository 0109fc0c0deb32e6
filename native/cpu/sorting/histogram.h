// How many elements are in each of some bins, or the sums of their weights.
#pragma once

#include "../dtypes.h"
#include "../functions.h"

namespace orchard {

enum HistogramOperand { histogram_x, histogram_edges, histogram_weights, histogram_out };

// Bin b has what is at least edge b and less than edge b + 1; the last one has its end too. `is_even`: edges are about
// one distance apart. Without weights the result is int64; weights have its dtype.
struct HistogramBlock {
  DTypeField dtype, out_dtype;
  Whole count, bins;
  Whole offsets[4], strides[4];
  Flag has_weights, is_even;
};

// Bin b has the integers that are b.
struct BincountBlock {
  DTypeField dtype, out_dtype;
  Whole count, bins;
  Whole offsets[3], strides[3];
  Flag has_weights;
};

// Elements [begin, end) of x, of which each adds 1 or its weight to one of `sums`: int64 for counts and weights of
// int64, which wrap, and double for weights of floats. Elements in no bin are left out; an integer in none is what
// `add` returns, else 0.
struct HistogramPart {
  const void *x, *edges, *weights; // edges and weights may be null
  int64_t x_stride, edge_stride, weight_stride, begin, end, bins;
  bool is_even;
  void *sums;
};
using AddToHistogram = int64_t (*)(const HistogramPart &part);

// By the dtype of x, which is float or an integer of 32 or 64 bits, and that of weights: where there are none, int64;
// of floats x's own, or float32 for halves.
struct Histograms {
  AddToHistogram add[dtype_count][dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Histograms, histograms)
