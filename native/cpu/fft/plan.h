// Plans of discrete Fourier transforms: factors and tables of a length, computed once and kept.
#pragma once

#include "tuning.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace orchard {

using tuning::fft::largest_radix;
using tuning::fft::longest_in_lanes;

// One pass of a Stockham transform of length n: n = radix * m * s, where s is the product of the earlier radices.
template <class T> struct Stage {
  int64_t radix, m, s;
  const T *twiddles; // [m][radix - 1][2]: e^(-2 pi i p j / (m radix))
  const T *roots;    // [radix][2]: e^(-2 pi i j / radix), for radices without special code
};

// The passes of a transform whose elements are vectors.
template <class T> struct Passes {
  int64_t length;
  std::vector<Stage<T>> stages;
  std::vector<T> tables;
};

// A transform of length n = a b as transforms of length a, products with twiddles, and transforms of length b.
template <class T> struct Split {
  std::shared_ptr<const Passes<T>> first, second; // of length a and b
  // [a][blocks of lanes][2][lanes]: e^(-2 pi i k j / n) for k < a and j < b
  std::vector<T> twiddles;
  int64_t blocks; // of b
};

// Bluestein's algorithm: a convolution with a chirp, by transforms of a longer length.
template <class T> struct Plan;
template <class T> struct Chirp {
  std::shared_ptr<const Plan<T>> padded;
  std::vector<T> chirp;    // [n][2]: e^(-pi i j^2 / n)
  std::vector<T> spectrum; // [padded length][2]: the transform of the conjugated chirp, divided by its length
};

template <class T> struct Plan {
  int64_t length;
  std::shared_ptr<const Passes<T>> passes; // null if there is a chirp
  std::shared_ptr<const Split<T>> split;   // null for short lengths, and lengths without two factors
  std::shared_ptr<const Chirp<T>> chirp;
  std::vector<T> half_roots; // [length / 2 + 1][2]: e^(-pi i k / length), for transforms of twice as many real numbers
};

// Returns e^(-2 pi i k / n) for 0 <= k < n, within about one rounding error of float64.
struct Root {
  double re, im;
};
Root root_of_unity(int64_t k, int64_t n);

// Returns whether no prime factor of n exceeds `largest_radix`.
bool is_smooth(int64_t n);
// Returns the least expensive smooth length of at least n.
int64_t padded_length(int64_t n, int64_t lanes);

template <class T> std::shared_ptr<const Passes<T>> make_passes(int64_t n);
// Returns null if n has no two factors.
template <class T> std::shared_ptr<const Split<T>> make_split(int64_t n, int64_t lanes);

} // namespace orchard
