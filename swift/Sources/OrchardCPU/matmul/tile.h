// The innermost part of a matrix product: a small tile of the result, held in registers while the sum runs over k.
//
//   for p < depth: for r < rows: for c < columns: tile[r][c] += a[p][r] * b[p][c]
//
// One step loads `columns` numbers of b as whole vectors and multiplies each with every one of a's `rows` numbers. The tile is
// as large as the registers allow: rows * vectors sums, the vectors of b, and one for the factor.
#pragma once

#include "simd.h"

namespace orchard::ORCHARD_ISA {

#if defined(__AVX512F__)
constexpr int tile_rows = 14, tile_vectors = 2; // of 32 registers
#elif defined(__aarch64__)
constexpr int tile_rows = 8, tile_vectors = 3; // of 32 registers
#else
constexpr int tile_rows = 6, tile_vectors = 2; // of 16 registers
#endif

template <class T> constexpr int tile_columns = tile_vectors * vector_bytes / int(sizeof(T));

// `a` and `b` are packed: tile_rows, and tile_columns, adjacent numbers for each step. Sets the tile in `c`, or adds to it;
// `c` is aligned, `c_stride` a multiple of tile_columns.
template <class T, bool adds> inline void multiply_tile(int64_t depth, const T *a, const T *b, T *c, int64_t c_stride) {
  Vector<T> sums[tile_rows][tile_vectors] = {};
  const Vector<T> *columns = reinterpret_cast<const Vector<T> *>(b);
  for (int64_t p = 0; p < depth; p++, a += tile_rows, columns += tile_vectors) {
#pragma GCC unroll 16
    for (int r = 0; r < tile_rows; r++)
#pragma GCC unroll 4
      for (int v = 0; v < tile_vectors; v++) sums[r][v] = multiply_add<T>(columns[v], a[r], sums[r][v]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < tile_rows; r++) {
    Vector<T> *row = reinterpret_cast<Vector<T> *>(c + r * c_stride);
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; v++) row[v] = adds ? row[v] + sums[r][v] : sums[r][v];
  }
}

} // namespace orchard::ORCHARD_ISA
