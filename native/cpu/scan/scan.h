// Scans: out[k] along an axis from out[k - 1], for every slice along that axis.
#pragma once

#include "../slice_batches.h"

namespace orchard {

// h is the carried value, a is a second operand:
//   cumsum             h = h + x[k]
//   cumprod            h = h · x[k]
//   exclusiveCumprod   the product of the elements before k
//   shift              the element before k, 0 at first
//   recurrence         h = a[k] · h + x[k]
//   shiftedRecurrence  h = a[k - 1] · h + x[k]
ORCHARD_NAMES(Scan, cumsum, cumprod, exclusiveCumprod, shift, recurrence, shiftedRecurrence)
inline constexpr int scan_count = static_cast<int>(Scan::count);

struct ScanBlock {
  Name<Scan> operation;
  DTypeField from, to; // of x and a; of out
  SlicesBlock<3> slices;
};

// The most adjacent slices that are scanned together.
constexpr int64_t max_adjacent_slices = 256;
// Number of other slices that are scanned together, so that their dependency chains overlap: more would evict each
// other from the cache.
constexpr int64_t slices_together = 4;

// The value carried along a slice: float64 or int64.
union ScanNumber {
  double real;
  int64_t whole;
};

// A part of a slice, with `step` 1 or -1, and the value before it. `next` is the address of as many elements that are
// needed later, or null.
struct ScanPart {
  const char *x;
  char *out;
  int64_t step, count;
  ScanNumber before;
  bool is_streamed;
  const char *next;
};

// Whole slices (`second` is a). For cumsum of adjacent elements also parts of a slice: a part's total, the sum of two
// totals, and a part's results.
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
