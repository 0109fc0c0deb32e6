// The product of two 8 x 8 matrices on an NVIDIA GPU. Each lane has two adjacent elements of a row
// (simdgroup_matrix.h).
//
// Accumulates in float32 in ascending order of k and rounds once, like the software device.
#ifndef MRT_GPU_MATRIX_H
#define MRT_GPU_MATRIX_H

#include "lanes.h"

namespace mrt {

// The lane that has the element (row, column) of a matrix: the inverse of matrix_position.
MRT_FUNC mrt_u32 lane_of(mrt_u32 row, mrt_u32 column) {
  return (row & 4) * 4 + (column & 4) * 2 + (row & 3) * 2 + (column & 2) / 2;
}

template <typename D, typename A, typename B, typename C>
MRT_FUNC metal::vec<D, 64> multiply_accumulate(metal::vec<A, 64> a, metal::vec<B, 64> b, metal::vec<C, 64> c,
                                               const char *, Site) {
  const MatrixPosition position = matrix_position(lane_index());
  float sum[2] = {float(c.own[0]), float(c.own[1])};
  for (mrt_u32 k = 0; k < 8; k += 2) {
    const metal::vec<A, 64> left = from_lane(a, lane_of(position.row, k));
    for (mrt_u32 i = 0; i < 2; i++) {
      const metal::vec<B, 64> right = from_lane(b, lane_of(k + i, position.column));
      sum[0] = __builtin_fmaf(float(left.own[i]), float(right.own[0]), sum[0]);
      sum[1] = __builtin_fmaf(float(left.own[i]), float(right.own[1]), sum[1]);
    }
  }
  return {{D(sum[0]), D(sum[1])}};
}

} // namespace mrt

#endif
