#include "convolution.h"

#include "../memory.h"

#include <algorithm>

using namespace orchard;

namespace {

// Of fewer rows a product would fill no tile.
constexpr int64_t most_depthwise_rows = 4;
// Of the part of all channels that some lines of a result read, zeros included.
constexpr int64_t most_box_numbers = 1 << 18;

// Calls use(place, index along each axis) for all elements of the kernel, in their order.
template <class Use> void for_each_place(const Convolution &own, Use &&use) {
  int64_t at[convolution_axes], place = 0;
  for (at[0] = 0; at[0] < own.axes[0].kernel; at[0]++)
    for (at[1] = 0; at[1] < own.axes[1].kernel; at[1]++)
      for (at[2] = 0; at[2] < own.axes[2].kernel; at[2]++) use(place++, at);
}

// Whether an axis is only what the one before it is many times: no place moves along it, and no position is left out.
bool goes_on(const Windows &own, int axis) {
  const WindowAxis &along = own.axes[axis];
  bool is_plain = along.step == 1 && along.grid == along.source && along.grid == along.result;
  for (int64_t i = 0; i < own.place_count; i++) is_plain &= own.places[i].shift[axis] == 0;
  return is_plain;
}

// Makes lines as long as they can be: axes of one element vanish, and planes without a kernel become lines.
void join_axes(Windows &own, Place *places) {
  constexpr WindowAxis nothing{1, 1, 1, 1, 0, 1};
  const auto shift = [&](int axis, int from) {
    own.axes[axis] = from < 0 ? nothing : own.axes[from];
    for (int64_t i = 0; i < own.place_count; i++) places[i].shift[axis] = from < 0 ? 0 : places[i].shift[from];
  };
  for (int times = 0; times < convolution_axes - 1; times++) {
    auto &[deep, high, wide] = own.axes;
    const bool is_joint = goes_on(own, 2) && (wide.grid == 1 || goes_on(own, 1));
    if (!is_joint) return;
    high.grid *= wide.grid, high.source *= wide.grid, high.result *= wide.grid;
    shift(2, 1), shift(1, 0), shift(0, -1);
  }
}

// Whether a box of so many channels, and of the lines that are summed at once, is small enough.
bool fits_box(const Windows &own, int64_t channels) {
  constexpr int64_t lines = 8, lanes = 16;
  int64_t spans[convolution_axes];
  for (int axis = 0; axis < convolution_axes; axis++) {
    int64_t least = own.places[0].shift[axis], most = least;
    for (int64_t i = 1; i < own.place_count; i++) {
      least = std::min(least, own.places[i].shift[axis]);
      most = std::max(most, own.places[i].shift[axis]);
    }
    spans[axis] = most - least + 1;
    if (spans[axis] > most_box_numbers || own.axes[axis].step > most_box_numbers) return false;
  }
  const auto &[deep, high, wide] = own.axes;
  const double rows = double(std::min(lines, high.grid) - 1) * double(high.step) + double(spans[1]);
  const double line = double(wide.step) * double(wide.grid + lanes) + double(spans[2]);
  return double(channels) * double(spans[0]) * rows * line <= double(most_box_numbers);
}

// Phases of one result are computed together elsewhere, so that elements side by side are written at once.
template <class T> bool is_direct(const Windows *phases, int64_t count) {
  return count == 1 && phases[0].rows > most_depthwise_rows && fits_box(phases[0], 1) &&
         direct_kernels().of<T>().takes(phases[0]);
}

template <class T> const WindowKernel<T> &kernel_for(const Windows *phases, int64_t count) {
  bool is_depthwise = phases[0].rows <= most_depthwise_rows;
  for (int64_t i = 0; i < count && is_depthwise; i++) is_depthwise = fits_box(phases[i], phases[i].channels);
  return is_depthwise ? depthwise_kernels().of<T>() : window_kernels().of<T>();
}

template <class T> void multiply(const Windows *phases, int64_t count, const T *source, const T *weight, T *result) {
  if (is_direct<T>(phases, count)) direct_kernels().of<T>().multiply(phases[0], source, weight, result);
  else kernel_for<T>(phases, count).multiply(phases, count, source, weight, result);
}

// y of x, and the weight's gradient.
Windows windows_of(const Convolution &own, Place *places) {
  const int64_t depth = own.depth(), count = own.places();
  Windows windows{own.batch, own.groups, own.channels,        own.outputs, {},
                  places,    count,      own.outputs * depth, depth,       count};
  for (int axis = 0; axis < convolution_axes; axis++) {
    const ConvolutionAxis &along = own.axes[axis];
    windows.axes[axis] = {along.output, along.input, along.stride, along.output, 0, 1};
  }
  for_each_place(own, [&](int64_t place, const int64_t (&at)[convolution_axes]) {
    places[place].weight = place;
    for (int axis = 0; axis < convolution_axes; axis++)
      places[place].shift[axis] = at[axis] * own.axes[axis].dilation - own.axes[axis].before;
  });
  join_axes(windows, places);
  return windows;
}

// The remainders modulo the stride of x's positions along an axis to which some place leads.
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

// x of y at the positions first + j · stride along each axis: place k leads from there to y's element
// j + (first + before − k · dilation) / stride, if that is whole.
Windows phase_of(const Convolution &own, const int64_t (&first)[convolution_axes], Place *places) {
  const int64_t depth = own.depth();
  Windows windows{own.batch, own.groups, own.outputs,         own.channels, {},
                  places,    0,          own.outputs * depth, own.places(), depth};
  for (int axis = 0; axis < convolution_axes; axis++) {
    const ConvolutionAxis &along = own.axes[axis];
    const int64_t grid = (along.input - first[axis] - 1) / along.stride + 1;
    windows.axes[axis] = {grid, along.output, 1, along.input, first[axis], along.stride};
  }
  for_each_place(own, [&](int64_t place, const int64_t (&at)[convolution_axes]) {
    Place next{{}, place};
    for (int axis = 0; axis < convolution_axes; axis++) {
      const int64_t shift = first[axis] + own.axes[axis].before - at[axis] * own.axes[axis].dilation;
      if (shift % own.axes[axis].stride != 0) return;
      next.shift[axis] = shift / own.axes[axis].stride;
    }
    places[windows.place_count++] = next;
  });
  join_axes(windows, places);
  return windows;
}

template <class T> void compute(const Convolution &own, const T *x, const T *weight, T *y) {
  Scratch<Place> places(own.places());
  const Windows windows = windows_of(own, places.data());
  multiply(&windows, 1, x, weight, y);
}

template <class T> void compute_weight(const Convolution &own, const T *x, const T *y, T *weight) {
  Scratch<Place> places(own.places());
  const Windows windows = windows_of(own, places.data());
  kernel_for<T>(&windows, 1).weigh(windows, x, y, weight);
}

// Elements of x to which no place leads are 0.
template <class T> void compute_transposed(const Convolution &own, const T *y, const T *weight, T *x) {
  Remainders deep(own.axes[0]), high(own.axes[1]), wide(own.axes[2]);
  if (!deep.are_all(own.axes[0]) || !high.are_all(own.axes[1]) || !wide.are_all(own.axes[2]))
    std::fill_n(x, own.batch * own.groups * own.channels * own.pixels(), T(0));
  Scratch<Place> places(own.places()); // each is of one phase
  Scratch<Windows> phases(deep.count * high.count * wide.count);
  int64_t count = 0, used = 0;
  for (int64_t i = 0; i < deep.count; i++)
    for (int64_t j = 0; j < high.count; j++)
      for (int64_t k = 0; k < wide.count; k++) {
        const int64_t first[] = {deep.each.data()[i], high.each.data()[j], wide.each.data()[k]};
        phases.data()[count] = phase_of(own, first, places.data() + used);
        used += phases.data()[count++].place_count;
      }
  if (count > 0) multiply(phases.data(), count, y, weight, x);
}

Extent without_gaps(int64_t first, int64_t second, const Whole (&sizes)[convolution_axes]) {
  Extent own(sizes[2]);
  for (int64_t size : {int64_t(sizes[1]), int64_t(sizes[0]), second, first}) own.along(size, own.count());
  return own;
}

struct Problem {
  Convolution own;
  Extent x, weight, y;
};

Problem read_problem(const ConvolutionBlock &block) {
  Problem problem{{block.batch, block.groups, block.channels, block.outputs, {}}, {}, {}, {}};
  for (int axis = 0; axis < convolution_axes; axis++) {
    problem.own.axes[axis] = {block.input[axis],  block.output[axis],   block.kernel[axis],
                              block.stride[axis], block.dilation[axis], block.before[axis]};
    check_axis(problem.own.axes[axis]);
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

// What is computed where another operand has no elements.
template <class T> bool is_nothing(const Extent &first, const Extent &second, const Extent &result, T *to) {
  if (!result.is_empty() && (first.is_empty() || second.is_empty())) std::fill_n(to, result.count(), T(0));
  return result.is_empty() || first.is_empty() || second.is_empty();
}

void convolution(const ConvolutionBlock &block, Operands operands) {
  const auto &[own, x, weight, y] = read_problem(block);
  const bool is_of_weight = block.result == convolution_weight, is_of_x = block.result == convolution_x;
  const Extent &first = is_of_x ? y : x, &second = is_of_weight ? y : weight,
               &result = is_of_weight ? weight
                         : is_of_x    ? x
                                      : y;
  if (block.result < 0 || block.result >= convolution_results)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected the result of a convolution to be y, x or the weight");
  with_real(block.dtype, [&, &own = own](auto real) {
    using T = decltype(real);
    const T *left = operands.inputs<T>(0, block.offsets[0], first);
    const T *right = operands.inputs<T>(1, block.offsets[1], second);
    T *to = operands.results<T>(2, block.offsets[2], result);
    if (is_nothing(first, second, result, to)) return;
    if (is_of_weight) compute_weight(own, left, right, to);
    else if (is_of_x) compute_transposed(own, left, right, to);
    else compute(own, left, right, to);
  });
}

ORCHARD_FUNCTION("convolution", convolution, ConvolutionBlock, 3)

} // namespace
