// Packs rows of an operand in the order in which the products read them, converted to the compute type.
#pragma once

#include "../matmul/pack.h"
#include "attention.h"
#include "tile.h"
#include "../matmul/transpose.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {

// Rows of one head: element (r, c) is at data[r · row + c · column].
template <class S> struct Rows {
  S *data;
  int64_t row, column, length;

  Rows from(int64_t first) const { return {data + first * row, row, column, length}; }
  Compute<S> at(int64_t r, int64_t c) const { return load(data[r * row + c * column]); }
};

template <class S>
inline Rows<S> rows_of(const AttentionOperand &operand, int64_t batch, int64_t head, int64_t first, int64_t length) {
  return {reinterpret_cast<S *>(operand.data) + operand.at(batch, head, first), operand.row, operand.column, length};
}

template <class S> inline void write_row(const Compute<S> *numbers, S *out, int64_t stride, int64_t count) {
  if (stride == 1) return narrow(numbers, out, count);
  for (int64_t c = 0; c < count; c++) out[c * stride] = store<S>(numbers[c]);
}

// Packs rows row-major. Each is padded with zeros to `stride`, a multiple of a vector's lanes; rows from `count` up to
// `end` are zeros.
template <class S> inline void pack_matrix(Rows<S> rows, int64_t count, int64_t end, int64_t stride, Compute<S> *out) {
  using T = Compute<S>;
  int64_t whole =
      std::is_same_v<S, T> && rows.column == 1 ? rounded_down(rows.length, lanes<T>) : 0; // copied as vectors
  for (int64_t c = 0; c < whole; c += lanes<T>) // column by column: the hardware prefetches constant strides
    for (int64_t r = 0; r < count; r++)
      store_vector(load_vector(reinterpret_cast<const T *>(rows.data + r * rows.row + c)), out + r * stride + c);
  for (int64_t r = 0; whole < stride && r < count; r++) {
    load_row(rows.data + r * rows.row + whole * rows.column, rows.column, out + r * stride + whole,
             rows.length - whole);
    for (int64_t c = rows.length; c < stride; c++) out[r * stride + c] = 0;
  }
  std::fill_n(out + count * stride, (end - count) * stride, T(0));
}

// Transposes rows packed by pack_matrix into a panel of `width` lanes: out[column][row]. `end` is a multiple of a
// vector's lanes.
template <int width, class T> inline void turn_rows(const T *rows, int64_t stride, T *out, int64_t end = width) {
  for (int64_t r = 0; r < end; r += lanes<T>)
    for (int64_t c = 0; c < stride; c += lanes<T>) {
      Vector<T> square[lanes<T>];
#pragma GCC unroll 16
      for (int i = 0; i < lanes<T>; i++) square[i] = load_vector(rows + (r + i) * stride + c);
      transpose<T>(square);
#pragma GCC unroll 16
      for (int i = 0; i < lanes<T>; i++) store_vector(square[i], out + (c + i) * width + r);
    }
}

// Returns the row sums of a ∘ b for one vector of rows.
template <class T> inline Vector<T> row_sums(const T *a, const T *b, int64_t stride) {
  Vector<T> square[lanes<T>] = {};
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; i++, a += stride, b += stride)
    for (int64_t c = 0; c < stride; c += lanes<T>)
      square[i] = multiply_add<T>(load_vector(a + c), load_vector(b + c), square[i]);
  transpose<T>(square);
#pragma GCC unroll 16
  for (int i = 1; i < lanes<T>; i++) square[0] += square[i];
  return square[0];
}

// Writes the first `count` rows of a packed matrix, row r times factor_of(r). Where that factor is 0, writes 0 even for
// NaN or infinity. Rows that need conversion are first scaled in place.
template <class S, class FactorOf>
inline void write_matrix(Compute<S> *numbers, int64_t count, int64_t stride, FactorOf factor_of, Rows<S> rows) {
  using T = Compute<S>;
  const Vector<T> none = {};
  bool is_same = std::is_same_v<S, T> && rows.column == 1 && rows.length == stride;
  for (int64_t r = 0; r < count; r++, numbers += stride) {
    T *to = is_same ? reinterpret_cast<T *>(rows.data + r * rows.row) : numbers;
    const T factor = factor_of(r);
    for (int64_t c = 0; c < stride; c += lanes<T>)
      store_vector(factor == T(0) ? none : load_vector(numbers + c) * factor, to + c);
    if (!is_same) write_row<S>(numbers, rows.data + r * rows.row, rows.column, rows.length);
  }
}

template <class T> inline void add_all(const T *numbers, T *sums, int64_t count) {
  for (int64_t i = 0; i < count; i++) sums[i] += numbers[i];
}

// `count` is a multiple of a vector's lanes.
template <class T> inline bool all_finite(const T *numbers, int64_t count) {
  constexpr int side_by_side = 4;
  Vector<T> sums[side_by_side] = {}; // each is 0 or NaN
  int64_t i = 0;
  for (; i + side_by_side * lanes<T> <= count; i += side_by_side * lanes<T>)
    for (int v = 0; v < side_by_side; v++) sums[v] += load_vector(numbers + i + v * lanes<T>) * T(0);
  for (; i < count; i += lanes<T>) sums[0] += load_vector(numbers + i) * T(0);
  T totals[lanes<T>];
  store_vector((sums[0] + sums[1]) + (sums[2] + sums[3]), totals);
  bool is_nonfinite = false;
  for (T sum : totals) is_nonfinite |= sum != T(0);
  return !is_nonfinite;
}

// Clears packed rows that contain NaN or infinity. Products sum over all rows of a tile, including those with a factor
// of 0, and 0 · NaN is NaN. So the nonfinite rows are cleared here and added separately to the pairs that need them.
// Returns whether there are any; only then is `nonfinite` written.
template <class T> inline bool clear_nonfinite_rows(T *packed, int64_t rows, int64_t stride, bool *nonfinite) {
  if (all_finite(packed, rows * stride)) return false;
  for (int64_t r = 0; r < rows; r++) {
    nonfinite[r] = !all_finite(packed + r * stride, stride);
    if (nonfinite[r]) std::fill_n(packed + r * stride, stride, T(0));
  }
  return true;
}

} // namespace orchard::ORCHARD_ISA
