// Distances between all points of two sets, and the gradient of Euclidean distances.
#pragma once

// - p: the order of the norm
// - offsets, batch_strides, row_strides, column_strides: of x, y and out
#include "../../.build/generated/cdist_block.h"

// - offsets, batch_strides, row_strides, column_strides: of weights, x, y and out
#include "../../.build/generated/cdist_gradient_block.h"

#include "../functions.h"
#include "../matmul/product.h"

namespace orchard {

// The norms that have a kernel: orders 1, 2 and infinity.
enum class DistanceNorm : int { sum, euclidean, largest };

// out[i, j] = ‖x[i, :] − y[j, :]‖ for each index of the batch: x is m x k, y is n x k.
struct Distances {
  DistanceNorm norm;
  int64_t batch, m, n, k;
  Matrix x, y, out;
  int64_t x_batch, y_batch, out_batch; // strides
  // Whether x is y, and out has only the pairs i < j, one after the other in row-major order.
  bool is_triangle;
};

// out[i, :] = Σⱼ weights[i, j] (x[i, :] − y[j, :]) for each index of the batch: x and out are m x k, y is n x k.
// Coordinates are adjacent.
struct PulledPoints {
  int64_t batch, m, n, k;
  Matrix weights, x, y, out;
  int64_t weights_batch, x_batch, y_batch, out_batch; // strides
};

// Indexed by dtype: float64 and float32.
struct DistanceKernels {
  void (*compute[2])(const Distances &distances);
  void (*pull[2])(const PulledPoints &points);
};

} // namespace orchard

ORCHARD_ISA_TABLE(DistanceKernels, distance_kernels)
