// Squares of as many rows as a vector has lanes, transposed in registers.
#pragma once

#include "simd.h"

#include <utility>

namespace orchard::ORCHARD_ISA {

// The first halves of a and b, or the second ones, one lane of each in turn.
template <class T, int first, int... lane> inline Vector<T> interleaved(Vector<T> a, Vector<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (first + lane / 2 + lane % 2 * lanes<T>)...);
}

// As many perfect shuffles of the rows as halvings make one row of them.
template <class T> inline void transpose(Vector<T> (&rows)[lanes<T>]) {
  constexpr int count = lanes<T>;
  using Lanes = std::make_integer_sequence<int, count>;
#pragma GCC unroll 4
  for (int size = count; size > 1; size /= 2) {
    Vector<T> shuffled[count];
#pragma GCC unroll 8
    for (int r = 0; r < count / 2; r++) {
      shuffled[2 * r] = interleaved<T, 0>(rows[r], rows[r + count / 2], Lanes());
      shuffled[2 * r + 1] = interleaved<T, count / 2>(rows[r], rows[r + count / 2], Lanes());
    }
#pragma GCC unroll 16
    for (int r = 0; r < count; r++) rows[r] = shuffled[r];
  }
}

} // namespace orchard::ORCHARD_ISA
