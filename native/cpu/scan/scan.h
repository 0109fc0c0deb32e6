// Scans: out[k] along an axis from out[k - 1], for every line along that axis.
#pragma once

#include "lines.h"

namespace orchard {

// In the order of `scanNames` in src/ops/scan/names.ts. h is what is carried along, a a second operand:
//   cumsum  h = h + x[k]      cumprod  h = h · x[k]      recurrence  h = a[k] · h + x[k]      shifted_recurrence  h = a[k - 1] · h + x[k]
// exclusive_cumprod and shift give what is carried to k: the product of the elements before, and the element before (0 at first).
enum class Scan : int { cumsum, cumprod, exclusive_cumprod, shift, recurrence, shifted_recurrence };
inline constexpr int scan_count = 6;

constexpr int64_t scan_lines = 256;   // adjacent lines that are walked along side by side at most
constexpr int64_t scan_together = 4; // other lines, whose chains of operations overlap: more would push each other out of the cache

// What is carried along a line: float64, or int64.
union ScanNumber {
  double real;
  int64_t whole;
};

// A part of a line, `step` being 1 or -1, after what comes before it. The elements at `next`, as many, are wanted later; it may be null.
struct ScanPart {
  const char *x;
  char *out;
  int64_t step, count;
  ScanNumber before;
  bool is_streamed;
  const char *next;
};

// Lines from end to end (`second` is a); and for cumsum of adjacent elements parts of a line: what a part comes to, two of them
// together, and the results of a part.
struct ScanKernel {
  void (*lines)(const LineBatch &);
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
