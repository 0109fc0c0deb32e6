// The functions "triangle" and "triangleIndices".
#include "../functions.h"
#include "../parallel.h"
#include "indexing.h"
#include "triangle_indices.h"

#include <algorithm>

using namespace orchard;

namespace {
// Writes a row: columns [first, last) are copied, the others are 0.
template <class T> void write_row(const T *x, int64_t x_stride, T *out, int64_t columns, int64_t first, int64_t last) {
  std::fill(out, out + first, T{});
  if (x_stride == 1) std::copy(x + first, x + last, out + first);
  else
    for (int64_t column = first; column < last; column++) out[column] = x[column * x_stride];
  std::fill(out + last, out + columns, T{});
}

template <class T>
void write_rows(const Nest<1> &rows, const char *x, char *out, int64_t columns, int64_t stride, int64_t diagonal,
                bool lower) {
  const int64_t height = rows.shape[rows.rank - 1], below = rows.run_stride(0);
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(columns, 1));
  parallel_for(rows.count(), grain, [&](int64_t begin, int64_t end) {
    for_each_run(rows, begin, end, [&](const int64_t (&offsets)[1], int64_t first, int64_t length) {
      const T *from = reinterpret_cast<const T *>(x) + offsets[0];
      T *to = reinterpret_cast<T *>(out) + first * columns;
      const int64_t top = first % height + diagonal + (lower ? 1 : 0);
      for (int64_t row = 0; row < length; row++, from += below, to += columns) {
        const int64_t edge = std::clamp<int64_t>(top + row, 0, columns);
        write_row(from, stride, to, columns, lower ? 0 : edge, lower ? edge : columns);
      }
    });
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

// The columns [first, last) of the triangle in a row.
struct Columns {
  int64_t first, last;

  Columns(const TriangleIndicesBlock &block, int64_t columns, int64_t diagonal, int64_t row) {
    const bool lower = block.lower;
    const int64_t edge = std::clamp<int64_t>(row + diagonal + (lower ? 1 : 0), 0, columns);
    first = lower ? 0 : edge;
    last = lower ? edge : columns;
  }
};

// out [2, count] = the rows and the columns of a triangle's elements, in row-major order.
void triangle_indices(const TriangleIndicesBlock &block, Operands operands) {
  const int64_t rows = std::max<int64_t>(block.rows, 0), columns = std::max<int64_t>(block.columns, 0);
  const int64_t diagonal = std::clamp<int64_t>(block.diagonal, -rows - 1, columns + 1), count = block.count;
  const Extent all = Extent(count).along(2, count);
  int64_t *out = operands.results<int64_t>(0, 0, all), found = 0;
  // A matrix of few columns may have billions of rows: only those with elements are visited.
  const int64_t begin = block.lower ? std::clamp<int64_t>(-diagonal, 0, rows) : 0;
  const int64_t end = columns == 0 ? 0 : block.lower ? rows : std::clamp<int64_t>(columns - diagonal, 0, rows);
  for (int64_t row = begin; row < end; row++) {
    const Columns part(block, columns, diagonal, row);
    if (part.last - part.first > count - found) break;
    for (int64_t column = part.first; column < part.last; column++, found++) {
      out[found] = row;
      out[count + found] = column;
    }
  }
  if (found != count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected the count of the triangle's elements");
}

ORCHARD_FUNCTION("triangle", triangle, TriangleBlock, 2)
ORCHARD_FUNCTION("triangleIndices", triangle_indices, TriangleIndicesBlock, 1)

} // namespace
