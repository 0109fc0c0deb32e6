// Scans: out[k] along an axis from out[k - 1], for every slice along that axis.
#pragma once

#include "../slice_batches.h"

namespace orchard {

// h is what is carried along, a a second operand:
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

// Adjacent slices that are walked along side by side at most.
constexpr int64_t max_adjacent_slices = 256;
// Other slices that are walked along together, so that their chains of operations overlap: more would push each other
// out of the cache.
constexpr int64_t slices_together = 4;

// What is carried along a slice: float64, or int64.
union ScanNumber {
  double real;
  int64_t whole;
};

// A part of a slice, `step` being 1 or -1, after what comes before it. `next` is where as many elements lie that are
// needed later, or null.
struct ScanPart {
  const char *x;
  char *out;
  int64_t step, count;
  ScanNumber before;
  bool is_streamed;
  const char *next;
};

// Slices from end to end (`second` is a). For cumsum of adjacent elements also parts of a slice: the total of a part,
// two totals joined, and the results of a part.
struct ScanKernel {
  void (*slices)(const SliceBatch &);
  ScanNumber (*total)(const char *x, int64_t step, int64_t count);
  ScanNumber (*joined)(ScanNumber before, ScanNumber next);
  void (*part)(const ScanPart &);
};

// By operation and dtype of x.
struct Scans {
  ScanKernel kernels[scan_count][dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Scans, scans)
