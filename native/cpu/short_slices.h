// Slices of few elements, many at a time: a transposed copy has the elements of all slices side by side, so that a
// vector holds elements of several slices. A loop over a few elements would cost more than the elements.
#pragma once

#include "matmul/transpose.h"
#include "slices.h"
#include "streamed.h"
#include "tuning.h"

#include <algorithm>

namespace orchard {

using tuning::slices::longest_short, tuning::slices::short_unit, tuning::slices::short_elements;
using tuning::slices::most_short_slices;

// Whether slices are computed in blocks.
inline bool are_short(int64_t length, int64_t count) {
  const bool is_fast = length >= tuning::slices::fast_from && length % tuning::slices::whole_unit == 0;
  return length > 0 && length <= longest_short && !is_fast && count >= short_unit;
}

// The number of slices of a block; depends on their length only.
inline int64_t short_slices(int64_t length) {
  return std::clamp(short_elements / length / short_unit * short_unit, short_unit, most_short_slices);
}

// The positions of a block's slices in an operand.
struct ShortSlices {
  int64_t length, count, along; // elements of a slice; slices; stride between elements of a slice
  const int64_t *starts;        // the offset of each slice's first element

  // is_dense: whether the slices follow each other in memory. is_side_by_side: whether their first elements are
  // adjacent.
  bool is_dense() const { return (along == 1 || length == 1) && has_distance(length); }
  bool is_side_by_side() const { return has_distance(1); }

private:
  bool has_distance(int64_t distance) const {
    bool has = true;
    for (int64_t slice = 1; slice < count; slice++) has &= starts[slice] == starts[slice - 1] + distance;
    return has;
  }
};

// Finds where the slices [first, first + count) begin in each operand.
template <int operands>
void find_starts(const Nest<operands> &nest, int64_t first, int64_t count,
                 int64_t (&starts)[operands][most_short_slices]) {
  for_each_run(nest, first, first + count, [&](const int64_t (&offsets)[operands], int64_t at, int64_t length) {
    for (int operand = 0; operand < operands; operand++)
      for (int64_t i = 0; i < length; i++)
        starts[operand][at - first + i] = offsets[operand] + i * nest.run_stride(operand);
  });
}

namespace ORCHARD_ISA {

// Element k of slice j is columns[k * pitch + j]. The remaining columns of a unit are 0, or unspecified in a result.
template <class C> struct ShortBlock {
  alignas(64) C columns[short_elements];
};

// The elements slice by slice, and room for a vector that exceeds the last slice.
template <class C> struct ShortRows {
  alignas(64) C elements[short_elements + lanes<C>];
};

inline int64_t short_pitch(int64_t count) { return (count + short_unit - 1) / short_unit * short_unit; }

// to[k * pitch + j] = from[j * length + k], for j < pitch, a multiple of lanes<C>
template <class C> inline void to_columns(const C *from, int64_t length, C *to, int64_t pitch) {
  for (int64_t j = 0; j < pitch; j += lanes<C>)
    for (int64_t k = 0; k < length; k += lanes<C>)
      transpose_rows<C>([&](int row) { return from + (j + row) * length + k; }, to + k * pitch + j, pitch, length - k);
}

// to[j * length + k] = from[k * pitch + j]. The last vector of a row may reach into the next, which is written later.
template <class C> inline void to_rows(const C *from, int64_t pitch, int64_t length, C *to) {
  constexpr int part = 16 / int(sizeof(C));
  if (length < part) { // the excess would overwrite rows that are written earlier
    for (int64_t j = 0; j < pitch; j++)
      for (int64_t k = 0; k < length; k++) to[j * length + k] = from[k * pitch + j];
    return;
  }
  for (int64_t j = 0; j < pitch; j += lanes<C>)
    for (int64_t k = (length - 1) / part * part; k >= 0; k -= part) {
      Vector<C> square[part] = {};
      for (int row = 0; row < part; row++)
        if (k + row < length) square[row] = load_vector(from + (k + row) * pitch + j);
      transpose_parts<C, part>(square);
      for (int c = 0; c < part; c++)
        store_parts<C>(square[c], [&](int i) { return to + (j + i * part + c) * length + k; });
    }
}

// Copies a block of slices to columns.
template <class T>
inline void gather_short(const T *from, const ShortSlices &slices, ShortRows<Compute<T>> &rows, Compute<T> *columns) {
  const int64_t length = slices.length, count = slices.count, pitch = short_pitch(count);
  if (slices.is_dense()) {
    widen(from + slices.starts[0], rows.elements, count * length);
    std::fill(rows.elements + count * length, rows.elements + pitch * length, Compute<T>(0));
    return to_columns(rows.elements, length, columns, pitch);
  }
  const bool is_side_by_side = slices.is_side_by_side();
  for (int64_t k = 0; k < length; k++) {
    const T *row = from + k * slices.along;
    Compute<T> *to = columns + k * pitch;
    if (is_side_by_side) widen(row + slices.starts[0], to, count);
    else
      for (int64_t j = 0; j < count; j++) to[j] = load(row[slices.starts[j]]);
    std::fill(to + count, to + pitch, Compute<T>(0));
  }
}

// Copies columns to a block of slices of a result.
template <class T>
inline void scatter_short(const Compute<T> *columns, const ShortSlices &slices, ShortRows<Compute<T>> &rows, T *to,
                          bool is_streamed) {
  const int64_t length = slices.length, count = slices.count, pitch = short_pitch(count);
  if (slices.is_dense()) {
    alignas(64) T narrowed[std::is_same_v<T, Compute<T>> ? 1 : short_elements];
    to_rows(columns, pitch, length, rows.elements);
    return write_results(rows.elements, narrowed, to + slices.starts[0], count * length, is_streamed);
  }
  const bool is_side_by_side = slices.is_side_by_side();
  for (int64_t k = 0; k < length; k++) {
    T *row = to + k * slices.along;
    const Compute<T> *from = columns + k * pitch;
    if (is_side_by_side) narrow(from, row + slices.starts[0], count);
    else
      for (int64_t j = 0; j < count; j++) row[slices.starts[j]] = store<T>(from[j]);
  }
}

} // namespace ORCHARD_ISA
} // namespace orchard
