// Sums over the lanes of vectors. Each is a binary tree: lane l plus lane l + half. Several vectors are folded into
// each other, so that one addition is a step of all their trees; the order of additions is the same.
#pragma once

#include "simd.h"

#include <utility>

namespace orchard::ORCHARD_ISA {

template <class T> inline T sum_of_lanes(Vector<T> vector) {
  T numbers[lanes<T>];
  store_vector<T>(vector, numbers);
#pragma GCC unroll 4
  for (int half = lanes<T> / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int lane = 0; lane < half; lane++) numbers[lane] += numbers[lane + half];
  return numbers[0];
}

// The lower or upper halves of the chunks of a, then those of b. A chunk has the partial sums of one vector.
template <class T, int chunk, bool upper, int... lane>
inline Vector<T> halves_of_chunks(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  constexpr int side = lanes<T> / 2, half = chunk / 2;
  return __builtin_shufflevector(
      a, b, (lane / side * lanes<T> + lane % side / half * chunk + lane % half + (upper ? half : 0))...);
}

// Returns the sums of as many vectors as a vector has lanes, in their order. Overwrites the vectors.
template <class T, int chunk = lanes<T>> inline Vector<T> sums_of_lanes(Vector<T> *vectors) {
  using Lanes = std::make_integer_sequence<int, lanes<T>>;
  if constexpr (chunk == 1) return vectors[0];
  else {
#pragma GCC unroll 8
    for (int at = 0; at < chunk / 2; at++) {
      const Vector<T> a = vectors[2 * at], b = vectors[2 * at + 1];
      vectors[at] = halves_of_chunks<T, chunk, false>(a, b, Lanes()) + halves_of_chunks<T, chunk, true>(a, b, Lanes());
    }
    return sums_of_lanes<T, chunk / 2>(vectors);
  }
}

// sums[i] += the sum of the lanes of vectors[i]. Overwrites the vectors.
template <class T, int count> inline void add_sums_of_lanes(Vector<T> (&vectors)[count], T *sums) {
  constexpr int whole = count / lanes<T> * lanes<T>, rest = count - whole;
#pragma GCC unroll 4
  for (int first = 0; first < whole; first += lanes<T>)
    store_vector<T>(load_vector(sums + first) + sums_of_lanes<T>(vectors + first), sums + first);
  if constexpr (2 * rest >= lanes<T>) { // half of the sums or more are needed
    Vector<T> last[lanes<T>] = {};
#pragma GCC unroll 16
    for (int at = 0; at < rest; at++) last[at] = vectors[whole + at];
    T numbers[lanes<T>];
    store_vector<T>(sums_of_lanes<T>(last), numbers);
    for (int at = 0; at < rest; at++) sums[whole + at] += numbers[at];
  } else {
#pragma GCC unroll 16
    for (int at = 0; at < rest; at++) sums[whole + at] += sum_of_lanes<T>(vectors[whole + at]);
  }
}

} // namespace orchard::ORCHARD_ISA
