// Scans along an axis: out[k] is computed from out[k - 1], in each slice along that axis.
#pragma once

#include "../../.build/generated/scan_block.h"
#include "../slice_batches.h"
#include "tuning.h"

namespace orchard {

using tuning::scan::max_adjacent_slices;
using tuning::scan::slices_together;

inline constexpr int scan_count = static_cast<int>(Scan::count);

// The value carried along a slice: float64 or int64.
union ScanNumber {
  double real;
  int64_t whole;
};

// A part of a slice (`step` is 1 or -1) and the value carried into it. `next` is the address of as many elements to
// prefetch, or null.
struct ScanPart {
  const char *x;
  char *out;
  int64_t step, count;
  ScanNumber before;
  bool is_streamed;
  const char *next;
};

// `slices` scans whole slices; `second` of the batch is `a`. For cumsum of adjacent elements there are also functions
// for parts of a slice: the total of a part, the sum of two totals, and the results of a part.
struct ScanKernel {
  void (*slices)(const SliceBatch &);
  ScanNumber (*total)(const char *x, int64_t step, int64_t count);
  ScanNumber (*joined)(ScanNumber before, ScanNumber next);
  void (*part)(const ScanPart &);
};

// Indexed by operation and dtype of x.
struct Scans {
  ScanKernel kernels[scan_count][dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Scans, scans)
