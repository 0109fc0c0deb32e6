// Functions of a reduction's element x and its result y, of which gradients are made, and the choice of the element at an index.
#pragma once

#include "nest.h"

namespace orchard {

// In the order of `slopeNames` in src/ops/reduction/names.ts.
enum class Slope : int { tie, sign, quotient, power };
inline constexpr int slope_count = 4;

struct SlopeKernels {
  // Elements [begin, end) of a nest of two operands, to a row-major output.
  void (*slope)(Slope, double parameter, const Nest &, int64_t begin, int64_t end, const void *x, const void *y, void *out);
  // `size` indices of the axis, each `inner` elements of the output after the one before.
  void (*select_at)(int64_t size, int64_t inner, const Nest &, int64_t begin, int64_t end, const void *x, const int64_t *indices, void *out);
};

struct Slopes {
  SlopeKernels kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Slopes, slopes)
