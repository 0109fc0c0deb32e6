// Products of tiles, held in registers while their sums run, as in ../matmul/tile.h.
//
// Scores lie transposed, s[key][query]: a vector holds one key's scores of adjacent queries. Largest elements and sums of a query's scores
// then go lane by lane, with nothing to be brought across lanes, and the other operand comes as single numbers.
#pragma once

#include "../matmul/simd.h"

namespace orchard::ORCHARD_ISA {

// Rows of a tile, its vectors, and the vectors of a tile of an outer product (four rows), by the number of registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int panel_rows = 8, panel_vectors = 3, outer_vectors = 4; // of 32
#else
constexpr int panel_rows = 4, panel_vectors = 3, outer_vectors = 2; // of 16
#endif
constexpr int outer_rows = 4;

// What becomes of c, with x[r][l] = Σ a[p][r] · b[p][l] over p < depth: factors[0] · x, c + x, or factors[l] · c + x.
enum class Product { scaled, added, added_to_scaled };

// For r < panel_rows and l < vectors · lanes. All are packed: rows of a are panel_rows long, those of b and c as long as that many lanes.
template <Product product, int vectors, class T>
inline void multiply_panel(int64_t depth, const T *a, const T *b, const T *factors, T *c) {
  constexpr int width = vectors * lanes<T>;
  if (product != Product::scaled && depth < 1) __builtin_unreachable();
  Vector<T> sums[panel_rows][vectors] = {};
  if constexpr (product != Product::scaled) {
#pragma GCC unroll 8
    for (int r = 0; r < panel_rows; r++)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) {
        sums[r][v] = load_vector(c + r * width + v * lanes<T>);
        if constexpr (product == Product::added_to_scaled) sums[r][v] *= load_vector(factors + v * lanes<T>);
      }
  }
  for (int64_t p = 0; p < depth; p++, a += panel_rows, b += width) {
    Vector<T> columns[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) columns[v] = load_vector(b + v * lanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < panel_rows; r++)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sums[r][v] = multiply_add<T>(columns[v], a[r], sums[r][v]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < panel_rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      if constexpr (product == Product::scaled) sums[r][v] *= factors[0];
      store_vector(sums[r][v], c + r * width + v * lanes<T>);
    }
}

// c[r][l] += Σ a[p][r][i] · b[p][i][l] over p < panels and i < panel_rows, for r < panel_rows and l < vectors · lanes: panels of a, `stride`
// apart, are read across. Rows of a are panel_rows long, those of b and c as long as that many lanes.
template <int vectors, class T> inline void add_across(int64_t panels, const T *a, int64_t stride, const T *b, T *c) {
  constexpr int width = vectors * lanes<T>;
  Vector<T> sums[panel_rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < panel_rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sums[r][v] = load_vector(c + r * width + v * lanes<T>);
  for (int64_t p = 0; p < panels; p++, a += stride)
    for (int i = 0; i < panel_rows; i++, b += width) {
      Vector<T> columns[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) columns[v] = load_vector(b + v * lanes<T>);
#pragma GCC unroll 8
      for (int r = 0; r < panel_rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) sums[r][v] = multiply_add<T>(columns[v], a[r * panel_rows + i], sums[r][v]);
    }
#pragma GCC unroll 8
  for (int r = 0; r < panel_rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) store_vector(sums[r][v], c + r * width + v * lanes<T>);
}

// c[r][l] += Σ a[r][i] · b[i][l] over i < depth, for r < outer_rows and l < vectors · lanes; rows of a are `width` apart, rows of b and c
// `stride`.
template <int vectors, int width, class T>
inline void add_outer_tile(int64_t depth, const T *a, const T *b, T *c, int64_t stride) {
  if (depth < 1) __builtin_unreachable();
  Vector<T> sums[outer_rows][vectors];
#pragma GCC unroll 4
  for (int r = 0; r < outer_rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sums[r][v] = load_vector(c + r * stride + v * lanes<T>);
  for (int64_t i = 0; i < depth; i++, a++, b += stride) {
    Vector<T> columns[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) columns[v] = load_vector(b + v * lanes<T>);
#pragma GCC unroll 4
    for (int r = 0; r < outer_rows; r++)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sums[r][v] = multiply_add<T>(columns[v], a[r * width], sums[r][v]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < outer_rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) store_vector(sums[r][v], c + r * stride + v * lanes<T>);
}

// The same for a whole row of c, whose length `stride` is a multiple of a vector's.
template <int width, class T> inline void add_outer_rows(int64_t depth, const T *a, const T *b, T *c, int64_t stride) {
  int64_t column = 0;
  for (; column + outer_vectors * lanes<T> <= stride; column += outer_vectors * lanes<T>)
    add_outer_tile<outer_vectors, width>(depth, a, b + column, c + column, stride);
  for (; column < stride; column += lanes<T>) add_outer_tile<1, width>(depth, a, b + column, c + column, stride);
}

} // namespace orchard::ORCHARD_ISA
