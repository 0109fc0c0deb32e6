// The function "unfold": copies the windows of images.
#include "../functions.h"
#include "../parallel.h"
#include "fold.h"
#include "tuning.h"

#include <algorithm>
#include <cstring>

using namespace orchard;

namespace {

using tuning::convolution::fold_elements;

// Copies element (row, column) of all windows of an image.
template <class T>
void copy_place(const ConvolutionAxis &high, const ConvolutionAxis &wide, const T *image, int64_t place, T *to) {
  const WindowsInside rows(high, place / wide.kernel), columns(wide, place % wide.kernel);
  const int64_t width = wide.output, count = columns.end - columns.begin;
  std::fill_n(to, rows.begin * width, T(0));
  for (int64_t i = rows.begin; i < rows.end; i++) {
    T *line = to + i * width;
    const T *from = image + (rows.first + i * high.stride) * wide.input + columns.first + columns.begin * wide.stride;
    std::fill_n(line, columns.begin, T(0));
    T *inside = line + columns.begin;
    if (wide.stride == 1) std::memcpy(inside, from, static_cast<size_t>(count) * sizeof(T));
    else if (wide.stride == 2)
      for (int64_t j = 0; j < count; j++) inside[j] = from[2 * j];
    else
      for (int64_t j = 0; j < count; j++) inside[j] = from[j * wide.stride];
    std::fill_n(line + columns.end, width - columns.end, T(0));
  }
  std::fill_n(to + rows.end * width, (high.output - rows.end) * width, T(0));
}

void unfold(const UnfoldBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const FoldWindows all(block);
  const char *images = operands.input(0, dtype, block.offsets[0], all.images);
  char *windows = operands.result(1, dtype, block.offsets[1], all.windows);
  if (all.windows.is_empty()) return;
  if (all.images.is_empty()) {
    std::fill_n(windows, all.windows.count() * dtype_sizes[static_cast<int>(dtype)], char(0));
    return;
  }
  const int64_t places = all.places(), pixels = all.pixels(), results = all.results();
  const int64_t grain = std::max<int64_t>(1, fold_elements / (results + 8 * all.high.output));
  with_bits(dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(all.planes * places, grain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at++)
        copy_place(all.high, all.wide, reinterpret_cast<const T *>(images) + at / places * pixels, at % places,
                   reinterpret_cast<T *>(windows) + at * results);
    });
  });
}

ORCHARD_FUNCTION("unfold", unfold, UnfoldBlock, 2)

} // namespace
