// The function "triangle".
#include "../functions.h"
#include "../parallel.h"
#include "indexing.h"

#include <cstring>

using namespace orchard;

namespace {
// Writes a row: columns [first, last) are copied, the others are 0.
template <class T> void write_row(const T *x, int64_t x_stride, T *out, int64_t columns, int64_t first, int64_t last) {
  std::memset(static_cast<void *>(out), 0, first * sizeof(T));
  for (int64_t column = first; column < last; column++) out[column] = x[column * x_stride];
  std::memset(static_cast<void *>(out + last), 0, (columns - last) * sizeof(T));
}

template <class T>
void write_rows(const Nest<1> &rows, const char *x, char *out, int64_t columns, int64_t stride, int64_t diagonal,
                bool lower) {
  int64_t height = rows.shape[rows.rank - 1];
  int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(columns, 1));
  parallel_for(rows.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      int64_t edge = std::clamp<int64_t>(row % height + diagonal + (lower ? 1 : 0), 0, columns);
      write_row(reinterpret_cast<const T *>(x) + rows.offset(0, row), stride,
                reinterpret_cast<T *>(out) + row * columns, columns, lower ? 0 : edge, lower ? edge : columns);
    }
  });
}

// out = x if column <= row + diagonal (lower) or column >= row + diagonal (upper), else 0.
void triangle(const TriangleBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const Nest<1> rows = block.rows;
  if (rows.rank == 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a matrix with an axis of rows");
  const int64_t columns = block.columns, stride = block.stride, diagonal = block.diagonal;
  const char *x = operands.input(0, dtype, block.offsets[0], rows.extent(0).along(columns, stride));
  char *out = operands.result(1, dtype, block.offsets[1], Extent(columns).along(rows.count(), columns));
  if (columns == 0) return;
  with_storage(dtype, [&](auto type) {
    write_rows<typename decltype(type)::type>(rows, x, out, columns, stride, diagonal, block.lower);
  });
}

ORCHARD_FUNCTION("triangle", triangle, TriangleBlock, 2)

} // namespace
