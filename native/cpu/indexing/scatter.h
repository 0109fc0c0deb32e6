// Combines the elements of a few slices by indices. A slice is the elements along the indexed axis, for one index of
// every other axis.
#pragma once

#include "../../.build/generated/scatter_others_block.h"

// The combination of an element with its contributions: sum, product, maximum, minimum, or the last contribution.
#include "../../.build/generated/scattering.h"

// - wraps: whether negative indices count from the end
#include "../../.build/generated/scatter_block.h"

#include "../nest.h"
#include "tuning.h"

namespace orchard {

using tuning::indexing::scatter_tile;
using tuning::indexing::scatter_tile_elements;

enum ScatterOperand { scatter_x, scatter_index, scatter_source, scatter_out };

struct Scatter {
  int64_t length;     // of a slice of the source
  int64_t size;       // of a slice of x
  int64_t strides[4]; // of each operand, along the slice
  Nest<4> slices;     // over all other axes
  bool includes_self; // if false, an element of x is kept only if no index selects it
  // Whether the result has x's elements already, so that only elements that an index selects are read and written.
  bool is_copied;
  int64_t added; // to negative indices: `size` if they count from the end, else 0

  int64_t place_of(int64_t index) const { return index + (index < 0 ? added : 0); }
};

// The addresses of the first of `count` slices. `sums` has room for a double per element of x, and `is_named` for a
// flag; they are null if not needed. For an index out of range, the kernel calls `refuse(bad, index)` and leaves the
// result undefined.
struct ScatterPart {
  int64_t count;
  const void *x, *index, *source;
  void *out;
  double *sums;
  bool *is_named;
  void *bad;
  void (*refuse)(void *bad, int64_t index);
};
using ScatterSlices = void (*)(const Scatter &scatter, const ScatterPart &part);

// Indexed by Scattering and dtype, then 0 for indices of int64 and 1 for int32. Bools can only be summed or replaced.
struct Scatterings {
  ScatterSlices slices[static_cast<int>(Scattering::count)][dtype_count][2];
};

// For each element of the source, the product of all other elements with the same index, and optionally of x's element.
// It is written to `part.out`, which has the source's shape. `part.sums` has room for a double per element of x and of
// the source.
struct ScatterOthersKernels {
  ScatterSlices slices[2][2]; // indexed by float32, float64; then by index dtype as above
};

// Returns whether sums and products of a dtype are accumulated in a wider type than its elements.
inline bool is_widened(Scattering way, DType dtype) {
  const bool is_narrow = dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
  return is_narrow && (way == Scattering::sum || way == Scattering::prod);
}

} // namespace orchard

ORCHARD_ISA_TABLE(Scatterings, scatterings)
ORCHARD_ISA_TABLE(ScatterOthersKernels, scatter_others_kernels)
