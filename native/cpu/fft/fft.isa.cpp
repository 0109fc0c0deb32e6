// Passes of Stockham's algorithm with decimation in frequency, which needs no reordering (C. Van Loan, "Computational
// Frameworks for the Fast Fourier Transform", 1992, 1.7). An element is a vector of real and one of imaginary parts, of
// as many transforms as a vector has lanes:
//
//   for p < m, q < s: y[q + s (radix p + k)] = e^(-2πi pk / (m radix)) Σⱼ x[q + s (p + j m)] e^(-2πi jk / radix)
//
// An inverse transform is a transform of exchanged real and imaginary parts, exchanged again: the first pass reads the
// halves of an element in the other order, and the last one writes them so.
#include "fft.h"

#include "../matmul/simd.h"
#include "../matmul/transpose.h"
#include "butterflies.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> constexpr int64_t element = 2 * lanes<T>; // numbers of an element

// Where the real parts of an element are; the imaginary parts are in the other half.
template <class T> struct Halves {
  int64_t re, im;
  explicit Halves(bool exchanged) : re(exchanged ? lanes<T> : 0), im(exchanged ? 0 : lanes<T>) {}
};

template <class T> struct Pass {
  const Stage<T> &stage;
  const T *in;
  T *out;
  Halves<T> from, to;
};

template <class T> inline Pair<T> load_pair(const T *at, Halves<T> halves) {
  return {load_vector(at + halves.re), load_vector(at + halves.im)};
}
template <class T> inline void store_pair(Pair<T> x, T *at, Halves<T> halves) {
  store_vector<T>(x.re, at + halves.re);
  store_vector<T>(x.im, at + halves.im);
}

template <class T, int radix, bool has_twiddles>
[[gnu::always_inline]] inline void butterflies(const Pass<T> &pass, int64_t p) {
  const int64_t m = pass.stage.m, s = pass.stage.s, step = m * s * element<T>;
  const T *in = pass.in + p * s * element<T>, *w = pass.stage.twiddles + p * 2 * (radix - 1);
  T *out = pass.out + p * radix * s * element<T>;
  for (int64_t q = 0; q < s; q++, in += element<T>, out += element<T>) {
    Pair<T> x[radix];
#pragma GCC unroll 16
    for (int j = 0; j < radix; j++) x[j] = load_pair(in + j * step, pass.from);
    if constexpr (radix == 7 || radix > 8) odd_butterfly(x, radix, pass.stage.roots);
    else Butterfly<T, radix>::run(x);
#pragma GCC unroll 16
    for (int k = 0; k < radix; k++) {
      if (has_twiddles && k > 0) x[k] = times(x[k], w[2 * k - 2], w[2 * k - 1]);
      store_pair(x[k], out + k * s * element<T>, pass.to);
    }
  }
}

template <class T, int radix> void run_pass(const Pass<T> &pass) {
  butterflies<T, radix, false>(pass, 0);
  for (int64_t p = 1; p < pass.stage.m; p++) butterflies<T, radix, true>(pass, p);
}

template <class T> void run_odd_pass(const Pass<T> &pass) {
  const int radix = int(pass.stage.radix);
  const int64_t m = pass.stage.m, s = pass.stage.s;
  Pair<T> x[largest_radix];
  for (int64_t p = 0; p < m; p++) {
    const T *w = pass.stage.twiddles + p * 2 * (radix - 1);
    for (int64_t q = 0; q < s; q++) {
      const T *in = pass.in + (p * s + q) * element<T>;
      T *out = pass.out + (p * radix * s + q) * element<T>;
      for (int j = 0; j < radix; j++) x[j] = load_pair(in + j * m * s * element<T>, pass.from);
      odd_butterfly<T, odd_together>(x, radix, pass.stage.roots);
      for (int k = 0; k < radix; k++)
        store_pair(k > 0 && p > 0 ? times(x[k], w[2 * k - 2], w[2 * k - 1]) : x[k], out + k * s * element<T>, pass.to);
    }
  }
}

template <class T> void run_stage(const Pass<T> &pass) {
  switch (pass.stage.radix) {
  case 2: return run_pass<T, 2>(pass);
  case 3: return run_pass<T, 3>(pass);
  case 4: return run_pass<T, 4>(pass);
  case 5: return run_pass<T, 5>(pass);
  case 7: return run_pass<T, 7>(pass);
  case 8: return run_pass<T, 8>(pass);
  case 11: return run_pass<T, 11>(pass);
  case 13: return run_pass<T, 13>(pass);
  default: return run_odd_pass<T>(pass);
  }
}

// Transforms the elements at x, using as many at `other`. Returns where the result is: x or other. `from` and `to`:
// whether the halves of elements are exchanged before the first pass, and after the last.
template <class T> T *run_passes(const Passes<T> &passes, T *x, T *other, bool from, bool to) {
  const size_t count = passes.stages.size();
  for (size_t at = 0; at < count; at++) {
    run_stage<T>({passes.stages[at], x, other, Halves<T>(from && at == 0), Halves<T>(to && at + 1 == count)});
    std::swap(x, other);
  }
  return x;
}

template <class T> constexpr int part = 16 / int(sizeof(T)); // numbers that a transposition loads or stores at once

// Loads `numbers` numbers of each row as vectors; lanes without a row repeat the last one. The last part overlaps the
// one before it.
template <class T> void load_numbers(const Lines<T> &lines, int64_t numbers, T *to) {
  const int64_t last = lines.count - 1;
  auto row = [&](int64_t lane) { return lines.in + std::min(lane, last) * lines.in_stride; };
  auto block = [&](int64_t at, int64_t columns) {
    transpose_rows<T>([&](int lane) { return row(lane) + at; }, to + at * lanes<T>, lanes<T>, columns);
  };
  int64_t at = 0;
  for (; at + lanes<T> <= numbers; at += lanes<T>) block(at, lanes<T>);
  const int64_t parts = (numbers - at) / part<T> * part<T>;
  if (parts > 0) block(at, parts);
  at += parts;
  if (at == numbers) return;
  if (numbers >= part<T>) return block(numbers - part<T>, part<T>);
  for (; at < numbers; at++)
    for (int lane = 0; lane < lanes<T>; lane++) to[at * lanes<T> + lane] = row(lane)[at];
}

// Stores a part of each row. Lanes without a row are not stored.
template <class T> void store_part(const T *from, const Lines<T> &lines, int64_t at) {
  if (lines.count < lanes<T>) {
    for (int64_t lane = 0; lane < lines.count; lane++)
      for (int64_t c = at; c < at + part<T>; c++) lines.out[lane * lines.out_stride + c] = from[c * lanes<T> + lane];
    return;
  }
  Vector<T> square[part<T>];
  for (int c = 0; c < part<T>; c++) square[c] = load_vector(from + (at + c) * lanes<T>);
  transpose_parts<T, part<T>>(square);
  for (int c = 0; c < part<T>; c++)
    store_parts<T>(square[c], [&](int i) { return lines.out + (i * part<T> + c) * lines.out_stride + at; });
}

template <class T> void store_numbers(const T *from, const Lines<T> &lines, int64_t numbers) {
  int64_t at = 0;
  for (; at + lanes<T> <= numbers; at += lanes<T>)
    transpose_rows<T>([&](int number) { return from + (at + number) * lanes<T>; }, lines.out + at, lines.out_stride,
                      lines.count);
  for (; at + part<T> <= numbers; at += part<T>) store_part(from, lines, at);
  if (at == numbers) return;
  if (numbers >= part<T>) return store_part(from, lines, numbers - part<T>);
  for (; at < numbers; at++)
    for (int64_t lane = 0; lane < lines.count; lane++)
      lines.out[lane * lines.out_stride + at] = from[at * lanes<T> + lane];
}

// Load and store rows of `length` complex elements.
template <class T> void load_rows(const Lines<T> &lines, int64_t length, T *to) { load_numbers(lines, 2 * length, to); }
template <class T> void store_rows(const T *from, const Lines<T> &lines, int64_t length) {
  store_numbers(from, lines, 2 * length);
}

template <class T> void scale_elements(T *x, int64_t length, T scale) {
  if (scale == 1) return;
  for (int64_t at = 0; at < length * element<T>; at++) x[at] *= scale;
}

template <class T> void rows(const Passes<T> &passes, const Lines<T> &lines, T *work) {
  load_rows(lines, passes.length, work);
  T *result = run_passes(passes, work, work + passes.length * element<T>, lines.inverse, lines.inverse);
  scale_elements(result, passes.length, lines.scale);
  store_rows(result, lines, passes.length);
}

#if defined(__clang__) || __GNUC__ >= 12
template <class T, int... I> inline Pair<T> unzipped(Vector<T> a, Vector<T> b, std::integer_sequence<int, I...>) {
  return {__builtin_shufflevector(a, b, (2 * I)...), __builtin_shufflevector(a, b, (2 * I + 1)...)};
}
template <class T, int... I> inline void zip(Pair<T> x, T *to, std::integer_sequence<int, I...>) {
  constexpr int n = lanes<T>;
  store_vector<T>(__builtin_shufflevector(x.re, x.im, (I / 2 + I % 2 * n)...), to);
  store_vector<T>(__builtin_shufflevector(x.re, x.im, (n / 2 + I / 2 + I % 2 * n)...), to + n);
}
template <class T> inline Pair<T> load_complex(const T *from) {
  return unzipped<T>(load_vector(from), load_vector(from + lanes<T>), std::make_integer_sequence<int, lanes<T>>());
}
template <class T> inline void store_complex(Pair<T> x, T *to) {
  zip<T>(x, to, std::make_integer_sequence<int, lanes<T>>());
}
#else
template <class T> inline Pair<T> load_complex(const T *from) {
  T re[lanes<T>], im[lanes<T>];
  for (int lane = 0; lane < lanes<T>; lane++) re[lane] = from[2 * lane], im[lane] = from[2 * lane + 1];
  return {load_vector(re), load_vector(im)};
}
template <class T> inline void store_complex(Pair<T> x, T *to) {
  T re[lanes<T>], im[lanes<T>];
  store_vector<T>(x.re, re);
  store_vector<T>(x.im, im);
  for (int lane = 0; lane < lanes<T>; lane++) to[2 * lane] = re[lane], to[2 * lane + 1] = im[lane];
}
#endif

// Load and store up to as many complex numbers as a vector has lanes; loaded lanes beyond them are 0.
template <class T> inline Pair<T> load_some_complex(const T *from, int64_t count) {
  if (count >= lanes<T>) return load_complex(from);
  T numbers[element<T>] = {};
  std::copy_n(from, 2 * count, numbers);
  return load_complex(numbers);
}
template <class T> inline void store_some_complex(Pair<T> x, T *to, int64_t count) {
  if (count >= lanes<T>) return store_complex(x, to);
  T numbers[element<T>];
  store_complex(x, numbers);
  std::copy_n(numbers, 2 * count, to);
}

template <class T> void load_columns(const T *in, int64_t stride, int64_t length, int64_t count, T *to) {
  for (int64_t j = 0; j < length; j++)
    store_pair(load_some_complex(in + j * stride, count), to + j * element<T>, Halves<T>(false));
}

template <class T> void store_columns(const T *from, int64_t length, T scale, T *out, int64_t stride, int64_t count) {
  for (int64_t k = 0; k < length; k++) {
    const Pair<T> x = load_pair(from + k * element<T>, Halves<T>(false));
    store_some_complex<T>({x.re * scale, x.im * scale}, out + k * stride, count);
  }
}

template <class T> void columns(const Passes<T> &passes, const Lines<T> &lines, T *work) {
  load_columns(lines.in, lines.in_stride, passes.length, lines.count, work);
  const T *result = run_passes(passes, work, work + passes.length * element<T>, lines.inverse, lines.inverse);
  store_columns(result, passes.length, lines.scale, lines.out, lines.out_stride, lines.count);
}

// Copies elements with a distance between them.
template <class T> void copy_elements(const T *from, int64_t distance, int64_t length, T *to, int64_t to_distance) {
  for (int64_t j = 0; j < length; j++)
    for (int half = 0; half < 2; half++)
      store_vector<T>(load_vector(from + j * distance * element<T> + half * lanes<T>),
                      to + j * to_distance * element<T> + half * lanes<T>);
}

template <class T> void planes(const Passes<T> &passes, const Lines<T> &lines, int64_t inner, T *work) {
  const int64_t n = passes.length;
  load_rows(lines, n * inner, work);
  T *x = work + n * inner * element<T>, *other = x + n * element<T>;
  for (int64_t c = 0; c < inner; c++) {
    T *column = work + c * element<T>;
    copy_elements(column, inner, n, x, 1);
    T *result = run_passes(passes, x, other, lines.inverse, lines.inverse);
    scale_elements(result, n, lines.scale);
    copy_elements(result, 1, n, column, inner);
  }
  store_rows(work, lines, n * inner);
}

template <class T> void multiply_elements(T *x, const T *factors, int64_t length, Halves<T> from) {
  for (int64_t j = 0; j < length; j++) {
    T *at = x + j * element<T>;
    store_pair(times(load_pair(at, from), factors[2 * j], factors[2 * j + 1]), at, Halves<T>(false));
  }
}

template <class T> void chirped_rows(const Chirp<T> &chirp, const Lines<T> &lines, T *work) {
  const Passes<T> &passes = *chirp.padded->passes;
  const int64_t n = int64_t(chirp.chirp.size()) / 2, padded = passes.length;
  T *other = work + padded * element<T>;
  load_rows(lines, n, work);
  multiply_elements(work, chirp.chirp.data(), n, Halves<T>(lines.inverse));
  std::fill(work + n * element<T>, other, T(0));
  T *spectrum = run_passes(passes, work, other, false, false);
  multiply_elements(spectrum, chirp.spectrum.data(), padded, Halves<T>(false));
  T *result = run_passes(passes, spectrum, spectrum == work ? other : work, true, true);
  multiply_elements(result, chirp.chirp.data(), n, Halves<T>(false));
  if (lines.inverse)
    for (int64_t k = 0; k < n; k++)
      store_pair(load_pair(result + k * element<T>, Halves<T>(true)), result + k * element<T>, Halves<T>(false));
  scale_elements(result, n, lines.scale);
  store_rows(result, lines, n);
}

template <class T> void split_columns(const Split<T> &split, const Lines<T> &row, int64_t block, T *between, T *work) {
  const int64_t a = split.first->length, b = split.second->length, step = split.blocks * element<T>;
  const int64_t count = std::min<int64_t>(lanes<T>, b - block * lanes<T>);
  load_columns(row.in + block * element<T>, 2 * b, a, count, work);
  const T *result = run_passes(*split.first, work, work + a * element<T>, row.inverse, false);
  const T *w = split.twiddles.data() + block * element<T>;
  T *to = between + block * element<T>;
  const Halves<T> plain(false);
  for (int64_t k = 0; k < a; k++)
    store_pair(times(load_pair(result + k * element<T>, plain), load_pair(w + k * step, plain)), to + k * step, plain);
}

template <class T>
void split_rows(const Split<T> &split, const Lines<T> &row, int64_t block, const T *between, T *work) {
  const int64_t a = split.first->length, b = split.second->length, step = split.blocks * element<T>;
  const int64_t first = block * lanes<T>, count = std::min<int64_t>(lanes<T>, a - first);
  for (int64_t j = 0; j < b; j += lanes<T>) {
    const T *from = between + first * step + j * 2;
    auto line = [&](int64_t lane) { return from + std::min(lane, count - 1) * step; };
    for (int64_t half = 0; half < element<T>; half += lanes<T>)
      transpose_rows<T>([&](int lane) { return line(lane) + half; }, work + j * element<T> + half, element<T>,
                        lanes<T>);
  }
  T *other = work + split.blocks * lanes<T> * element<T>;
  const T *result = run_passes(*split.second, work, other, false, row.inverse);
  store_columns(result, b, row.scale, row.out + 2 * first, 2 * a, count);
}

template <class T> void chirp_in(const Chirp<T> &chirp, const Lines<T> &row, int64_t begin, int64_t end, T *to) {
  const int64_t n = int64_t(chirp.chirp.size()) / 2;
  for (int64_t j = begin; j < end; j += lanes<T>) {
    const int64_t count = std::min<int64_t>(lanes<T>, end - j), filled = std::min(count, n - j);
    Pair<T> x = {};
    if (filled > 0) {
      x = load_some_complex(row.in + 2 * j, filled);
      if (row.inverse) x = {x.im, x.re};
      x = times(x, load_some_complex(chirp.chirp.data() + 2 * j, filled));
    }
    store_some_complex(x, to + 2 * j, count);
  }
}

template <class T> void chirp_between(const Chirp<T> &chirp, int64_t begin, int64_t end, T *x) {
  for (int64_t j = begin; j < end; j += lanes<T>) {
    const int64_t count = std::min<int64_t>(lanes<T>, end - j);
    const Pair<T> factor = load_some_complex(chirp.spectrum.data() + 2 * j, count);
    store_some_complex(times(load_some_complex<T>(x + 2 * j, count), factor), x + 2 * j, count);
  }
}

template <class T> void chirp_out(const Chirp<T> &chirp, const T *x, const Lines<T> &row, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; j += lanes<T>) {
    const int64_t count = std::min<int64_t>(lanes<T>, end - j);
    Pair<T> y = times(load_some_complex(x + 2 * j, count), load_some_complex(chirp.chirp.data() + 2 * j, count));
    if (row.inverse) y = {y.im, y.re};
    store_some_complex<T>({y.re * row.scale, y.im * row.scale}, row.out + 2 * j, count);
  }
}

// With Z the transform of the pairs x[2j] + i x[2j + 1], E = (Z[k] + Z*[h - k]) / 2 and O = (Z[k] - Z*[h - k]) / 2i are
// the transforms of the even and the odd numbers: X[k] = E + e^(-πi k / h) O, and X*[h - k] = E - e^(-πi k / h) O.
template <class T> void unpack(const T *roots, int64_t h, bool inverse, T *row) {
  const T sign = inverse ? T(-1) : T(1); // of imaginary parts
  const T re = row[0], im = row[1];
  for (int64_t k = 1; 2 * k <= h; k++) {
    T *a = row + 2 * k, *b = row + 2 * (h - k);
    const T ar = a[0], ai = a[1], br = b[0], bi = b[1];
    const T er = (ar + br) * T(0.5), ei = (ai - bi) * T(0.5), od = (ai + bi) * T(0.5), oi = (br - ar) * T(0.5);
    const T c = roots[2 * k], s = roots[2 * k + 1];
    const T tr = od * c - oi * s, ti = od * s + oi * c;
    a[0] = er + tr;
    a[1] = sign * (ei + ti);
    b[0] = er - tr;
    b[1] = sign * (ti - ei);
  }
  row[0] = re + im;
  row[1] = 0;
  row[2 * h] = re - im;
  row[2 * h + 1] = 0;
}

// Z[k] = (X[k] + X*[h - k]) + i e^(πi k / h) (X[k] - X*[h - k]): twice the Z[k] of a forward transform, since x sums
// both halves of the spectrum. The imaginary parts of X[0] and X[h] are taken as 0. For the opposite sign, X is
// conjugated.
template <class T> void pack(const T *roots, int64_t h, bool inverse, const T *row, T *to) {
  const T sign = inverse ? T(1) : T(-1);
  to[0] = row[0] + row[2 * h];
  to[1] = row[0] - row[2 * h];
  for (int64_t k = 1; 2 * k <= h; k++) {
    const T *a = row + 2 * k, *b = row + 2 * (h - k);
    const T ar = a[0], ai = sign * a[1], br = b[0], bi = sign * b[1];
    const T er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
    const T c = roots[2 * k], s = -roots[2 * k + 1];
    const T tr = -(dr * s + di * c), ti = dr * c - di * s; // i (c + i s) (dr + i di)
    to[2 * k] = er + tr;
    to[2 * k + 1] = ei + ti;
    to[2 * (h - k)] = er - tr;
    to[2 * (h - k) + 1] = ti - ei;
  }
}

// `unpack` and `scale` of rows whose elements are vectors.
template <class T> void unpack_rows(const T *roots, int64_t h, bool inverse, T scale, T *x) {
  const Halves<T> plain(false);
  const T half = T(0.5) * scale;
  const Pair<T> first = load_pair(x, plain);
  for (int64_t k = 1; 2 * k <= h; k++) {
    T *at = x + k * element<T>, *other = x + (h - k) * element<T>;
    const Pair<T> a = load_pair(at, plain), b = load_pair(other, plain);
    const Pair<T> even = {(a.re + b.re) * half, (a.im - b.im) * half};
    const Pair<T> turned = times<T>({(a.im + b.im) * half, (b.re - a.re) * half}, roots[2 * k], roots[2 * k + 1]);
    const Vector<T> im = even.im + turned.im, other_im = turned.im - even.im;
    store_pair<T>({even.re + turned.re, inverse ? -im : im}, at, plain);
    store_pair<T>({even.re - turned.re, inverse ? -other_im : other_im}, other, plain);
  }
  const Vector<T> zero = {};
  store_pair<T>({(first.re + first.im) * scale, zero}, x, plain);
  store_pair<T>({(first.re - first.im) * scale, zero}, x + h * element<T>, plain);
}

// `pack` of rows whose elements are vectors, in place.
template <class T> void pack_rows(const T *roots, int64_t h, bool inverse, T *x) {
  const Halves<T> plain(false);
  const Vector<T> first = load_vector(x), last = load_vector(x + h * element<T>);
  for (int64_t k = 1; 2 * k <= h; k++) {
    T *at = x + k * element<T>, *other = x + (h - k) * element<T>;
    Pair<T> a = load_pair(at, plain), b = load_pair(other, plain);
    if (!inverse) a.im = -a.im, b.im = -b.im;
    const Pair<T> even = {a.re + b.re, a.im - b.im};
    const Pair<T> turned = times<T>({a.re - b.re, a.im + b.im}, roots[2 * k], -roots[2 * k + 1]);
    store_pair<T>({even.re - turned.im, even.im + turned.re}, at, plain);
    store_pair<T>({even.re + turned.im, turned.re - even.im}, other, plain);
  }
  store_pair<T>({first + last, first - last}, x, plain);
}

// Makes numbers the real parts of elements, or takes the real parts, in the other direction.
template <class T> void widen(const T *numbers, int64_t n, T *x) {
  const Vector<T> zero = {};
  const Halves<T> plain(false);
  for (int64_t j = 0; j < n; j++) store_pair<T>({load_vector(numbers + j * lanes<T>), zero}, x + j * element<T>, plain);
}
template <class T> void narrow(const T *x, int64_t n, T *numbers) {
  for (int64_t j = 0; j < n; j++) store_vector<T>(load_vector(x + j * element<T>), numbers + j * lanes<T>);
}

template <class T> void spectra_of_rows(const RealPasses<T> &real, const Lines<T> &lines, T *work) {
  const Passes<T> &passes = *real.passes;
  const int64_t n = real.length, m = n / 2 + 1;
  const Halves<T> plain(false);
  T *other = work + (passes.length + 1) * element<T>;
  if (n % 2 == 0) {
    load_numbers(lines, n, work);
    T *result = run_passes(passes, work, other, false, false);
    unpack_rows(real.roots, n / 2, lines.inverse, lines.scale, result);
    return store_rows(result, lines, m);
  }
  load_numbers(lines, n, other);
  widen(other, n, work);
  T *result = run_passes(passes, work, other, lines.inverse, lines.inverse);
  scale_elements(result, m, lines.scale);
  const Vector<T> zero = {};
  store_pair<T>({load_pair(result, plain).re, zero}, result, plain);
  store_rows(result, lines, m);
}

template <class T> void rows_of_spectra(const RealPasses<T> &real, const Lines<T> &lines, T *work) {
  const Passes<T> &passes = *real.passes;
  const int64_t n = real.length, m = n / 2 + 1;
  const Halves<T> plain(false);
  T *other = work + (passes.length + 1) * element<T>;
  load_rows(lines, m, work);
  if (n % 2 == 0) {
    pack_rows(real.roots, n / 2, lines.inverse, work);
    T *result = run_passes(passes, work, other, true, true);
    scale_elements(result, n / 2, lines.scale);
    return store_numbers(result, lines, n);
  }
  const Vector<T> zero = {};
  store_pair<T>({load_vector(work), zero}, work, plain);
  for (int64_t k = 1; k < m; k++) {
    const Pair<T> x = load_pair(work + k * element<T>, plain);
    store_pair<T>({x.re, -x.im}, work + (n - k) * element<T>, plain);
  }
  T *result = run_passes(passes, work, other, lines.inverse, lines.inverse);
  scale_elements(result, n, lines.scale);
  narrow(result, n, result);
  store_numbers(result, lines, n);
}

template <class T>
constexpr FftKernels<T> kernels = {
    lanes<T>,         rows<T>,      columns<T>, chirped_rows<T>, split_columns<T>,   split_rows<T>,      chirp_in<T>,
    chirp_between<T>, chirp_out<T>, unpack<T>,  pack<T>,         spectra_of_rows<T>, rows_of_spectra<T>, planes<T>};

} // namespace

extern const FftTable fft_table = {kernels<double>, kernels<float>};

} // namespace orchard::ORCHARD_ISA
