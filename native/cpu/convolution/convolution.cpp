#include "convolution.h"

#include "../matmul/product.h"
#include "../memory.h"
#include "../parallel.h"

#include <mutex>
#include <optional>

using namespace orchard;

namespace {

// A tile stays in a core's second-level cache, beside what the product reads and writes.
constexpr int64_t tile_bytes = 1 << 19;
// So many of its numbers side by side are read where they lie by a product (kernel.isa.cpp), and fill its vectors.
constexpr int64_t most_results = 512, least_results = 64;
// Fewer outputs a task would copy a tile for too few products.
constexpr int64_t least_outputs = 28;
// A product of one channel a group has as many rows as there are outputs. Of so few it is slower than passes over
// lines.
constexpr int64_t most_depthwise_outputs = 4;

int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

// How the work is cut: channels and results of a tile, and outputs of a task. Channels and results do not depend on the
// number of threads, so every sum has the same order.
struct Cut {
  int64_t channels, results, outputs;
};

template <class T> Cut cut_of(const Convolution &own, int64_t tasks_without_outputs) {
  const int64_t numbers = tile_bytes / int64_t(sizeof(T)), places = own.places();
  const int64_t channels = std::clamp<int64_t>(numbers / (least_results * places), 1, own.channels);
  int64_t results = std::clamp<int64_t>(numbers / (channels * places), least_results, most_results);
  const int64_t line = own.axes[2].output;
  if (line < results) results = results / line * line;
  results = std::min(results, own.results());
  const int64_t parts = divided_up(thread_count(), std::max<int64_t>(1, tasks_without_outputs));
  const int64_t outputs = std::max(least_outputs, divided_up(own.outputs, parts));
  return {channels, results, std::min(outputs, own.outputs)};
}

template <class T> Matrix matrix(const T *data, int64_t row_stride) {
  return {reinterpret_cast<char *>(const_cast<T *>(data)), row_stride, 1};
}
template <class T> constexpr DType dtype_of = sizeof(T) == 8 ? DType::float64 : DType::float32;

// Calls body(task) for each, on all threads. What one of them throws is thrown when all are done.
template <class Body> void for_each_task(int64_t tasks, Body &&body) {
  std::mutex mutex;
  std::optional<Failure> failure;
  parallel_for(tasks, 1, [&](int64_t task, int64_t) {
    try {
      body(task);
    } catch (const Failure &problem) {
      std::lock_guard lock(mutex);
      failure = problem;
    }
  });
  if (failure) throw *failure;
}

template <class T> void compute(const Convolution &own, const T *x, const T *weight, T *y) {
  const int64_t depth = own.depth(), places = own.places(), results = own.results();
  Cut cut = cut_of<T>(own, 1);
  const int64_t stretches = divided_up(results, cut.results), groups = own.batch * own.groups;
  cut.outputs = cut_of<T>(own, groups * stretches).outputs;
  const int64_t parts = divided_up(own.outputs, cut.outputs);
  for_each_task(groups * stretches * parts, [&](int64_t task) {
    const int64_t group = task / parts / stretches, first = task / parts % stretches * cut.results,
                  end = std::min(first + cut.results, results), count = end - first;
    const int64_t output = task % parts * cut.outputs, outputs = std::min(cut.outputs, own.outputs - output);
    const T *own_x = x + group * own.channels * own.pixels();
    const T *own_weight = weight + (group % own.groups * own.outputs + output) * depth;
    const Matrix out = matrix(y + (group * own.outputs + output) * results + first, results);
    Scratch<T> tile(scratch_product({cut.channels, places, count}));
    for (int64_t channel = 0; channel < own.channels; channel += cut.channels) {
      const int64_t channels = std::min(cut.channels, own.channels - channel);
      fill_tile(own_x + channel * own.pixels(), own, channels, first, end, tile.data());
      multiply_here({dtype_of<T>, outputs, count, channels * places, 1, channel > 0 ? 1.0 : 0.0,
                     matrix(own_weight + channel * places, depth), matrix(tile.data(), count), out, out});
    }
  });
}

template <class T> void compute_weight(const Convolution &own, const T *x, const T *y, T *weight) {
  const int64_t depth = own.depth(), places = own.places(), results = own.results();
  Cut cut = cut_of<T>(own, 1);
  // Channels are divided among threads: every one adds all of the batch up, in its order.
  cut.channels = std::min(cut.channels, std::max<int64_t>(1, divided_up(own.channels * own.groups, thread_count())));
  const int64_t stretches = divided_up(own.channels, cut.channels);
  cut.outputs = cut_of<T>(own, own.groups * stretches).outputs;
  const int64_t parts = divided_up(own.outputs, cut.outputs);
  for_each_task(own.groups * stretches * parts, [&](int64_t task) {
    const int64_t group = task / parts / stretches, channel = task / parts % stretches * cut.channels,
                  channels = std::min(cut.channels, own.channels - channel), lines = channels * places;
    const int64_t output = task % parts * cut.outputs, outputs = std::min(cut.outputs, own.outputs - output);
    const Matrix out = matrix(weight + (group * own.outputs + output) * depth + channel * places, depth);
    Scratch<T> tile(scratch_product({lines, cut.results}));
    for (int64_t index = 0; index < own.batch; index++) {
      const int64_t at = index * own.groups + group;
      for (int64_t first = 0; first < results; first += cut.results) {
        const int64_t end = std::min(first + cut.results, results), count = end - first;
        fill_tile(x + (at * own.channels + channel) * own.pixels(), own, channels, first, end, tile.data());
        multiply_here({dtype_of<T>, outputs, lines, count, 1, index + first > 0 ? 1.0 : 0.0,
                       matrix(y + (at * own.outputs + output) * results + first, results),
                       matrix(tile.data(), count).transposed(), out, out});
      }
    }
  });
}

bool is_depthwise(const Convolution &own) { return own.channels == 1 && own.outputs <= most_depthwise_outputs; }

// The three of one channel a group, each in the order of the batch and of the outputs.
template <class T> void compute_depthwise(const Convolution &own, const T *x, const T *weight, T *y) {
  for_each_task(own.batch * own.groups * own.outputs, [&](int64_t output) {
    T *to = y + output * own.results();
    std::fill_n(to, own.results(), T(0));
    convolve_channel(x + output / own.outputs * own.pixels(),
                     weight + output % (own.groups * own.outputs) * own.places(), own, to);
  });
}

template <class T> void transpose_depthwise(const Convolution &own, const T *y, const T *weight, T *x) {
  for_each_task(own.batch * own.groups, [&](int64_t channel) {
    T *to = x + channel * own.pixels();
    std::fill_n(to, own.pixels(), T(0));
    for (int64_t part = 0; part < own.outputs; part++)
      transpose_channel(y + (channel * own.outputs + part) * own.results(),
                        weight + (channel % own.groups * own.outputs + part) * own.places(), own, to);
  });
}

template <class T> void compute_depthwise_weight(const Convolution &own, const T *x, const T *y, T *weight) {
  const int64_t outputs = own.groups * own.outputs;
  for_each_task(outputs, [&](int64_t output) {
    T *to = weight + output * own.places();
    std::fill_n(to, own.places(), T(0));
    for (int64_t index = 0; index < own.batch; index++)
      add_channel_weight(x + (index * own.groups + output / own.outputs) * own.pixels(),
                         y + (index * outputs + output) * own.results(), own, to);
  });
}

template <class T> void compute_transposed(const Convolution &own, const T *y, const T *weight, T *x) {
  const int64_t depth = own.depth(), places = own.places(), results = own.results(), pixels = own.pixels();
  Cut cut = cut_of<T>(own, 1);
  // Channels are divided among threads: every one adds to its own.
  const int64_t parts_of_channels = divided_up(thread_count(), own.batch * own.groups);
  cut.channels = std::min(cut.channels, divided_up(own.channels, parts_of_channels));
  const int64_t stretches = divided_up(own.channels, cut.channels);
  for_each_task(own.batch * own.groups * stretches, [&](int64_t task) {
    const int64_t group = task / stretches, channel = task % stretches * cut.channels,
                  channels = std::min(cut.channels, own.channels - channel), lines = channels * places;
    const T *own_weight = weight + group % own.groups * own.outputs * depth + channel * places;
    T *own_x = x + (group * own.channels + channel) * pixels;
    std::fill_n(own_x, channels * pixels, T(0));
    Scratch<T> tile(scratch_product({lines, cut.results}));
    for (int64_t first = 0; first < results; first += cut.results) {
      const int64_t end = std::min(first + cut.results, results), count = end - first;
      const Matrix out = matrix(tile.data(), count);
      multiply_here({dtype_of<T>, lines, count, own.outputs, 1, 0, matrix(own_weight, depth).transposed(),
                     matrix(y + group * own.outputs * results + first, results), out, out});
      add_tile(tile.data(), own, channels, first, end, own_x);
    }
  });
}

// No position along an axis may overflow, whatever a block says.
void check_axis(const ConvolutionAxis &axis) {
  int64_t across, within, sum;
  bool is_refused = axis.input < 0 || axis.output < 0 || axis.kernel < 0 || axis.stride < 1 || axis.dilation < 0;
  is_refused |= __builtin_mul_overflow(axis.output, axis.stride, &across);
  is_refused |= __builtin_mul_overflow(axis.kernel, axis.dilation, &within);
  is_refused |= __builtin_add_overflow(across, within, &sum);
  is_refused |= __builtin_sub_overflow(sum, axis.before, &sum) || __builtin_add_overflow(sum, axis.input, &sum);
  is_refused |= axis.before < -(int64_t(1) << 52) || axis.before > int64_t(1) << 52;
  if (is_refused) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected sizes, strides and padding of a convolution");
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
    if (is_depthwise(own)) {
      if (is_of_weight) compute_depthwise_weight(own, left, right, to);
      else if (is_of_x) transpose_depthwise(own, left, right, to);
      else compute_depthwise(own, left, right, to);
    } else {
      if (is_of_weight) compute_weight(own, left, right, to);
      else if (is_of_x) compute_transposed(own, left, right, to);
      else compute(own, left, right, to);
    }
  });
}

ORCHARD_FUNCTION("convolution", convolution, ConvolutionBlock, 3)

} // namespace
