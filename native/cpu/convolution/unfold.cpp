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

// The windows whose element `place` is inside the image, and that element's index for window 0.
struct Inside {
  int64_t first, begin, end;

  Inside(const ConvolutionAxis &axis, int64_t place) : first(place * axis.dilation - axis.before) {
    begin = first < 0 ? std::min(axis.output, (-first + axis.stride - 1) / axis.stride) : 0;
    end = first < axis.input ? std::min(axis.output, (axis.input - first + axis.stride - 1) / axis.stride) : 0;
    end = std::max(begin, end);
  }
};

// Copies element (row, column) of all windows of an image.
template <class T>
void copy_place(const ConvolutionAxis &high, const ConvolutionAxis &wide, const T *image, int64_t place, T *to) {
  const Inside rows(high, place / wide.kernel), columns(wide, place % wide.kernel);
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
  ConvolutionAxis axes[fold_axes];
  for (int axis = 0; axis < fold_axes; axis++) {
    axes[axis] = {block.input[axis],  block.output[axis],   block.kernel_size[axis],
                  block.stride[axis], block.dilation[axis], block.before[axis]};
    check_axis(axes[axis]);
  }
  const ConvolutionAxis high = axes[0], wide = axes[1];
  Extent from, to;
  for (int64_t size : {wide.input, high.input, int64_t(block.planes)}) from.along(size, from.count());
  for (int64_t size : {wide.output, high.output, wide.kernel, high.kernel, int64_t(block.planes)})
    to.along(size, to.count());
  const char *images = operands.input(0, dtype, block.offsets[0], from);
  char *windows = operands.result(1, dtype, block.offsets[1], to);
  if (to.is_empty()) return;
  if (from.is_empty()) {
    std::fill_n(windows, to.count() * dtype_sizes[static_cast<int>(dtype)], char(0));
    return;
  }
  const int64_t places = high.kernel * wide.kernel, pixels = high.input * wide.input,
                results = high.output * wide.output;
  const int64_t grain = std::max<int64_t>(1, fold_elements / (results + 8 * high.output));
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    parallel_for(block.planes * places, grain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at++)
        copy_place(high, wide, reinterpret_cast<const T *>(images) + at / places * pixels, at % places,
                   reinterpret_cast<T *>(windows) + at * results);
    });
  };
  switch (dtype_sizes[static_cast<int>(dtype)]) {
  case 1: return run(uint8_t());
  case 2: return run(uint16_t());
  case 4: return run(uint32_t());
  default: return run(uint64_t());
  }
}

ORCHARD_FUNCTION("unfold", unfold, UnfoldBlock, 2)

} // namespace
