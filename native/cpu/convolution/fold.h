// The blocks of the functions "fold" and "unfold".
#pragma once

#include "../../.build/generated/unfold_block.h"

// Windows [planes, …kernel, …output] and images [planes, …input], both contiguous: the operands of "fold", which adds
// windows to images, and of "unfold", which copies them. Along an axis, element k of window p belongs to element
// p · stride + k · dilation − before of the image. Elements outside of it are ignored by "fold", and are 0 in "unfold".
#include "../../.build/generated/fold_block.h"

#include "convolution.h"

#include <algorithm>

namespace orchard {

struct FoldWindows {
  int64_t planes;
  ConvolutionAxis high, wide;
  Extent windows, images;

  explicit FoldWindows(const FoldHead &block)
      : planes(block.planes), high(axis_of(block, 0)), wide(axis_of(block, 1)),
        windows(without_gaps({wide.output, high.output, wide.kernel, high.kernel, planes})),
        images(without_gaps({wide.input, high.input, planes})) {}

  int64_t places() const { return high.kernel * wide.kernel; }
  int64_t results() const { return high.output * wide.output; }
  int64_t elements() const { return places() * results(); }
  int64_t pixels() const { return high.input * wide.input; }
  // Returns whether the windows divide the images: each element belongs to one window.
  bool are_tiles() const { return divides(high) && divides(wide); }

private:
  static ConvolutionAxis axis_of(const FoldHead &block, int axis) {
    const ConvolutionAxis along{block.input[axis],  block.output[axis],   block.kernel_size[axis],
                                block.stride[axis], block.dilation[axis], block.before[axis]};
    check_axis(along);
    return along;
  }
  static Extent without_gaps(std::initializer_list<int64_t> sizes) {
    Extent all;
    for (int64_t size : sizes) all.along(size, all.count());
    return all;
  }
  static bool divides(const ConvolutionAxis &axis) {
    return axis.before == 0 && axis.dilation == 1 && axis.stride == axis.kernel &&
           axis.input == axis.output * axis.kernel;
  }
};

// The windows whose element `place` is inside the image, and that element's index for window 0.
struct WindowsInside {
  int64_t first, begin, end;

  WindowsInside(const ConvolutionAxis &axis, int64_t place) : first(place * axis.dilation - axis.before) {
    begin = first < 0 ? std::min(axis.output, (-first + axis.stride - 1) / axis.stride) : 0;
    end = first < axis.input ? std::min(axis.output, (axis.input - first + axis.stride - 1) / axis.stride) : 0;
    end = std::max(begin, end);
  }
};

// Calls use(T{}) for the unsigned integer of a dtype's size.
template <class Use> void with_bits(DType dtype, Use &&use) {
  switch (dtype_sizes[static_cast<int>(dtype)]) {
  case 1: return use(uint8_t());
  case 2: return use(uint16_t());
  case 4: return use(uint32_t());
  default: return use(uint64_t());
  }
}

} // namespace orchard
