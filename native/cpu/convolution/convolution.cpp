#include "convolution.h"

#include "../memory.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using namespace tuning::convolution;

// Calls use(place, index along each axis) for all elements of the kernel, in order.
template <class Use> void for_each_place(const Convolution &conv, Use &&use) {
  int64_t at[convolution_axes], place = 0;
  for (at[0] = 0; at[0] < conv.axes[0].kernel; at[0]++)
    for (at[1] = 0; at[1] < conv.axes[1].kernel; at[1]++)
      for (at[2] = 0; at[2] < conv.axes[2].kernel; at[2]++) use(place++, at);
}

// Returns whether an axis can be merged with the one before: the kernel has length 1 along it, and its positions are
// adjacent.
bool goes_on(const Windows &windows, int axis) {
  const WindowAxis &along = windows.axes[axis];
  bool is_plain = along.step == 1 && along.grid == along.source && along.grid == along.result;
  for (int64_t i = 0; i < windows.place_count; i++) is_plain &= windows.places[i].shift[axis] == 0;
  return is_plain;
}

// Makes lines as long as possible: drops axes of length 1, and merges axes along which the kernel has length 1.
void join_axes(Windows &windows, Place *places) {
  constexpr WindowAxis nothing{1, 1, 1, 1, 0, 1};
  const auto shift = [&](int axis, int from) {
    windows.axes[axis] = from < 0 ? nothing : windows.axes[from];
    for (int64_t i = 0; i < windows.place_count; i++) places[i].shift[axis] = from < 0 ? 0 : places[i].shift[from];
  };
  for (int times = 0; times < convolution_axes - 1; times++) {
    auto &[deep, high, wide] = windows.axes;
    const bool is_joint = goes_on(windows, 2) && (wide.grid == 1 || goes_on(windows, 1));
    if (!is_joint) return;
    high.grid *= wide.grid, high.source *= wide.grid, high.result *= wide.grid;
    shift(2, 1), shift(1, 0), shift(0, -1);
  }
}

// Returns whether a box for `channels` channels and for the lines that are summed at once is small enough.
bool fits_box(const Windows &windows, int64_t channels) {
  constexpr int64_t lines = 8, lanes = 16;
  int64_t spans[convolution_axes];
  for (int axis = 0; axis < convolution_axes; axis++) {
    int64_t least = windows.places[0].shift[axis], most = least;
    for (int64_t i = 1; i < windows.place_count; i++) {
      least = std::min(least, windows.places[i].shift[axis]);
      most = std::max(most, windows.places[i].shift[axis]);
    }
    spans[axis] = most - least + 1;
    if (spans[axis] > most_box_numbers || windows.axes[axis].step > most_box_numbers) return false;
  }
  const auto &[deep, high, wide] = windows.axes;
  const double rows = double(std::min(lines, high.grid) - 1) * double(high.step) + double(spans[1]);
  const double line = double(wide.step) * double(wide.grid + lanes) + double(spans[2]);
  return double(channels) * double(spans[0]) * rows * line <= double(most_box_numbers);
}

// Returns whether the direct kernel applies. It does not apply to results with several phases: those are computed
// together, so that adjacent elements are written at the same time.
template <class T> bool is_direct(const Windows *phases, int64_t count) {
  return count == 1 && phases[0].rows > most_depthwise_rows && fits_box(phases[0], 1) &&
         direct_kernels().of<T>().takes(phases[0]);
}

template <class T> const WindowKernel<T> &kernel_for(const Windows *phases, int64_t count) {
  bool is_depthwise = phases[0].rows <= most_depthwise_rows;
  for (int64_t i = 0; i < count && is_depthwise; i++) is_depthwise = fits_box(phases[i], phases[i].channels);
  return is_depthwise ? depthwise_kernels().of<T>() : window_kernels().of<T>();
}

template <class T> bool are_planes(const Windows *phases, int64_t count) {
  return std::all_of(phases, phases + count, plane_kernels().of<T>().takes);
}

template <class T> void multiply(const Windows *phases, int64_t count, const T *source, const T *weight, T *result) {
  if (is_direct<T>(phases, count)) direct_kernels().of<T>().multiply(phases[0], source, weight, result);
  else if (are_planes<T>(phases, count))
    for (int64_t i = 0; i < count; i++) plane_kernels().of<T>().multiply(phases[i], source, weight, result);
  else kernel_for<T>(phases, count).multiply(phases, count, source, weight, result);
}

// Returns the windows that compute y from x; the weight's gradient uses the same windows.
Windows windows_of(const Convolution &conv, Place *places) {
  const int64_t depth = conv.depth(), count = conv.places();
  Windows windows{conv.batch, conv.groups, conv.channels,        conv.outputs, {},
                  places,     count,       conv.outputs * depth, depth,        count};
  for (int axis = 0; axis < convolution_axes; axis++) {
    const ConvolutionAxis &along = conv.axes[axis];
    windows.axes[axis] = {along.output, along.input, along.stride, along.output, 0, 1};
  }
  for_each_place(conv, [&](int64_t place, const int64_t (&at)[convolution_axes]) {
    places[place].weight = place;
    for (int axis = 0; axis < convolution_axes; axis++)
      places[place].shift[axis] = at[axis] * conv.axes[axis].dilation - conv.axes[axis].before;
  });
  join_axes(windows, places);
  return windows;
}

// Along one axis, the remainders modulo the stride of those positions of x that the kernel reaches.
struct Remainders {
  Scratch<int64_t> each;
  int64_t count = 0;

  explicit Remainders(const ConvolutionAxis &axis) : each(axis.kernel) {
    for (int64_t at = 0; at < axis.kernel; at++) {
      const int64_t remainder = ((at * axis.dilation - axis.before) % axis.stride + axis.stride) % axis.stride;
      if (remainder >= axis.input) continue;
      const int64_t *end = each.data() + count;
      if (std::find(each.data(), each.data() + count, remainder) == end) each.data()[count++] = remainder;
    }
    std::sort(each.data(), each.data() + count);
  }
  bool are_all(const ConvolutionAxis &axis) const { return count == std::min(axis.stride, axis.input); }
};

// Returns the windows that compute x from y at the positions first + j · stride along each axis. At position j, element
// k of the kernel reads y's element j + (first + before − k · dilation) / stride, if that is an integer.
Windows phase_of(const Convolution &conv, const int64_t (&first)[convolution_axes], Place *places) {
  const int64_t depth = conv.depth();
  Windows windows{conv.batch, conv.groups, conv.outputs,         conv.channels, {},
                  places,     0,           conv.outputs * depth, conv.places(), depth};
  for (int axis = 0; axis < convolution_axes; axis++) {
    const ConvolutionAxis &along = conv.axes[axis];
    const int64_t grid = (along.input - first[axis] - 1) / along.stride + 1;
    windows.axes[axis] = {grid, along.output, 1, along.input, first[axis], along.stride};
  }
  for_each_place(conv, [&](int64_t place, const int64_t (&at)[convolution_axes]) {
    Place next{{}, place};
    for (int axis = 0; axis < convolution_axes; axis++) {
      const int64_t shift = first[axis] + conv.axes[axis].before - at[axis] * conv.axes[axis].dilation;
      if (shift % conv.axes[axis].stride != 0) return;
      next.shift[axis] = shift / conv.axes[axis].stride;
    }
    places[windows.place_count++] = next;
  });
  join_axes(windows, places);
  return windows;
}

template <class T> void compute(const Convolution &conv, const T *x, const T *weight, T *y) {
  Scratch<Place> places(conv.places());
  const Windows windows = windows_of(conv, places.data());
  multiply(&windows, 1, x, weight, y);
}

template <class T> void compute_weight(const Convolution &conv, const T *x, const T *y, T *weight) {
  Scratch<Place> places(conv.places());
  const Windows windows = windows_of(conv, places.data());
  // The kernel for planes multiplies elements of x that have no part in a sum by 0.
  if (are_planes<T>(&windows, 1) && are_finite(x, conv.batch * conv.groups * conv.channels * conv.pixels()))
    plane_kernels().of<T>().weigh(windows, x, y, weight);
  else kernel_for<T>(&windows, 1).weigh(windows, x, y, weight);
}

// Elements of x that no element of the kernel reaches are 0.
template <class T> void compute_transposed(const Convolution &conv, const T *y, const T *weight, T *x) {
  Remainders deep(conv.axes[0]), high(conv.axes[1]), wide(conv.axes[2]);
  if (!deep.are_all(conv.axes[0]) || !high.are_all(conv.axes[1]) || !wide.are_all(conv.axes[2]))
    std::fill_n(x, conv.batch * conv.groups * conv.channels * conv.pixels(), T(0));
  Scratch<Place> places(conv.places()); // each element of the kernel belongs to one phase
  Scratch<Windows> phases(deep.count * high.count * wide.count);
  int64_t count = 0, used = 0;
  for (int64_t i = 0; i < deep.count; i++)
    for (int64_t j = 0; j < high.count; j++)
      for (int64_t k = 0; k < wide.count; k++) {
        const int64_t first[] = {deep.each.data()[i], high.each.data()[j], wide.each.data()[k]};
        phases.data()[count] = phase_of(conv, first, places.data() + used);
        used += phases.data()[count++].place_count;
      }
  if (count > 0) multiply(phases.data(), count, y, weight, x);
}

Extent without_gaps(int64_t first, int64_t second, const Whole (&sizes)[convolution_axes]) {
  Extent extent(sizes[2]);
  for (int64_t size : {int64_t(sizes[1]), int64_t(sizes[0]), second, first}) extent.along(size, extent.count());
  return extent;
}

struct Problem {
  Convolution conv;
  Extent x, weight, y;
};

Problem read_problem(const ConvolutionBlock &block) {
  Problem problem{{block.batch, block.groups, block.channels, block.outputs, {}}, {}, {}, {}};
  for (int axis = 0; axis < convolution_axes; axis++) {
    problem.conv.axes[axis] = {block.input[axis],  block.output[axis],   block.kernel[axis],
                               block.stride[axis], block.dilation[axis], block.before[axis]};
    check_axis(problem.conv.axes[axis]);
  }
  const Extent channels = Extent(block.channels).along(block.groups, block.channels),
               outputs = Extent(block.outputs).along(block.groups, block.outputs);
  if (!channels.is_possible() || !outputs.is_possible())
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected fewer groups of a convolution");
  problem.x = without_gaps(block.batch, channels.count(), block.input);
  problem.weight = without_gaps(outputs.count(), block.channels, block.kernel);
  problem.y = without_gaps(block.batch, outputs.count(), block.output);
  return problem;
}

// Fills the result with zeros if an operand is empty. Returns whether the call is complete.
template <class T> bool is_nothing(const Extent &first, const Extent &second, const Extent &result, T *to) {
  if (!result.is_empty() && (first.is_empty() || second.is_empty())) std::fill_n(to, result.count(), T(0));
  return result.is_empty() || first.is_empty() || second.is_empty();
}

void convolution(const ConvolutionBlock &block, Operands operands) {
  const auto &[conv, x, weight, y] = read_problem(block);
  const bool is_of_weight = block.result == convolution_weight, is_of_x = block.result == convolution_x;
  const Extent &first = is_of_x ? y : x, &second = is_of_weight ? y : weight,
               &result = is_of_weight ? weight
                         : is_of_x    ? x
                                      : y;
  if (block.result < 0 || block.result >= convolution_results)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected the result of a convolution to be y, x or the weight");
  with_real(block.dtype, [&, &conv = conv](auto real) {
    using T = decltype(real);
    const T *left = operands.inputs<T>(0, block.offsets[0], first);
    const T *right = operands.inputs<T>(1, block.offsets[1], second);
    T *to = operands.results<T>(2, block.offsets[2], result);
    if (is_nothing(first, second, result, to)) return;
    if (is_of_weight) compute_weight(conv, left, right, to);
    else if (is_of_x) compute_transposed(conv, left, right, to);
    else compute(conv, left, right, to);
  });
}

ORCHARD_FUNCTION("convolution", convolution, ConvolutionBlock, 3)

} // namespace
