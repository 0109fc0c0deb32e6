// Small matrices, one per vector lane, so that as many are computed at once as a vector has lanes. For batches of
// matrices with n ≤ 32.
//
// A group of matrices is interleaved: element (i, j) of all of them is the vector `m[i * columns + j]`. The code for a
// group is the code for one matrix with each number replaced by a vector, in the same order of operations, so the bits
// of a lane do not depend on other lanes. Where a number would decide a branch (a pivot, a sign, convergence), a
// comparison gives a mask: `select(mask, a, b)` chooses per lane between both outcomes, and `any(mask)` ends a loop.
//
// A kernel in a `.isa.cpp` computes groups of `lanes<T>` matrices; the table of kernels also contains that number:
//
//   template <class T> void factorize(const LaneGroup<T> &from, …, T *scratch) {
//     Vector<T> *m = lanes_in<T>(scratch);
//     load_lanes(from, n * n, m);
//     for (…) m[i * n + j] = multiply_add<T>(-m[i * n + k], m[k * n + j], m[i * n + j]);
//     store_lanes(m, n * n, to);
//   }
//   extern const Kernels kernels = {{…, factorize<double>, lanes<double>}, …};
//
// The `.cpp` calls it on all threads, each with scratch memory, by `for_each_group` of batches.h:
//
//   for_each_group<T>(batch, kernel.lanes, operations, n * n, [&](int64_t first, int64_t count, T *scratch) {
//     kernel.factorize({from + first * n * n, n * n, count}, …, scratch);
//   });
//
// The last group may have fewer matrices. Its other lanes hold copies of the last matrix, which are not stored, so
// loops end and no lane computes with uninitialized memory. See cholesky.isa.cpp and triangular.isa.cpp.
#pragma once

#include "../matmul/transpose.h"
#include "matrices.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace orchard::ORCHARD_ISA {

// The type of a vector comparison: in each lane, all bits are set or none.
template <class T> using LaneMask = decltype(Vector<T>() > Vector<T>());
template <class T> using LaneInteger = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

// Returns scratch memory as vectors. It is aligned to the size of a vector.
template <class T> inline Vector<T> *lanes_in(T *scratch) { return reinterpret_cast<Vector<T> *>(scratch); }

template <class T> inline Vector<T> broadcast(T value) { return Vector<T>{} + value; }

template <class M, class V> inline V select(M mask, V a, V b) { return mask ? a : b; }

template <class M> inline bool any(M mask) {
  decltype(mask[0] + 0) bits = 0;
  for (size_t lane = 0; lane < sizeof mask / sizeof mask[0]; lane++) bits |= mask[lane];
  return bits != 0;
}

template <class V> inline V absolute(V x) { return select(x < 0, -x, x); }

template <class V> inline V square_root(V x) {
  using T = std::decay_t<decltype(x[0])>;
  T numbers[sizeof x / sizeof(T)];
  __builtin_memcpy(numbers, &x, sizeof x);
  for (T &number : numbers) number = std::sqrt(number);
  __builtin_memcpy(&x, numbers, sizeof x);
  return x;
}

// Calls block(first) for runs of as many elements as a vector has lanes; the last run may overlap the previous one. If
// there are too few elements for a run, calls one(element) for each.
template <class T, class Block, class One> inline void for_each_stretch(int64_t elements, Block &&block, One &&one) {
  constexpr int64_t width = lanes<T>;
  for (int64_t first = 0; first + width <= elements; first += width) block(first);
  if (elements < width)
    for (int64_t element = 0; element < elements; element++) one(element);
  else if (elements % width != 0) block(elements - width);
}

// Interleaves the matrices of a group, each of `elements` elements.
template <class T> inline void load_lanes(const LaneGroup<const T> &group, int64_t elements, Vector<T> *to) {
  constexpr int width = lanes<T>;
  const auto [from, stride, count] = group;
  auto matrix = [from = from, stride = stride, last = count - 1](int64_t lane) {
    return from + std::min(lane, last) * stride;
  };
  auto stretch = [&, count = count, stride = stride, from = from](int64_t first) {
    T *out = reinterpret_cast<T *>(to + first);
    if (count == width) return transpose_square<T>(from + first, stride, out, width);
    transpose_rows<T>([&](int lane) { return matrix(lane) + first; }, out, width, width);
  };
  for_each_stretch<T>(elements, stretch, [&](int64_t element) {
    T numbers[width];
    for (int lane = 0; lane < width; lane++) numbers[lane] = matrix(lane)[element];
    to[element] = load_vector(numbers);
  });
}

// Stores the matrices of a group: the inverse of load_lanes. Writes nothing for unused lanes.
template <class T> inline void store_lanes(const Vector<T> *from, int64_t elements, const LaneGroup<T> &group) {
  constexpr int width = lanes<T>;
  const auto [to, stride, count] = group;
  auto stretch = [&, to = to, stride = stride, count = count](int64_t first) {
    const T *in = reinterpret_cast<const T *>(from + first);
    transpose_rows<T>([&](int element) { return in + element * width; }, to + first, stride, count);
  };
  for_each_stretch<T>(elements, stretch, [&, to = to, stride = stride, count = count](int64_t element) {
    T numbers[width];
    store_vector<T>(from[element], numbers);
    for (int64_t lane = 0; lane < count; lane++) to[lane * stride + element] = numbers[lane];
  });
}

// A view of interleaved matrices: element (i, j) is m[i * row + j * column]. Strides make it row-major or column-major;
// negative strides reverse rows or columns.
template <class T> struct LaneMatrix {
  Vector<T> *m;
  int64_t row, column;

  Vector<T> &operator()(int64_t i, int64_t j) const { return m[i * row + j * column]; }
  LaneMatrix from(int64_t i, int64_t j) const { return {m + i * row + j * column, row, column}; }
  LaneMatrix transposed() const { return {m, column, row}; }
};

// The number of rows and columns of a tile whose sums, and their factors, fit in the vector registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int lane_tile = 4;
#else
constexpr int lane_tile = 3;
#endif

// c[r][s] -= Σ a(r, k) b(k, s) over k < count, with the sums of the tile in registers.
template <class T, int rows, int columns>
inline void subtract_products(Vector<T> (&c)[rows][columns], const LaneMatrix<T> &a, const LaneMatrix<T> &b,
                              int64_t count) {
  for (int k = 0; k < int(count); k++)
    for (int r = 0; r < rows; r++) {
      const Vector<T> factor = -a(r, k);
      for (int s = 0; s < columns; s++) c[r][s] = multiply_add<T>(factor, b(k, s), c[r][s]);
    }
}

template <int size> using TileSize = std::integral_constant<int, size>;

// Calls use(TileSize<size>()) for a size known only at run time, at most lane_tile.
template <class Use> inline void with_tile_size(int64_t size, Use &&use) {
  if (size == 1) use(TileSize<1>());
  else if (size == 2) use(TileSize<2>());
  else if (size == 3) use(TileSize<3>());
  else if constexpr (lane_tile == 4) use(TileSize<4>());
}

} // namespace orchard::ORCHARD_ISA
