// Rows of adjacent elements in blocks of a few rows, for reductions of columns: each vector of columns is read from the
// first row of a block to its last while the state is in registers. At the same time the next block is prefetched,
// since its rows are too far apart for the hardware prefetcher.
#pragma once

#include "matmul/simd.h"

#include "dtypes.h"

#include <algorithm>
#include <utility>

namespace orchard::ORCHARD_ISA {

constexpr int block_rows = 8;

template <class C> struct RowBlock {
  const C *rows[block_rows];
  const char *next[block_rows]; // rows of the next block
  int64_t next_bytes;           // size of an element in those rows

  // Prefetches the next block; to be called for columns in order, one vector at a time.
  template <int count> void fetch_next(int64_t column) const {
    constexpr int64_t cache_line = 64;
    if (column * next_bytes % cache_line != 0) return;
    for (int row = 0; row < count; row++) __builtin_prefetch(next[row] + column * next_bytes, 0, 2);
  }
};

// Loads the first `count` elements, at most a vector.
template <class C> inline Vector<C> load_some(const C *from, int64_t count) {
  if (count >= lanes<C>) return load_vector(from);
  Vector<C> vector = {};
  for (int64_t lane = 0; lane < count; lane++) vector[lane] = from[lane];
  return vector;
}

// Loads the first `count` elements, converted to float64; at most a vector of float64.
template <class C> inline Vector<double> load_some_wide(const C *from, int64_t count) {
  if constexpr (std::is_same_v<C, double>) return load_some(from, count);
  else {
    typedef C Half __attribute__((vector_size(vector_bytes / sizeof(double) * sizeof(C))));
    Half half = {};
    if (count >= lanes<double>) std::memcpy(&half, from, sizeof half);
    else
      for (int64_t lane = 0; lane < count; lane++) half[lane] = from[lane];
    return __builtin_convertvector(half, Vector<double>);
  }
}

// Calls use(number of rows, block, number of the first row) for `count` rows of `width` elements, at most `columns`:
// for whole blocks, then for each remaining row. The number of rows is a std::integral_constant. address_of(row)
// returns the address of a row. It must also be valid for rows from `count` up to `known`, which are only prefetched.
template <class T, int64_t columns, class Address, class Use>
inline void for_each_row_block(int64_t count, int64_t width, Address &&address_of, Use &&use, int64_t known = 0) {
  using C = Compute<T>;
  constexpr bool is_wide = std::is_same_v<T, C>;
  C widened[is_wide ? 1 : block_rows * columns];
  RowBlock<C> block;
  block.next_bytes = sizeof(T);
  known = std::max(known, count);
  auto visit = [&](auto rows, int64_t first) {
    for (int row = 0; row < rows; row++) {
      const T *from = address_of(first + row);
      block.next[row] = reinterpret_cast<const char *>(address_of(std::min(first + row + rows, known - 1)));
      if constexpr (is_wide) block.rows[row] = from;
      else {
        block.rows[row] = widened + row * columns;
        widen(from, widened + row * columns, width);
      }
    }
    use(rows, block, first);
  };
  int64_t first = 0;
  for (; first + block_rows <= count; first += block_rows) visit(std::integral_constant<int, block_rows>{}, first);
  for (; first < count; first++) visit(std::integral_constant<int, 1>{}, first);
}

} // namespace orchard::ORCHARD_ISA
