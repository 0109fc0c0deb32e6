// Rows of an operand brought into the order in which products read them, and into the type in which they are computed.
#pragma once

#include "../matmul/pack.h"
#include "attention.h"
#include "tile.h"
#include "../matmul/transpose.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {

// Rows of one head: element (r, c) is at data[r · row + c · column].
template <class S> struct Rows {
  const S *data;
  int64_t row, column, length;

  Rows from(int64_t first) const { return {data + first * row, row, column, length}; }
  Compute<S> at(int64_t r, int64_t c) const { return load(data[r * row + c * column]); }
};

template <class S>
inline Rows<S> rows_of(const AttentionOperand &operand, int64_t batch, int64_t head, int64_t first, int64_t length) {
  return {reinterpret_cast<const S *>(operand.data) + operand.at(batch, head, first), operand.row, operand.column, length};
}

template <class S> inline void write_row(const Compute<S> *numbers, S *out, int64_t stride, int64_t count) {
  if (stride == 1) return narrow(numbers, out, count);
  for (int64_t c = 0; c < count; c++) out[c * stride] = store<S>(numbers[c]);
}

// Row-major, each row filled up with zeros to `stride`, a multiple of a vector's lanes, and rows of zeros up to `end`.
template <class S> inline void pack_matrix(Rows<S> rows, int64_t count, int64_t end, int64_t stride, Compute<S> *out) {
  using T = Compute<S>;
  int64_t whole = std::is_same_v<S, T> && rows.column == 1 ? rounded_down(rows.length, lanes<T>) : 0; // copied as vectors
  for (int64_t c = 0; c < whole; c += lanes<T>) // down a column of them, at a distance that the processor learns
    for (int64_t r = 0; r < count; r++) store_vector(load_vector(reinterpret_cast<const T *>(rows.data + r * rows.row + c)), out + r * stride + c);
  for (int64_t r = 0; whole < stride && r < count; r++) {
    load_row(rows.data + r * rows.row + whole * rows.column, rows.column, out + r * stride + whole, rows.length - whole);
    for (int64_t c = rows.length; c < stride; c++) out[r * stride + c] = 0;
  }
  std::fill_n(out + count * stride, (end - count) * stride, T(0));
}

// A panel of `width` rows of such a matrix: out[column][row].
template <int width, class T> inline void turn_rows(const T *rows, int64_t stride, T *out) {
  for (int64_t r = 0; r < width; r += lanes<T>)
    for (int64_t c = 0; c < stride; c += lanes<T>) {
      Vector<T> square[lanes<T>];
#pragma GCC unroll 16
      for (int i = 0; i < lanes<T>; i++) square[i] = load_vector(rows + (r + i) * stride + c);
      transpose<T>(square);
#pragma GCC unroll 16
      for (int i = 0; i < lanes<T>; i++) store_vector(square[i], out + (c + i) * width + r);
    }
}

// Of a vector's lanes of rows the sums of a ∘ b.
template <class T> inline Vector<T> row_sums(const T *a, const T *b, int64_t stride) {
  Vector<T> square[lanes<T>];
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; i++, a += stride, b += stride) {
    square[i] = load_vector(a) * load_vector(b);
    for (int64_t c = lanes<T>; c < stride; c += lanes<T>) square[i] = multiply_add<T>(load_vector(a + c), load_vector(b + c), square[i]);
  }
  transpose<T>(square);
#pragma GCC unroll 16
  for (int i = 1; i < lanes<T>; i++) square[0] += square[i];
  return square[0];
}

// Writes a row times a factor; 0 where that is 0, whatever the row holds.
template <class S> inline void write_scaled_row(Compute<S> *row, Compute<S> factor, S *out, int64_t stride, int64_t count) {
  using T = Compute<S>;
  int64_t whole = std::is_same_v<S, T> && stride == 1 ? rounded_down(count, lanes<T>) : 0; // written as vectors
  const Vector<T> none = {};
  for (int64_t c = 0; c < whole; c += lanes<T>)
    store_vector(factor == T(0) ? none : load_vector(row + c) * factor, reinterpret_cast<T *>(out + c));
  if (whole == count) return;
  for (int64_t c = whole; c < count; c++) row[c] = factor == T(0) ? T(0) : row[c] * factor;
  write_row<S>(row + whole, out + whole * stride, stride, count - whole);
}

template <class T> inline void add_all(const T *numbers, T *sums, int64_t count) {
  for (int64_t i = 0; i < count; i++) sums[i] += numbers[i];
}

template <class T> inline bool all_finite(const T *numbers, int64_t count) {
  T sum = 0; // of zeros, or NaN
  constexpr int side_by_side = 64;
  T sums[side_by_side] = {};
  int64_t i = 0;
  for (; i + side_by_side <= count; i += side_by_side)
    for (int k = 0; k < side_by_side; k++) sums[k] += numbers[i + k] * T(0);
  for (; i < count; i++) sum += numbers[i] * T(0);
  for (T own : sums) sum += own;
  return sum == T(0);
}

// Rows that hold NaN or infinity. Products sum over all rows of a tile, those with a factor of 0 too, where 0 · NaN would be NaN: such rows are
// taken out of what pack_matrix packed, and added apart for the pairs that have to do with them. Returns whether there are any, and only then says
// which.
template <class T> inline bool take_out_loud(T *packed, int64_t rows, int64_t stride, bool *loud) {
  if (all_finite(packed, rows * stride)) return false;
  for (int64_t r = 0; r < rows; r++) {
    loud[r] = !all_finite(packed + r * stride, stride);
    if (loud[r]) std::fill_n(packed + r * stride, stride, T(0));
  }
  return true;
}

} // namespace orchard::ORCHARD_ISA
