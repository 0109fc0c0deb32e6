// Eliminates some columns of a matrix of few rows in place, with partial pivoting. Rows are renumbered instead of
// swapped.
#pragma once

#include "../matmul/transpose.h"
#include "lu.h"

#include <cmath>
#include <limits>

namespace orchard::ORCHARD_ISA {

// The number of columns of a panel: whole vectors of both types on every instruction set.
constexpr int64_t panel_columns = lu_unit;
// The largest number of rows of FewRows, which has a bit of a uint64_t for each.
constexpr int64_t few_rows = 64;

template <class T> using MaskOf = decltype(Vector<T>{} > Vector<T>{});

template <class T> inline Vector<T> magnitude(Vector<T> v) { return v < 0 ? -v : v; }

// Returns the largest lane of a vector that contains no NaN.
template <class T> inline T largest_lane(Vector<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_reduce_max_ps((__m512)v);
  else return _mm512_reduce_max_pd((__m512d)v);
#else
  T largest = v[0];
  for (int lane = 1; lane < lanes<T>; lane++) largest = v[lane] > largest ? v[lane] : largest;
  return largest;
#endif
}

// Returns a bit for each lane in which two vectors are equal.
template <class T> inline uint64_t equal_lanes(Vector<T> a, Vector<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
  else return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_EQ_OQ);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return uint64_t(_mm256_movemask_ps((__m256)(a == b)));
  else return uint64_t(_mm256_movemask_pd((__m256d)(a == b)));
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return uint64_t(_mm_movemask_ps((__m128)(a == b)));
  else return uint64_t(_mm_movemask_pd((__m128d)(a == b)));
#else
  uint64_t bits = 0;
  for (int lane = 0; lane < lanes<T>; lane++) bits |= uint64_t(a[lane] == b[lane]) << lane;
  return bits;
#endif
}

// Returns a mask of the lanes whose bits are set.
template <class T> inline MaskOf<T> lanes_with(uint64_t bits) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (MaskOf<T>)_mm512_movm_epi32(__mmask16(bits));
  else return (MaskOf<T>)_mm512_movm_epi64(__mmask8(bits));
#else
  using Integer = std::decay_t<decltype(MaskOf<T>()[0])>;
  static constexpr Integer lane_bits[] = {1, 2, 4, 8};
  MaskOf<T> mask;
  for (int lane = 0; lane < lanes<T>; lane++) mask[lane] = lane < 4 ? lane_bits[lane] : lane_bits[lane - 4] << 4;
  return (mask & (MaskOf<T>{} + Integer(bits))) != 0;
#endif
}

// y - factor x
template <class T> inline Vector<T> minus_product(Vector<T> y, T factor, Vector<T> x) {
  return multiply_add<T>(x, -factor, y);
}

// Returns whether division by a number may be replaced by multiplication with its reciprocal, as in LAPACK's getf2:
// neither overflows nor loses digits to underflow.
template <class T> inline bool has_reciprocal(T size) {
  constexpr T least = std::numeric_limits<T>::min();
  return size >= least && size <= 1 / least;
}

// Up to few_rows rows, a multiple of lu_unit, stored by columns. A row stays where it is and has a position: the place
// that it would have if rows were swapped. Rows that have been pivots no longer change.
template <class T, int rows> class FewRows {
public:
  static constexpr int vectors = rows / lanes<T>;

  // Loads the first columns of the rows from `from` on, which are `width` elements apart.
  void load(const T *from, int64_t width, bool pivot) {
    pivot_ = pivot, live_ = ~uint64_t(0);
    for (int64_t i = 0; i < rows; i += lanes<T>)
      for (int64_t j = 0; j < panel_columns; j += lanes<T>)
        transpose_square(from + i * width + j, width, column(j) + i, rows);
    for (int i = 0; i < rows; i++) row_at_[i] = position_[i] = static_cast<uint8_t>(i);
    Vector<T> best = floor();
    for (int i = 0; i < vectors; i++) best = larger(magnitude<T>(vector(0, i)), best);
    find(0, best);
  }

  // Eliminates column k. Returns the position that was swapped with position k.
  int eliminate(int64_t k) {
    const int row = choose(k), at = swap(k, row);
    const T top = column(k)[row];
    live_ &= ~(uint64_t(1) << row);
    divide(k, top);
    if (k + 1 == panel_columns) return at;
    subtract_next(k, row);
    for (int i = 0; i < vectors; i++) subtract_others(k, row, i);
    return at;
  }

  T pivot(int64_t k) const { return memory_[k * rows + row_at_[k]]; }
  int row_at(int64_t position) const { return row_at_[position]; }
  int position_of(int64_t row) const { return position_[row]; }

  // Stores the rows at their positions.
  void store(T *to, int64_t width) {
    constexpr int part = 16 / int(sizeof(T));
    for (int64_t i = 0; i < rows; i += lanes<T>)
      for (int64_t j = 0; j < panel_columns; j += lanes<T>)
#pragma GCC unroll 4
        for (int first = 0; first < lanes<T>; first += part) { // like transpose_square
          Vector<T> parts[part];
#pragma GCC unroll 4
          for (int r = 0; r < part; r++) parts[r] = load_parts(column(j + r) + i + first, part * rows);
          transpose_parts<T, part>(parts);
#pragma GCC unroll 4
          for (int c = 0; c < part; c++) store_vector<T>(parts[c], to + position_[i + first + c] * width + j);
        }
  }

private:
  T *column(int64_t j) { return memory_ + j * rows; }
  Vector<T> vector(int64_t j, int i) { return load_vector(column(j) + i * lanes<T>); }
  MaskOf<T> live(int i) const { return lanes_with<T>(live_ >> (i * lanes<T>)); }
  static Vector<T> floor() { return Vector<T>{} - 1; } // less than any magnitude
  static Vector<T> larger(Vector<T> a, Vector<T> b) { return a > b ? a : b; }

  // Finds the rows in which a column has its largest magnitude, given the largest magnitude of each lane.
  void find(int64_t k, Vector<T> best) {
    largest_ = largest_lane<T>(best);
    found_ = 0;
#pragma GCC unroll 32
    for (int i = 0; i < vectors; i++)
      found_ |= equal_lanes<T>(magnitude<T>(vector(k, i)), Vector<T>{} + largest_) << (i * lanes<T>);
    found_ &= live_;
  }

  // Chooses the first row of the largest magnitude. NaN is skipped unless it is at position k, as in LAPACK's idamax.
  int choose(int64_t k) {
    const int first = row_at_[k];
    const T top = column(k)[first];
    if (!pivot_ || top != top) {
      largest_ = std::abs(top);
      return first;
    }
    int row = __builtin_ctzll(found_);
    while (found_ &= found_ - 1)
      if (const int other = __builtin_ctzll(found_); position_[other] < position_[row]) row = other;
    return row;
  }

  int swap(int64_t k, int row) {
    const int at = position_[row], other = row_at_[k];
    row_at_[at] = static_cast<uint8_t>(other), position_[other] = static_cast<uint8_t>(at);
    row_at_[k] = static_cast<uint8_t>(row), position_[row] = static_cast<uint8_t>(k);
    return at;
  }

  void divide(int64_t k, T top) {
    T *values = column(k);
    if (has_reciprocal(largest_)) {
      const T inverse = std::copysign(1 / largest_, top);
#pragma GCC unroll 32
      for (int i = 0; i < vectors; i++)
        store_vector<T>(live(i) ? vector(k, i) * inverse : vector(k, i), values + i * lanes<T>);
    } else if (top != 0 || !pivot_) {
      for (int i = 0; i < vectors; i++)
        store_vector<T>(live(i) ? vector(k, i) / top : vector(k, i), values + i * lanes<T>);
    }
  }

  // Subtracts column k times the pivot row's element from vector i of column j.
  Vector<T> subtract(int64_t j, int i, T top, Vector<T> factors, MaskOf<T> mask) {
    const Vector<T> y = vector(j, i), less = mask ? minus_product<T>(y, top, factors) : y;
    store_vector<T>(less, column(j) + i * lanes<T>);
    return less;
  }

  // Updates the next column before the others and finds its pivot at once, since the next step waits for it.
  void subtract_next(int64_t k, int row) {
    const T top = column(k + 1)[row];
    Vector<T> best[2] = {floor(), floor()};
#pragma GCC unroll 32
    for (int i = 0; i < vectors; i++) {
      const MaskOf<T> mask = live(i);
      const Vector<T> y = magnitude<T>(subtract(k + 1, i, top, vector(k, i), mask));
      best[i % 2] = larger(mask ? y : floor(), best[i % 2]);
    }
    find(k + 1, larger(best[0], best[1]));
  }

  void subtract_others(int64_t k, int row, int i) {
    const MaskOf<T> mask = live(i);
    const Vector<T> factors = vector(k, i);
    int64_t j = k + 2;
    for (; j + 4 <= panel_columns; j += 4)
#pragma GCC unroll 4
      for (int c = 0; c < 4; c++) subtract(j + c, i, column(j + c)[row], factors, mask);
    for (; j < panel_columns; j++) subtract(j, i, column(j)[row], factors, mask);
  }

  alignas(64) T memory_[panel_columns * rows];
  uint8_t row_at_[rows], position_[rows];
  uint64_t live_ = 0, found_ = 0; // one bit per row: not yet a pivot; has the largest magnitude
  T largest_ = 0;
  bool pivot_ = true;
};

} // namespace orchard::ORCHARD_ISA
