// Sums over windows of pictures, which express all three products of a convolution. For each position p of a grid:
//
//   result[row, p] = Σ over channels c and places k of weight[row, c, k] · source[c, p · step + shift(k)]
//
// The source is 0 out of bounds. A place is an element of the kernel. A convolution is one such sum, with source x and
// all places. Its adjoint with respect to x is one sum for each remainder of x's positions modulo the stride, with
// source ∂y and the places that reach it. So no products with zeros inserted between ∂y's elements are computed.
#pragma once

#include "../linalg/matrices.h"

namespace orchard {

constexpr int convolution_axes = 3;

// Positions along one axis: how many the grid has, and where they are in the result.
struct WindowAxis {
  int64_t grid, source, step;
  int64_t result, result_first, result_step;
};

// An element of the kernel: its shift from a position, and the index of its weight.
struct Place {
  int64_t shift[convolution_axes], weight;
};

struct Windows {
  int64_t batch, groups, channels, rows; // per group: channels that are summed, and rows of the result
  WindowAxis axes[convolution_axes];
  const Place *places;
  int64_t place_count;
  // Strides of the weight along groups, rows and channels.
  int64_t weight_group, weight_row, weight_channel;

  int64_t positions() const { return axes[0].grid * axes[1].grid * axes[2].grid; }
  int64_t pixels() const { return axes[0].source * axes[1].source * axes[2].source; }
  int64_t results() const { return axes[0].result * axes[1].result * axes[2].result; }
  int64_t depth() const { return channels * place_count; }
  // Returns whether the grid covers all positions of the result, in order.
  bool is_whole() const {
    for (const WindowAxis &axis : axes)
      if (axis.result_step != 1 || axis.result != axis.grid) return false;
    return true;
  }
};

// The shapes are source [batch, groups · channels, …source] and result [batch, groups · rows, …result].
template <class T> struct WindowKernel {
  // Computes all phases of a result. They differ only in their grids and places, and each has at least one place.
  void (*multiply)(const Windows *phases, int64_t count, const T *source, const T *weight, T *result);
  // Computes the gradient of the weight [groups, rows, depth] from the source and a gradient of the result [batch,
  // groups · rows, …grid].
  void (*weigh)(const Windows &windows, const T *source, const T *gradient, T *weight);
};
using WindowKernels = OfReals<WindowKernel>;

// The direct kernel (direct.isa.cpp), for grids whose lines divide into pieces that fill a tile; `takes` returns
// whether it applies.
template <class T> struct DirectKernel {
  bool (*takes)(const Windows &windows);
  void (*multiply)(const Windows &windows, const T *source, const T *weight, T *result);
};
using DirectKernels = OfReals<DirectKernel>;

// The kernel for short lines (plane.isa.cpp); `takes` returns whether it applies. `weigh` requires a finite source.
template <class T> struct PlaneKernel {
  bool (*takes)(const Windows &windows);
  void (*multiply)(const Windows &windows, const T *source, const T *weight, T *result);
  void (*weigh)(const Windows &windows, const T *source, const T *gradient, T *weight);
};
using PlaneKernels = OfReals<PlaneKernel>;

// The kernel for few rows, which would not fill a product's tile. It applies if lines of the source fit in a cache.
using DepthwiseKernels = OfReals<WindowKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(WindowKernels, window_kernels)
ORCHARD_ISA_TABLE(DirectKernels, direct_kernels)
ORCHARD_ISA_TABLE(PlaneKernels, plane_kernels)
ORCHARD_ISA_TABLE(DepthwiseKernels, depthwise_kernels)
