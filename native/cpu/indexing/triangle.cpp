// out = x on one side of a diagonal of the last two axes, else 0.
#include "../parallel.h"
#include "nest.h"

#include <cstring>

using namespace orchard;

namespace {
// Columns [first, last) of a row are kept.
template <class T>
void write_row(const T *x, int64_t x_stride, T *out, int64_t columns, int64_t first, int64_t last) {
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
      int64_t places[1];
      find_places(rows, row, places);
      int64_t edge = std::clamp<int64_t>(row % height + diagonal + (lower ? 1 : 0), 0, columns);
      write_row(reinterpret_cast<const T *>(x) + places[0], stride, reinterpret_cast<T *>(out) + row * columns, columns,
                lower ? 0 : edge, lower ? edge : columns);
    }
  });
}
} // namespace

int32_t orchard_cpu_triangle(const double *block, const void *x, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    DType dtype = reader.dtype();
    const char *source = element(x, dtype, reader.whole());
    char *target = element(out, dtype, reader.whole());
    bool lower = reader.whole() != 0;
    int64_t diagonal = reader.whole();
    int64_t columns = reader.whole();
    int64_t stride = reader.whole();
    Nest<1> rows = read_nest<1>(reader);
    if (rows.rank == 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "a matrix has rows");
    with_storage(dtype, [&](auto type) {
      write_rows<typename decltype(type)::type>(rows, source, target, columns, stride, diagonal, lower);
    });
  });
}
