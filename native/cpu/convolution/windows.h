// Sums over windows of pictures, the form of every product of a convolution: for each position p of a grid
//
//   result[row, p] = Σ over channels c and places k of weight[row, c, k] · source[c, p · step + shift(k)]
//
// where the source is 0 out of bounds. A convolution is one such sum, with source x and a place for each element of the
// kernel. Its adjoint in x is one sum for each remainder of x's positions modulo the stride, with source ∂y and the
// places that reach it; so no products with zeros between ∂y's elements are computed.
#pragma once

#include "../linalg/matrices.h"

namespace orchard {

constexpr int convolution_axes = 3;

// Positions along an axis: those of the grid, and their indices in the result.
struct WindowAxis {
  int64_t grid, source, step;
  int64_t result, result_first, result_step;
};

// An element of the kernel: what it adds to a position, and the index of its weight.
struct Place {
  int64_t shift[convolution_axes], weight;
};

struct Windows {
  int64_t batch, groups, channels, rows; // per group: channels that are summed, rows of the result
  WindowAxis axes[convolution_axes];
  const Place *places;
  int64_t place_count;
  // Strides in the weight: of a group, a row, a channel.
  int64_t weight_group, weight_row, weight_channel;

  int64_t positions() const { return axes[0].grid * axes[1].grid * axes[2].grid; }
  int64_t pixels() const { return axes[0].source * axes[1].source * axes[2].source; }
  int64_t results() const { return axes[0].result * axes[1].result * axes[2].result; }
  int64_t depth() const { return channels * place_count; }
  // Returns whether the grid's positions are those of the result, one after the other.
  bool is_whole() const {
    for (const WindowAxis &axis : axes)
      if (axis.result_step != 1 || axis.result != axis.grid) return false;
    return true;
  }
};

// source [batch, groups · channels, …source], weight, and result [batch, groups · rows, …result].
template <class T> struct WindowKernel {
  // For the phases of a result, which differ only in their grids and places; each has at least one place.
  void (*multiply)(const Windows *phases, int64_t count, const T *source, const T *weight, T *result);
  // The adjoint in the weight [groups, rows, depth], from the source and a gradient of the result [batch, groups ·
  // rows, …grid].
  void (*weigh)(const Windows &windows, const T *source, const T *gradient, T *weight);
};
using WindowKernels = OfReals<WindowKernel>;

// One sum for grids whose lines are whole pieces of a tile's rows (direct.isa.cpp); `takes` returns whether it applies.
template <class T> struct DirectKernel {
  bool (*takes)(const Windows &windows);
  void (*multiply)(const Windows &windows, const T *source, const T *weight, T *result);
};
using DirectKernels = OfReals<DirectKernel>;

// The same for few rows, which would not fill a product's tile, if lines of the source fit a cache.
using DepthwiseKernels = OfReals<WindowKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(WindowKernels, window_kernels)
ORCHARD_ISA_TABLE(DirectKernels, direct_kernels)
ORCHARD_ISA_TABLE(DepthwiseKernels, depthwise_kernels)
