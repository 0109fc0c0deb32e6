// Sums over windows of pictures, which every product of a convolution is: for each position p of a grid
//
//   result[row, p] = Σ over channels c and places k of weight[row, c, k] · source[c, p · step + shift(k)]
//
// with 0 where a shift leads outside of the source. A convolution is one such sum, with the source x and a place for
// each element of the kernel. Its adjoint in x is one for each remainder of x's positions modulo the stride, with the
// source ∂y and the places that lead there; so none is ever multiplied with zeros between ∂y's elements.
#pragma once

#include "../linalg/matrices.h"

namespace orchard {

constexpr int convolution_axes = 3;

// Positions along an axis: those of the grid, and where they are of the result's.
struct WindowAxis {
  int64_t grid, source, step;
  int64_t result, result_first, result_step;
};

// An element of the kernel: what it adds to a position, and where its weight is.
struct Place {
  int64_t shift[convolution_axes], weight;
};

struct Windows {
  int64_t batch, groups, channels, rows; // of a group: channels that are summed, rows of the result
  WindowAxis axes[convolution_axes];
  const Place *places;
  int64_t place_count;
  // Distances in the weight: a group's, a row's, a channel's.
  int64_t weight_group, weight_row, weight_channel;

  int64_t positions() const { return axes[0].grid * axes[1].grid * axes[2].grid; }
  int64_t pixels() const { return axes[0].source * axes[1].source * axes[2].source; }
  int64_t results() const { return axes[0].result * axes[1].result * axes[2].result; }
  int64_t depth() const { return channels * place_count; }
  // Whether positions of the grid are those of the result, one after the other.
  bool is_whole() const {
    for (const WindowAxis &axis : axes)
      if (axis.result_step != 1 || axis.result != axis.grid) return false;
    return true;
  }
};

// source [batch, groups · channels, …source], weight, and result [batch, groups · rows, …result].
template <class T> struct WindowKernel {
  // Of phases of a result, which differ in their grids and places alone; each has a place.
  void (*multiply)(const Windows *phases, int64_t count, const T *source, const T *weight, T *result);
  // The adjoint in the weight [groups, rows, depth], of the source and a gradient of the result [batch, groups · rows,
  // …grid].
  void (*weigh)(const Windows &own, const T *source, const T *gradient, T *weight);
};
using WindowKernels = OfReals<WindowKernel>;

// One sum for grids whose lines are whole pieces of a tile's rows (direct.isa.cpp), if it takes them.
template <class T> struct DirectKernel {
  bool (*takes)(const Windows &own);
  void (*multiply)(const Windows &own, const T *source, const T *weight, T *result);
};
using DirectKernels = OfReals<DirectKernel>;

// The same for few rows, which would fill no tile of a product, where lines of the source fit a cache.
using DepthwiseKernels = OfReals<WindowKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(WindowKernels, window_kernels)
ORCHARD_ISA_TABLE(DirectKernels, direct_kernels)
ORCHARD_ISA_TABLE(DepthwiseKernels, depthwise_kernels)
