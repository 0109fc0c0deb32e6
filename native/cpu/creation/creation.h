// Fills, and ranges of evenly spaced numbers.
#pragma once

#include "../../.build/generated/whole_range_block.h"

// The nest describes the output, each of whose elements is set to `bits`.
// - bytes: of an element
#include "../../.build/generated/fill_block.h"

// The output is dense.
#include "../../.build/generated/range_block.h"

#include "../nest.h"

namespace orchard {

// Fill kernels, indexed by the binary logarithm of the element's size in bytes. Elements are given as bits.
using FillRow = void (*)(void *out, uint64_t bits, int64_t count, int64_t stride);

// Runs of `length` elements, each of which repeats one. Elements are `across` apart, and runs `pitch`.
struct RepeatedRuns {
  const void *from;
  int64_t across;
  void *to;
  int64_t pitch, runs, length;
};

// start + i · step for i < forward, then end − (count − 1 − i) · step
struct FloatRange {
  double start, step, end;
  int64_t forward, count;
};

// start + i · step + i · remainder / divisor, truncated
struct WholeRange {
  int64_t start, step, remainder, divisor;
};

struct Creations {
  FillRow fill[4];
  void (*repeat[4])(const RepeatedRuns &runs); // by size, as `fill`
  // Write elements [begin, end) of the range to `out`. Entries of `range` are null for non-float dtypes; entries of
  // `whole_range` are null for floats.
  void (*range[dtype_count])(const FloatRange &range, int64_t begin, int64_t end, void *out);
  void (*whole_range[dtype_count])(const WholeRange &range, int64_t begin, int64_t end, void *out);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Creations, creations)
