// The function "fold": adds windows to the images from which they were taken.
#include "fold.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::convolution::fold_elements;

struct Windows {
  ConvolutionAxis high, wide;

  int64_t elements() const { return high.kernel * wide.kernel * high.output * wide.output; }
  int64_t pixels() const { return high.input * wide.input; }
};

// The number of windows whose element `place` is inside the image, and that element's index for window 0.
struct Inside {
  int64_t first, end;

  Inside(const ConvolutionAxis &axis, int64_t place) : first(place * axis.dilation) {
    end = first < axis.input ? std::min(axis.output, (axis.input - first + axis.stride - 1) / axis.stride) : 0;
  }
};

// Adds the windows of a plane in the order of their elements.
template <class T> void add_plane(const Windows &windows, const T *x, Compute<T> *sums) {
  const auto &[high, wide] = windows;
  std::fill_n(sums, windows.pixels(), Compute<T>(0));
  for (int64_t row = 0; row < high.kernel; row++)
    for (int64_t column = 0; column < wide.kernel; column++, x += high.output * wide.output) {
      const Inside rows(high, row), columns(wide, column);
      for (int64_t i = 0; i < rows.end; i++) {
        Compute<T> *line = sums + (rows.first + i * high.stride) * wide.input + columns.first;
        const T *from = x + i * wide.output;
        if (wide.stride == 1)
          for (int64_t j = 0; j < columns.end; j++) line[j] += load(from[j]);
        else
          for (int64_t j = 0; j < columns.end; j++) line[j * wide.stride] += load(from[j]);
      }
    }
}

template <class T> void add_planes(const Windows &windows, int64_t planes, const T *x, T *images) {
  using C = Compute<T>;
  const int64_t elements = windows.elements(), pixels = windows.pixels();
  const int64_t grain = std::max<int64_t>(1, fold_elements / std::max<int64_t>(1, elements + pixels));
  constexpr bool is_wide = std::is_same_v<T, C>;
  ScratchSlots<C> slots((planes + grain - 1) / grain, is_wide ? 0 : pixels);
  parallel_for(planes, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](C *sums) {
      for (int64_t plane = begin; plane < end; plane++) {
        T *image = images + plane * pixels;
        if constexpr (is_wide) add_plane(windows, x + plane * elements, image);
        else {
          add_plane(windows, x + plane * elements, sums);
          narrow(sums, image, pixels);
        }
      }
    });
  });
}

Extent without_gaps(std::initializer_list<int64_t> sizes) {
  Extent all;
  for (int64_t size : sizes) all.along(size, all.count());
  return all;
}

void fold(const FoldBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  ConvolutionAxis axes[fold_axes];
  for (int axis = 0; axis < fold_axes; axis++) {
    axes[axis] = {block.input[axis],  block.output[axis],   block.kernel_size[axis],
                  block.stride[axis], block.dilation[axis], 0};
    check_axis(axes[axis]);
  }
  const ConvolutionAxis &high = axes[0], &wide = axes[1];
  const int64_t planes = block.planes;
  const Extent from = without_gaps({wide.output, high.output, wide.kernel, high.kernel, planes});
  const Extent to = without_gaps({wide.input, high.input, planes});
  const char *x = operands.input(0, dtype, block.offsets[0], from);
  char *images = operands.result(1, dtype, block.offsets[1], to);
  if (to.is_empty()) return;
  if (from.is_empty()) {
    std::fill_n(images, to.count() * dtype_sizes[static_cast<int>(dtype)], char(0));
    return;
  }
  with_storage(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<Compute<T>>)
      add_planes({high, wide}, planes, reinterpret_cast<const T *>(x), reinterpret_cast<T *>(images));
    else fail(ORCHARD_CPU_UNSUPPORTED, "expected windows of floats");
  });
}

ORCHARD_FUNCTION("fold", fold, FoldBlock, 2)

} // namespace
