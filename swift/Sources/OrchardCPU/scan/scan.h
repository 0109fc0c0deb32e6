// Scans: out[k] along an axis from out[k - 1], for every line along that axis.
#pragma once

#include "../block.h"

namespace orchard {

// In the order of `scanNames` in src/ops/scan/names.ts. h is what is carried along, a a second operand:
//   cumsum  h = h + x[k]      cumprod  h = h · x[k]      recurrence  h = a[k] · h + x[k]      shifted_recurrence  h = a[k - 1] · h + x[k]
// exclusive_cumprod and shift give what is carried to k: the product of the elements before, and the element before (0 at first).
enum class Scan : int { cumsum, cumprod, exclusive_cumprod, shift, recurrence, shifted_recurrence };
inline constexpr int scan_count = 6;

constexpr int scan_max_rank = 8;
constexpr int64_t scan_lines = 256;   // adjacent lines that are walked along side by side at most
constexpr int64_t scan_together = 4; // other lines, whose chains of operations overlap: more would push each other out of the cache

// Operands in order: x, a, out. The lines of a batch lie along the last of the outer axes.
struct ScanBatch {
  const char *x, *a;
  char *out;
  int64_t length, lines;
  int64_t along[3], across[3]; // strides: from k to k + 1, from line to line
};

// What is carried along a line: float64, or int64.
union ScanNumber {
  double real;
  int64_t whole;
};

// Lines from end to end; and for cumsum and cumprod of adjacent elements (`step` is 1 or -1) parts of a line: what a part comes to, two of
// them together, and the results of a part after what comes before it.
struct ScanKernel {
  void (*lines)(const ScanBatch &);
  ScanNumber (*total)(const char *x, int64_t step, int64_t count);
  ScanNumber (*joined)(ScanNumber before, ScanNumber next);
  void (*part)(const char *x, char *out, int64_t step, int64_t count, ScanNumber before);
};

// By operation and dtype of x.
struct Scans {
  ScanKernel kernels[scan_count][dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Scans, scans)
