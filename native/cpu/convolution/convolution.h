// Convolutions of one to three axes as products of matrices. What a product reads of x, the elements under each place
// of the kernel, is copied into a tile for as many outputs as a cache holds, and no further: with p an output and
// k = (channel, place),
//
//   y[o, p]     = Σₖ w[o, k] tile[k, p]      the convolution
//   ∂w[o, k]    = Σₚ ∂y[o, p] tile[k, p]     its adjoint in w
//   tile[k, p]  = Σₒ w[o, k] ∂y[o, p]        its adjoint in x, to whose elements the tile's are added
#pragma once

#include "../functions.h"
#include "runs.h"

#include <algorithm>

namespace orchard {

constexpr int convolution_axes = 3;

// Which of the three is computed, from the other two.
enum ConvolutionResult : int { convolution_y, convolution_x, convolution_weight, convolution_results };

// Of one group: x [batch, groups · channels, …input], w [groups · outputs, channels, …kernel] and y
// [batch, groups · outputs, …output], without gaps. Along an axis, place k of the kernel at output p reads x at
// p · stride + k · dilation − before, which may lie outside, where x is 0.
struct ConvolutionBlock {
  DTypeField dtype;
  Whole batch, groups, channels, outputs;
  Whole input[convolution_axes], output[convolution_axes], kernel[convolution_axes];
  Whole stride[convolution_axes], dilation[convolution_axes], before[convolution_axes];
  Whole result;     // a ConvolutionResult
  Whole offsets[3]; // of the operands: of y and x the weight is the second one
};

struct ConvolutionAxis {
  int64_t input, output, kernel, stride, dilation, before;

  int64_t position(int64_t output_at, int64_t place) const { return output_at * stride + place * dilation - before; }
};

struct Convolution {
  int64_t batch, groups, channels, outputs;
  ConvolutionAxis axes[convolution_axes];

  int64_t pixels() const { return axes[0].input * axes[1].input * axes[2].input; }
  int64_t results() const { return axes[0].output * axes[1].output * axes[2].output; }
  int64_t places() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t depth() const { return channels * places(); }
};

// Where x's elements stand in a tile: `count` results from `first` on read a line of x, under one place along the last
// axis. Those of [begin, end) read line[start + i · step], the others zeros.
struct Run {
  int64_t count, begin, end, start, step;

  Run(const ConvolutionAxis &axis, int64_t place, int64_t first, int64_t own)
      : count(own), start(axis.position(first, place)), step(axis.stride) {
    const auto steps_to = [&](int64_t at) { return at <= start ? 0 : (at - start - 1) / step + 1; };
    begin = std::min(count, steps_to(0));
    end = std::clamp(steps_to(axis.input), begin, count);
  }
};

// Calls use(line, run, at) for the lines of x that results [first, end) read under a place of the kernel: where the
// line begins in a channel, or -1 for zeros, and the first of the results, counted from `first`.
template <class Use> void for_each_run(const Convolution &own, int64_t place, int64_t first, int64_t end, Use &&use) {
  const auto &[deep, high, wide] = own.axes;
  const int64_t column = place % wide.kernel, row = place / wide.kernel % high.kernel,
                layer = place / wide.kernel / high.kernel;
  for (int64_t at = first; at < end;) {
    const int64_t line = at / wide.output, x = at % wide.output, count = std::min(wide.output - x, end - at);
    const int64_t z = deep.position(line / high.output, layer), y = high.position(line % high.output, row);
    const bool is_inside = z >= 0 && z < deep.input && y >= 0 && y < high.input;
    use(is_inside ? (z * high.input + y) * wide.input : -1, Run(wide, column, x, count), at - first);
    at += count;
  }
}

template <class T> void copy_run(const T *line, const Run &run, T *to) {
  std::fill(to, to + run.begin, T(0));
  if (run.step == 1) std::copy(line + run.start + run.begin, line + run.start + run.end, to + run.begin);
  else
    for (int64_t i = run.begin; i < run.end; i++) to[i] = line[run.start + i * run.step];
  std::fill(to + run.end, to + run.count, T(0));
}

// The reverse of copying, but added.
template <class T> void add_run(const T *from, const Run &run, T *line) {
  line += run.start;
  if (run.step == 1) run_kernels().of<T>().add(line + run.begin, from + run.begin, run.end - run.begin);
  else
    for (int64_t i = run.begin; i < run.end; i++) line[i * run.step] += from[i];
}

// tile[k][p] for `channels` channels, from the first one of x's that is given, and results [first, end).
template <class T>
void fill_tile(const T *x, const Convolution &own, int64_t channels, int64_t first, int64_t end, T *tile) {
  for (int64_t channel = 0; channel < channels; channel++, x += own.pixels())
    for (int64_t place = 0; place < own.places(); place++, tile += end - first)
      for_each_run(own, place, first, end, [&](int64_t line, const Run &run, int64_t at) {
        if (line < 0) std::fill_n(tile + at, run.count, T(0));
        else copy_run(x + line, run, tile + at);
      });
}

// The reverse: each number of a tile is added to the element that it stands for.
template <class T>
void add_tile(const T *tile, const Convolution &own, int64_t channels, int64_t first, int64_t end, T *x) {
  for (int64_t channel = 0; channel < channels; channel++, x += own.pixels())
    for (int64_t place = 0; place < own.places(); place++, tile += end - first)
      for_each_run(own, place, first, end, [&](int64_t line, const Run &run, int64_t at) {
        if (line >= 0) add_run(tile + at, run, x + line);
      });
}

// One channel with one kernel, without a tile: y, x and a kernel, of which one is added to.
template <class T> void convolve_channel(const T *x, const T *weight, const Convolution &own, T *y) {
  const RunKernel<T> &kernel = run_kernels().of<T>();
  for (int64_t place = 0; place < own.places(); place++)
    for_each_run(own, place, 0, own.results(), [&](int64_t line, const Run &run, int64_t at) {
      if (line < 0) return;
      const T *from = x + line + run.start, factor = weight[place];
      T *to = y + at;
      if (run.step == 1) kernel.add_multiple(to + run.begin, from + run.begin, factor, run.end - run.begin);
      else
        for (int64_t i = run.begin; i < run.end; i++) to[i] += factor * from[i * run.step];
    });
}

template <class T> void transpose_channel(const T *y, const T *weight, const Convolution &own, T *x) {
  const RunKernel<T> &kernel = run_kernels().of<T>();
  for (int64_t place = 0; place < own.places(); place++)
    for_each_run(own, place, 0, own.results(), [&](int64_t line, const Run &run, int64_t at) {
      if (line < 0) return;
      const T *from = y + at, factor = weight[place];
      T *to = x + line + run.start;
      if (run.step == 1) kernel.add_multiple(to + run.begin, from + run.begin, factor, run.end - run.begin);
      else
        for (int64_t i = run.begin; i < run.end; i++) to[i * run.step] += factor * from[i];
    });
}

template <class T> void add_channel_weight(const T *x, const T *y, const Convolution &own, T *weight) {
  const RunKernel<T> &kernel = run_kernels().of<T>();
  for (int64_t place = 0; place < own.places(); place++)
    for_each_run(own, place, 0, own.results(), [&](int64_t line, const Run &run, int64_t at) {
      if (line < 0) return;
      const T *from = x + line + run.start, *gradient = y + at;
      if (run.step == 1) weight[place] += kernel.dot(from + run.begin, gradient + run.begin, run.end - run.begin);
      else
        for (int64_t i = run.begin; i < run.end; i++) weight[place] += from[i * run.step] * gradient[i];
    });
}

} // namespace orchard
