// Shared parts of linear algebra. Matrices are row-major and contiguous, of float32 or float64. Batches are divided
// among threads.
#pragma once

#include "../copy/copy.h"
#include "../functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace orchard {

// The kernels for each compute type of linear algebra.
template <template <class> class Kernel> struct OfReals {
  Kernel<double> float64;
  Kernel<float> float32;
  template <class T> const Kernel<T> &of() const {
    if constexpr (sizeof(T) == 8) return float64;
    else return float32;
  }
};

// Matrices that are computed at once, one per vector lane (lanes.h). There are `count` of them, at most as many as a
// vector has lanes, `stride` elements apart.
template <class T> struct LaneGroup {
  T *data;
  int64_t stride, count;
};

// Calls use(T{}) for the compute type of a dtype.
template <class Use> void with_real(DType dtype, Use &&use) {
  if (dtype == DType::float64) return use(double{});
  if (dtype == DType::float32) return use(float{});
  fail(ORCHARD_CPU_UNSUPPORTED,
       std::string("expected float32 or float64, got ") + dtype_names[static_cast<int>(dtype)]);
}

// Returns whether all elements are finite.
template <class T> bool are_finite(const T *x, int64_t count) {
  int others = 0; // no early exit, since that would prevent vectorization
  for (int64_t i = 0; i < count; i++) others |= !(std::abs(x[i]) <= std::numeric_limits<T>::max());
  return others == 0;
}

// Returns the number of matrices per task, if a matrix takes about `operations` operations: a task should take about 10
// µs.
inline int64_t matrices_of_task(int64_t operations) { return std::max<int64_t>(1, (1 << 16) / (operations + 1)); }

// Returns the extent of `batch` contiguous matrices.
inline Extent matrices(int64_t batch, int64_t rows, int64_t columns) {
  Extent matrix = Extent(columns).along(rows, columns);
  return matrix.along(batch, matrix.count());
}

// Calls use(i, j) for 0 ≤ i < rows, 0 ≤ j < columns, one square block after the other, so that blocks stay in the
// cache.
template <class Use> void for_each_element_blocked(int64_t rows, int64_t columns, Use &&use) {
  constexpr int64_t block = 16;
  for (int64_t top = 0; top < rows; top += block)
    for (int64_t left = 0; left < columns; left += block)
      for (int64_t i = top; i < std::min(rows, top + block); i++)
        for (int64_t j = left; j < std::min(columns, left + block); j++) use(i, j);
}

// to[j * to_stride + i] = from[i * from_stride + j] for 0 ≤ i < rows, 0 ≤ j < columns. The two must not overlap.
template <class T>
void transpose_part(const T *from, int64_t from_stride, int64_t rows, int64_t columns, T *to, int64_t to_stride) {
  constexpr int64_t size = sizeof(T), at_size = size == 8 ? 3 : 2;
  const int64_t side = transposes().side[at_size];
  for (int64_t i = 0; i < rows; i += side)
    for (int64_t j = 0; j < columns; j += side)
      transposes().block[at_size]({reinterpret_cast<const char *>(from + i * from_stride + j),
                                   reinterpret_cast<char *>(to + j * to_stride + i),
                                   {std::min(side, columns - j), size, to_stride * size},
                                   {std::min(side, rows - i), from_stride * size, size},
                                   false});
}

// Writes the transpose of `from` (rows x columns) to `to` (columns x rows). Both are row-major and contiguous, and must
// not overlap.
template <class T> void transpose_matrix(const T *from, int64_t rows, int64_t columns, T *to) {
  transpose_part(from, columns, rows, columns, to, rows);
}

// Transposes a square matrix in place.
template <class T> void transpose_in_place(T *a, int64_t n) {
  for_each_element_blocked(n, n, [&](int64_t i, int64_t j) {
    if (i < j) std::swap(a[i * n + j], a[j * n + i]);
  });
}

} // namespace orchard
