// Slices that share one list of indices and are adjacent in memory, as in indexAdd along any axis but the last. The
// contributions are grouped by place first, so that each row of the result is written once, by one loop over vectors.
#pragma once

#include "scatter.h"

namespace orchard {

// The rows of the source that are combined at a place, in the order of the indices: order[starts[place]] to
// order[starts[place + 1] - 1].
struct RowGroups {
  const int64_t *starts, *order;
  int64_t length; // of `order`
};

// Adjacent columns of the rows at the places [begin, end). Addresses are those of row 0.
struct ScatterRowsPart {
  RowGroups groups;
  int64_t begin, end, columns;
  const void *x, *source;
  void *out;
  int64_t x_stride, source_stride, out_stride; // from a row to the next, in elements
  bool includes_self, is_streamed;
};
using ScatterRowsKernel = void (*)(const ScatterRowsPart &part);

// Indexed by Scattering and dtype: sums and products of floats that are accumulated in float64, and rows that are each
// filled with one element of the source.
struct ScatterRows {
  ScatterRowsKernel kernels[static_cast<int>(Scattering::count)][dtype_count];
};

// The operands of a call, each at the element (0, …, 0).
struct ScatterRowsCall {
  Scattering way;
  DType dtype;
  const char *x, *source;
  char *out;
};

// Returns whether a call can be computed by rows, and whether that is faster than by slices.
bool has_rows(const Scatter &scatter, Scattering way, DType dtype);

// Computes a call by rows. Throws Failure for an index out of range.
void scatter_rows(const Scatter &scatter, const ScatterRowsCall &call, const int64_t *indices);
void scatter_rows(const Scatter &scatter, const ScatterRowsCall &call, const int32_t *indices);

} // namespace orchard

ORCHARD_ISA_TABLE(ScatterRows, scatter_row_kernels)
