// Converts the sums of a matrix product to elements of the result.
#pragma once

#include "pack.h"
#include "product.h"

namespace orchard::ORCHARD_ISA {

// Converts alpha or beta to the accumulator's type. For integer dtypes they are integers and may be negative.
template <class T> inline T factor(double value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  else return static_cast<T>(static_cast<int64_t>(value));
}

template <class S> inline const S *element_of(const Matrix &matrix, int64_t row, int64_t column) {
  return reinterpret_cast<const S *>(matrix.data) + row * matrix.row_stride + column * matrix.column_stride;
}

constexpr int64_t narrowed_unit = 16;

// Rounds a unit of numbers. For bfloat16 it is written with vectors, since compilers unroll the loop of `store`.
inline void narrow_unit(const float *sums, Float16 *out) { narrow(sums, out, narrowed_unit); }
inline void narrow_unit(const float *sums, BFloat16 *out) {
  typedef uint32_t Bits __attribute__((vector_size(4 * narrowed_unit)));
  typedef uint16_t Halves __attribute__((vector_size(2 * narrowed_unit)));
  Bits bits;
  std::memcpy(&bits, sums, sizeof bits);
  const Bits upper = bits >> 16, rounded = (bits + 0x7fff + (upper & 1)) >> 16;
  const Bits chosen = (bits & 0x7fffffff) > 0x7f800000 ? upper | 0x40 : rounded;
  const Halves halves = __builtin_convertvector(chosen, Halves);
  std::memcpy(out, &halves, sizeof halves);
}

// Rounds sums to float16 or bfloat16. The last unit overlaps the one before it, since a rest would be rounded one by
// one.
template <class S> inline void narrow_units(const float *sums, S *out, int64_t count) {
  if (count < narrowed_unit) return narrow(sums, out, count);
  for (int64_t i = 0; i + narrowed_unit <= count; i += narrowed_unit) narrow_unit(sums + i, out + i);
  if (count % narrowed_unit != 0) narrow_unit(sums + count - narrowed_unit, out + count - narrowed_unit);
}

// Rounds each sum once to the dtype; integers wrap around.
template <class S> inline void store_row(const Accumulator<S> *sums, S *out, int64_t count) {
  if constexpr (sizeof(S) == 2 && std::is_same_v<Accumulator<S>, float>) narrow_units(sums, out, count);
  else if constexpr (std::is_same_v<Accumulator<S>, Compute<S>>) narrow(sums, out, count);
  else
    for (int64_t i = 0; i < count; i++) out[i] = static_cast<S>(sums[i]);
}

// sums[c] += beta * input[row, column + c]
template <class S>
inline void add_input(const MatrixProduct &p, int64_t row, int64_t column, int64_t columns, Accumulator<S> *sums) {
  const Accumulator<S> beta = factor<Accumulator<S>>(p.beta);
  constexpr int64_t chunk = 64;
  Accumulator<S> numbers[chunk];
  for (int64_t start = 0; start < columns; start += chunk) {
    int64_t length = std::min(chunk, columns - start);
    load_row(element_of<S>(p.input, row, column + start), p.input.column_stride, numbers, length);
    for (int64_t c = 0; c < length; c++) sums[start + c] += beta * numbers[c];
  }
}

// Returns whether the epilogue is trivial: out = sums (+ input), the dtype is the accumulator's type, and elements are
// adjacent. This holds for most products.
template <class S> inline bool is_plain(const MatrixProduct &p) {
  bool has_plain_input = !p.has_input() || (p.beta == 1 && p.input.column_stride == 1);
  return std::is_same_v<S, Accumulator<S>> && p.k > 0 && p.alpha == 1 && p.out.column_stride == 1 && has_plain_input;
}

// out[row, column + c] = alpha * sums[c] + beta * input[row, column + c]; overwrites the sums.
template <class S>
inline void finish_row(const MatrixProduct &p, int64_t row, int64_t column, int64_t columns, Accumulator<S> *sums) {
  const Accumulator<S> alpha = factor<Accumulator<S>>(p.alpha);
  if (p.k == 0) std::fill_n(sums, columns, Accumulator<S>(0));
  if (alpha != Accumulator<S>(1))
    for (int64_t c = 0; c < columns; c++) sums[c] *= alpha;
  if (p.has_input()) add_input<S>(p, row, column, columns, sums);
  S *out = const_cast<S *>(element_of<S>(p.out, row, column));
  if (p.out.column_stride == 1) return store_row<S>(sums, out, columns);
  for (int64_t c = 0; c < columns; c++) store_row<S>(sums + c, out + c * p.out.column_stride, 1);
}

} // namespace orchard::ORCHARD_ISA
