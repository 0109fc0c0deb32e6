// Convolutions of one to three axes and their adjoints, as sums over windows (windows.h).
#pragma once

// The tensors, contiguous: x [batch, groups · channels, …input], w [groups · outputs, channels, …kernel] and y [batch,
// groups · outputs, …output]; `channels` and `outputs` are per group. Along an axis, element k of the kernel at output
// p reads x at p · stride + k · dilation − before; x is 0 out of bounds.
// - result: a value of ConvolutionResult
// - offsets: of the operands; the weight is the second operand if y or x is computed
#include "../../.build/generated/convolution_block.h"

#include "../functions.h"
#include "windows.h"

namespace orchard {

// Which of the three tensors is computed from the other two.
enum ConvolutionResult : int { convolution_y, convolution_x, convolution_weight, convolution_results };

static_assert(std::extent_v<decltype(ConvolutionBlock::input)> == convolution_axes);

struct ConvolutionAxis {
  int64_t input, output, kernel, stride, dilation, before;
};

// Throws Failure if a position along an axis could overflow.
inline void check_axis(const ConvolutionAxis &axis) {
  int64_t across, within, sum;
  bool is_refused = axis.input < 0 || axis.output < 0 || axis.kernel < 0 || axis.stride < 1 || axis.dilation < 0;
  is_refused |= __builtin_mul_overflow(axis.output, axis.stride, &across);
  is_refused |= __builtin_mul_overflow(axis.kernel, axis.dilation, &within);
  is_refused |= __builtin_add_overflow(across, within, &sum);
  is_refused |= __builtin_sub_overflow(sum, axis.before, &sum) || __builtin_add_overflow(sum, axis.input, &sum);
  is_refused |= axis.before < -(int64_t(1) << 52) || axis.before > int64_t(1) << 52;
  if (is_refused) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected sizes, strides and padding of a convolution");
}

struct Convolution {
  int64_t batch, groups, channels, outputs;
  ConvolutionAxis axes[convolution_axes];

  int64_t pixels() const { return axes[0].input * axes[1].input * axes[2].input; }
  int64_t results() const { return axes[0].output * axes[1].output * axes[2].output; }
  int64_t places() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t depth() const { return channels * places(); }
};

} // namespace orchard
