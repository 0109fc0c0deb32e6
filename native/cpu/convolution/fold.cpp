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

// Adds the windows of a plane in the order of their elements.
template <class T> void add_plane(const FoldWindows &windows, const T *x, Compute<T> *sums) {
  const ConvolutionAxis &high = windows.high, &wide = windows.wide;
  std::fill_n(sums, windows.pixels(), Compute<T>(0));
  for (int64_t row = 0; row < high.kernel; row++)
    for (int64_t column = 0; column < wide.kernel; column++, x += high.output * wide.output) {
      const WindowsInside rows(high, row), columns(wide, column);
      const int64_t count = columns.end - columns.begin;
      for (int64_t i = rows.begin; i < rows.end; i++) {
        Compute<T> *line = sums + (rows.first + i * high.stride) * wide.input + columns.first;
        line += columns.begin * wide.stride;
        const T *from = x + i * wide.output + columns.begin;
        if (wide.stride == 1)
          for (int64_t j = 0; j < count; j++) line[j] += load(from[j]);
        else if (wide.stride == 2)
          for (int64_t j = 0; j < count; j++) line[2 * j] += load(from[j]);
        else
          for (int64_t j = 0; j < count; j++) line[j * wide.stride] += load(from[j]);
      }
    }
}

template <class T> void add_planes(const FoldWindows &windows, const T *x, T *images) {
  using C = Compute<T>;
  const int64_t planes = windows.planes, elements = windows.elements(), pixels = windows.pixels();
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

// ---------------------------------------------------------------- windows that divide the images

// to[count · i + j] = from[j · distance + i] for i < length and j < count.
template <class T, class Count>
void interleave_rows(const T *__restrict from, int64_t distance, int64_t length, Count count, T *__restrict to) {
  for (int64_t i = 0; i < length; i++)
    for (int64_t j = 0; j < count; j++) to[i * count + j] = from[j * distance + i];
}

// Interleaves as many rows as a window has columns. The usual numbers are constants, so that loops are vectorized.
template <class T> void interleave_rows(const T *from, int64_t distance, int64_t length, int64_t count, T *to) {
  switch (count) {
  case 1: return void(std::copy_n(from, length, to));
  case 2: return interleave_rows(from, distance, length, std::integral_constant<int64_t, 2>(), to);
  case 3: return interleave_rows(from, distance, length, std::integral_constant<int64_t, 3>(), to);
  case 4: return interleave_rows(from, distance, length, std::integral_constant<int64_t, 4>(), to);
  default: return interleave_rows<T, int64_t>(from, distance, length, count, to);
  }
}

// Copies windows that divide the images. Lines of the images are divided among threads.
template <class T> void copy_tiles(const FoldWindows &windows, const T *x, T *images) {
  const ConvolutionAxis &high = windows.high, &wide = windows.wide;
  const int64_t results = windows.results(), elements = windows.elements();
  const int64_t lines = scratch_product({windows.planes, high.input});
  parallel_for(lines, std::max<int64_t>(1, fold_elements / wide.input), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; line++) {
      const int64_t plane = line / high.input, row = line % high.input;
      const T *from =
          x + plane * elements + row % high.kernel * wide.kernel * results + row / high.kernel * wide.output;
      interleave_rows(from, results, wide.output, wide.kernel, images + line * wide.input);
    }
  });
}

void fold(const FoldBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const FoldWindows all(block);
  const char *x = operands.input(0, dtype, block.offsets[0], all.windows);
  char *images = operands.result(1, dtype, block.offsets[1], all.images);
  if (all.images.is_empty()) return;
  if (all.windows.is_empty()) {
    std::fill_n(images, all.images.count() * dtype_sizes[static_cast<int>(dtype)], char(0));
    return;
  }
  if (all.are_tiles())
    return with_bits(dtype, [&](auto bits) {
      using T = decltype(bits);
      copy_tiles(all, reinterpret_cast<const T *>(x), reinterpret_cast<T *>(images));
    });
  with_storage(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<Compute<T>>)
      add_planes(all, reinterpret_cast<const T *>(x), reinterpret_cast<T *>(images));
    else fail(ORCHARD_CPU_UNSUPPORTED, "expected windows of floats");
  });
}

ORCHARD_FUNCTION("fold", fold, FoldBlock, 2)

} // namespace
