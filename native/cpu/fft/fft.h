// Discrete Fourier transforms along an axis: X[k] = scale Σⱼ x[j] e^(∓2πi jk / n).
//
// Complex numbers are interleaved pairs. In scratch memory, elements are vectors of as many transforms as a vector has
// lanes: real parts, then imaginary parts.
#pragma once

// Transforms along one axis after another.
// - is_real: whether x has real numbers
// - outer, length, inner: the numbers of elements before, along and after each axis
// - offsets: of x and out
#include "../../.build/generated/fft_block.h"

// Transforms of real rows, into or from the first half of their spectra.
// - to_real: whether x is a spectrum, and out is real
// - inverse: whether the sign of the exponent is positive
// - length: of the real rows
// - offsets: of x and out
#include "../../.build/generated/real_fft_block.h"

#include "../functions.h"
#include "../isa.h"
#include "plan.h"

namespace orchard {

// The layout of complex rows or columns.
template <class T> struct Lines {
  const T *in;
  T *out;
  int64_t in_stride, out_stride; // between rows, or between the elements of columns, in numbers
  int64_t count;                 // of lines: at most one per lane
  bool inverse;
  T scale;
};

// Transforms of real rows of a length, by passes of half the length if it is even.
template <class T> struct RealPasses {
  const Passes<T> *passes;
  const T *roots; // e^(-πi k / h) for k <= h, half the length
  int64_t length;
};

template <class T> struct FftKernels {
  int lanes;
  // Transforms up to `lanes` rows, or adjacent columns. `work` has 4 · lanes numbers per element.
  void (*rows)(const Passes<T> &passes, const Lines<T> &lines, T *work);
  void (*columns)(const Passes<T> &passes, const Lines<T> &lines, T *work);
  void (*chirped_rows)(const Chirp<T> &chirp, const Lines<T> &lines, T *work); // 4 · lanes numbers per padded element
  // The two steps of a split transform of one row, for one block of columns, and of rows. `between` has the elements
  // after the first step: [a, rounded up to whole blocks][blocks of b][2][lanes].
  void (*split_columns)(const Split<T> &split, const Lines<T> &row, int64_t block, T *between, T *work);
  void (*split_rows)(const Split<T> &split, const Lines<T> &row, int64_t block, const T *between, T *work);
  // to[j] = x[j] chirp[j] for j < n; 0 up to the padded length.
  void (*chirp_in)(const Chirp<T> &chirp, const Lines<T> &row, int64_t begin, int64_t end, T *to);
  // x[j] = x[j] spectrum[j].
  void (*chirp_between)(const Chirp<T> &chirp, int64_t begin, int64_t end, T *x);
  // out[j] = scale x[j] chirp[j].
  void (*chirp_out)(const Chirp<T> &chirp, const T *x, const Lines<T> &row, int64_t begin, int64_t end);
  // Turns the transform of a row's pairs, of length h, into the first h + 1 elements of the row's spectrum, in place;
  // `roots` are e^(-πi k / h).
  void (*unpack)(const T *roots, int64_t h, bool inverse, T *row);
  // The inverse of `unpack`: computes to[k] for k < h, whose inverse transform has the row's pairs.
  void (*pack)(const T *roots, int64_t h, bool inverse, const T *row, T *to);
  // Transform up to `lanes` real rows into half spectra, and back. `work` has 4 · lanes · (n + 1) numbers, where n is
  // the length of the passes.
  void (*spectra_of_rows)(const RealPasses<T> &real, const Lines<T> &lines, T *work);
  void (*rows_of_spectra)(const RealPasses<T> &real, const Lines<T> &lines, T *work);
  // Transforms the `inner` columns of up to `lanes` contiguous matrices. `work` has 2 · lanes numbers for each element
  // of a matrix, and 4 · lanes for each element of a column.
  void (*planes)(const Passes<T> &passes, const Lines<T> &lines, int64_t inner, T *work);
};

struct FftTable {
  FftKernels<double> float64;
  FftKernels<float> float32;
};

} // namespace orchard

ORCHARD_ISA_TABLE(FftTable, fft_table)
