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

// Numbers of a row from a column on, at most a vector's; 0 beyond the last row and column.
template <class S> inline Vector<Compute<S>> load_part(Rows<S> rows, int64_t row, int64_t count, int64_t column) {
  using T = Compute<S>;
  Vector<T> numbers = {};
  if (row >= count || column >= rows.length) return numbers;
  const S *from = rows.data + row * rows.row + column * rows.column;
  int64_t length = std::min<int64_t>(lanes<T>, rows.length - column);
  if (std::is_same_v<S, T> && rows.column == 1 && length == lanes<T>) return load_vector(reinterpret_cast<const T *>(from));
  T space[lanes<T>] = {};
  load_row(from, rows.column, space, length);
  return load_vector(space);
}

// Panels of `width` rows: out[panel][column][row of the panel], `columns` of them. What is beyond the last row and column is 0.
template <int width, class S> inline void pack_rows(Rows<S> rows, int64_t count, int64_t columns, Compute<S> *out) {
  using T = Compute<S>;
  constexpr int part = std::min<int>(width, lanes<T>); // rows of a square that are in one panel
  int64_t end = rounded_up(count, width);
  for (int64_t r = 0; r < end; r += lanes<T>)
    for (int64_t c = 0; c < columns; c += lanes<T>) {
      Vector<T> square[lanes<T>];
      for (int i = 0; i < lanes<T>; i++) square[i] = load_part(rows, r + i, count, c);
      transpose<T>(square);
      for (int64_t i = 0; i < std::min<int64_t>(lanes<T>, columns - c); i++)
        for (int64_t p = 0; p < lanes<T> && r + p < end; p += part)
          __builtin_memcpy(out + rounded_down(r + p, width) * columns + (c + i) * width + (r + p) % width,
                           reinterpret_cast<const T *>(&square[i]) + p, part * sizeof(T));
    }
}

// The reverse for one panel [columns][width]: writes `rows` rows of it to row_of(row), each times its factor; 0 where that is 0.
template <int width, class S, class RowOf>
inline void unpack_rows(const Compute<S> *panel, int64_t rows, int64_t columns, const Compute<S> *factors, int64_t stride, RowOf row_of) {
  using T = Compute<S>;
  for (int64_t r = 0; r < rows; r += lanes<T>)
    for (int64_t c = 0; c < columns; c += lanes<T>) {
      int64_t length = std::min<int64_t>(lanes<T>, columns - c);
      Vector<T> square[lanes<T>] = {};
      const Vector<T> none = {}, factor = load_vector(factors + r);
      for (int64_t i = 0; i < length; i++) square[i] = factor == none ? none : load_vector(panel + (c + i) * width + r) * factor;
      transpose<T>(square);
      for (int64_t i = 0; i < std::min<int64_t>(lanes<T>, rows - r); i++)
        write_row<S>(reinterpret_cast<const T *>(&square[i]), row_of(r + i) + c * stride, stride, length);
    }
}

// Panels of panel_rows columns: out[panel][row][column of the panel]. The last panel is filled up with zeros.
template <class S> inline void pack_columns(Rows<S> rows, int64_t count, Compute<S> *out) {
  for (int64_t c = 0; c < rows.length; c += panel_rows, out += panel_rows * count)
    pack_panel<Compute<S>, panel_rows>(rows.data + c * rows.column, rows.column, rows.row,
                                       std::min<int64_t>(panel_rows, rows.length - c), count, out);
}

// Row-major, each row filled up with zeros to `stride`.
template <class S> inline void pack_matrix(Rows<S> rows, int64_t count, int64_t stride, Compute<S> *out) {
  for (int64_t r = 0; r < count; r++, out += stride) {
    load_row(rows.from(r).data, rows.column, out, rows.length);
    std::fill(out + rows.length, out + stride, Compute<S>(0));
  }
}

template <class T> inline void scale_all(T *numbers, int64_t count, T factor) {
  for (int64_t i = 0; i < count; i++) numbers[i] *= factor;
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
// taken out of what is packed (row r is `length` numbers in each panel), and added apart for the pairs that have to do with them. Returns
// whether there are any, and only then says which.
template <class T> inline bool take_out_loud(T *packed, int64_t rows, int64_t panels, int64_t panel_stride, int64_t length, bool *loud) {
  if (all_finite(packed, panels * panel_stride)) return false;
  for (int64_t r = 0; r < rows; r++) {
    loud[r] = false;
    for (int64_t p = 0; p < panels; p++) loud[r] |= !all_finite(packed + p * panel_stride + r * length, length);
    for (int64_t p = 0; loud[r] && p < panels; p++) std::fill_n(packed + p * panel_stride + r * length, length, T(0));
  }
  return true;
}

// The same for what pack_rows packed, with `count` of `rows` in panels of `columns`.
template <int width, class S> inline bool take_out_loud_rows(Rows<S> rows, int64_t count, int64_t columns, Compute<S> *packed, bool *loud) {
  if (all_finite(packed, rounded_up(count, width) * columns)) return false;
  for (int64_t r = 0; r < count; r++) {
    loud[r] = false;
    for (int64_t c = 0; c < rows.length; c++) loud[r] |= !std::isfinite(rows.at(r, c));
    Compute<S> *row = packed + rounded_down(r, width) * columns + r % width;
    for (int64_t c = 0; loud[r] && c < columns; c++) row[c * width] = 0;
  }
  return true;
}

} // namespace orchard::ORCHARD_ISA
