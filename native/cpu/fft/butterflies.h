// Transforms of a few elements, each a vector of real and one of imaginary parts.
#pragma once

#include "../matmul/simd.h"

#include <cstdint>

namespace orchard::ORCHARD_ISA {

template <class T> struct Pair {
  Vector<T> re, im;
};

template <class T> inline Pair<T> operator+(Pair<T> a, Pair<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> inline Pair<T> operator-(Pair<T> a, Pair<T> b) { return {a.re - b.re, a.im - b.im}; }
// The product -i x.
template <class T> inline Pair<T> turned(Pair<T> x) { return {x.im, -x.re}; }
// sum + x factor, for a real factor.
template <class T> inline Pair<T> plus_scaled(Pair<T> sum, Pair<T> x, T factor) {
  return {multiply_add<T>(x.re, factor, sum.re), multiply_add<T>(x.im, factor, sum.im)};
}
template <class T> inline Pair<T> times(Pair<T> x, T re, T im) {
  return {multiply_add<T>(x.im, -im, x.re * re), multiply_add<T>(x.im, re, x.re * im)};
}
template <class T> inline Pair<T> times(Pair<T> x, Pair<T> y) {
  return {multiply_add<T>(x.im, -y.im, x.re * y.re), multiply_add<T>(x.im, y.re, x.re * y.im)};
}

// x[k] = Σⱼ x[j] e^(-2πi jk / radix).
template <class T, int radix> struct Butterfly;

template <class T> struct Butterfly<T, 2> {
  static void run(Pair<T> (&x)[2]) {
    const Pair<T> a = x[0], b = x[1];
    x[0] = a + b;
    x[1] = a - b;
  }
};

template <class T> struct Butterfly<T, 3> {
  static void run(Pair<T> (&x)[3]) {
    constexpr T sine = T(0.86602540378443864676372317075293618);
    const Pair<T> sum = x[1] + x[2], difference = turned(x[1] - x[2]);
    const Pair<T> middle = plus_scaled(x[0], sum, T(-0.5));
    x[0] = x[0] + sum;
    x[1] = plus_scaled(middle, difference, sine);
    x[2] = plus_scaled(middle, difference, -sine);
  }
};

template <class T> struct Butterfly<T, 4> {
  static void run(Pair<T> (&x)[4]) {
    const Pair<T> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = turned(x[1] - x[3]);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  }
};

template <class T> struct Butterfly<T, 5> {
  static void run(Pair<T> (&x)[5]) {
    constexpr T c1 = T(0.30901699437494742410229341718281906), s1 = T(0.95105651629515357211643933337938214);
    constexpr T c2 = T(-0.80901699437494742410229341718281906), s2 = T(0.58778525229247312916870595463907277);
    const Pair<T> t1 = x[1] + x[4], t2 = x[2] + x[3], d1 = turned(x[1] - x[4]), d2 = turned(x[2] - x[3]);
    const Pair<T> a = plus_scaled(plus_scaled(x[0], t1, c1), t2, c2);
    const Pair<T> b = plus_scaled(plus_scaled(x[0], t1, c2), t2, c1);
    const Pair<T> zero = {};
    const Pair<T> p = plus_scaled(plus_scaled(zero, d1, s1), d2, s2);
    const Pair<T> q = plus_scaled(plus_scaled(zero, d1, s2), d2, -s1);
    x[0] = x[0] + t1 + t2;
    x[1] = a + p;
    x[4] = a - p;
    x[2] = b + q;
    x[3] = b - q;
  }
};

template <class T> struct Butterfly<T, 8> {
  static void run(Pair<T> (&x)[8]) {
    constexpr T half = T(0.70710678118654752440084436210484904);
    Pair<T> even[4] = {x[0] + x[4], x[1] + x[5], x[2] + x[6], x[3] + x[7]};
    const Pair<T> d1 = x[1] - x[5], d3 = x[3] - x[7];
    Pair<T> odd[4] = {x[0] - x[4],
                      {(d1.re + d1.im) * half, (d1.im - d1.re) * half},
                      turned(x[2] - x[6]),
                      {(d3.im - d3.re) * half, (-d3.re - d3.im) * half}};
    Butterfly<T, 4>::run(even);
    Butterfly<T, 4>::run(odd);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      x[2 * k] = even[k];
      x[2 * k + 1] = odd[k];
    }
  }
};

// Computes results k to k + together - 1 of an odd radix, and those at radix - k. `x` has the sums x[j] + x[radix - j]
// at j, and their differences times -i at radix - j. Together, they share the loads of x.
template <class T, int together>
[[gnu::always_inline]] inline void odd_results(const Pair<T> *x, int radix, const T *roots, int k, Pair<T> *results) {
  Pair<T> a[together], b[together] = {};
  int at[together] = {};
#pragma GCC unroll 4
  for (int c = 0; c < together; c++) a[c] = x[0];
  for (int j = 1; j <= (radix - 1) / 2; j++) {
    const Pair<T> sum = x[j], difference = x[radix - j];
#pragma GCC unroll 4
    for (int c = 0; c < together; c++) {
      at[c] += k + c;
      at[c] -= at[c] >= radix ? radix : 0;
      a[c] = plus_scaled(a[c], sum, roots[2 * at[c]]);
      b[c] = plus_scaled(b[c], difference, -roots[2 * at[c] + 1]);
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < together; c++) {
    results[k + c] = a[c] + b[c];
    results[radix - k - c] = a[c] - b[c];
  }
}

// For odd radices: X[k] and X[radix - k] are a ± b, where a has the cosines of the sums x[j] + x[radix - j] and b the
// sines of their differences, times -i. `roots` are e^(-2πi j / radix), interleaved. If `radix` is constant, so is
// every index. `together` results are computed at once; their number does not change the bits.
template <class T, int together = 1>
[[gnu::always_inline]] inline void odd_butterfly(Pair<T> *x, int radix, const T *roots) {
  const int half = (radix - 1) / 2;
  Pair<T> sum = x[0];
  for (int j = 1; j <= half; j++) {
    const Pair<T> a = x[j], b = x[radix - j];
    sum = sum + a + b;
    x[j] = a + b;
    x[radix - j] = turned(a - b);
  }
  Pair<T> results[largest_radix];
  int k = 1;
  for (; k + together - 1 <= half; k += together) odd_results<T, together>(x, radix, roots, k, results);
  for (; k <= half; k++) odd_results<T, 1>(x, radix, roots, k, results);
  x[0] = sum;
  for (k = 1; k < radix; k++) x[k] = results[k];
}

// The results whose sums fit in the vector registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int odd_together = 4;
#else
constexpr int odd_together = 2;
#endif

} // namespace orchard::ORCHARD_ISA
