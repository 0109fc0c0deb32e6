#pragma once

#include "../../.build/generated/geqrf_block.h"
#include "../../.build/generated/ormqr_block.h"

// `width` is the number of columns of Q, or 0 if only R is computed.
#include "../../.build/generated/qr_block.h"

// `width` is the number of columns of the result.
#include "../../.build/generated/householder_product_block.h"

#include "matrices.h"

namespace orchard {

// Decomposes as many matrices at once as a vector has lanes. Q has no more columns than A.
template <class T> struct QrGroup {
  LaneGroup<const T> a;
  LaneGroup<T> q, r;
  int64_t rows, columns, width;

  int64_t count() const { return std::min(rows, columns); }
  int64_t inner() const { return width > 0 ? width : count(); }
};

template <class T> struct GeqrfGroup {
  LaneGroup<const T> a;
  LaneGroup<T> factors, tau;
  int64_t rows, columns;
};

template <class T> struct QrLanesKernel {
  // The size of `work` is `qr_lanes_work` vectors.
  void (*qr)(const QrGroup<T> &group, T *work);
  void (*geqrf)(const GeqrfGroup<T> &group, T *work);
  int lanes;
};

// Returns the size of the work memory in vectors.
inline int64_t qr_lanes_work(int64_t rows, int64_t columns, int64_t width, int64_t inner) {
  return rows * columns + 2 * std::min(rows, columns) + std::max(inner * columns, rows * width);
}

using QrLanesKernels = OfReals<QrLanesKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(QrLanesKernels, qr_lanes_kernels)
