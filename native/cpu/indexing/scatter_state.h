// How a contribution is combined with an element, for the kernels that scatter.
#pragma once

#include "../dtypes.h"
#include "scatter.h"

namespace orchard::ORCHARD_ISA {

// Unsigned, so that integers wrap around.
template <class T> using Wrapping = std::make_unsigned_t<T>;

// The accumulator of an element of x: float64 for sums and products of floats.
template <class T, Scattering way>
using State =
    std::conditional_t<(way == Scattering::sum || way == Scattering::prod) && std::is_floating_point_v<Compute<T>>,
                       double, T>;

template <class S, class T> S state_of(T value) {
  if constexpr (std::is_same_v<S, T>) return value;
  else return static_cast<S>(load(value));
}

// Returns whether `value` replaces `best`. NaN counts as both larger and smaller than any number.
template <class T, bool is_largest> bool is_taken(T value, T best) {
  const Compute<T> number = load(value), other = load(best);
  return bool(is_largest ? number > other : number < other) | !(number == number); // without a branch, for vectors
}

template <class T, Scattering way> void put(State<T, way> &to, T value) {
  using S = State<T, way>;
  constexpr bool is_sum = way == Scattering::sum;
  if constexpr (way == Scattering::last) to = value;
  else if constexpr (way == Scattering::amax || way == Scattering::amin) {
    const bool takes = is_taken<T, way == Scattering::amax>(value, to);
    if constexpr (sizeof(T) == 2) to.bits = takes ? value.bits : to.bits; // a choice of structs is not vectorized
    else to = takes ? value : to;
  } else {
    static_assert(is_sum || way == Scattering::prod);
    if constexpr (std::is_same_v<T, Bool>) to = store<Bool>(load(to) || load(value));
    else if constexpr (std::is_same_v<S, double>) to = is_sum ? to + double(load(value)) : to * double(load(value));
    else {
      const auto current = Wrapping<T>(to), other = Wrapping<T>(value);
      to = static_cast<T>(static_cast<Wrapping<T>>(is_sum ? current + other : current * other));
    }
  }
}

} // namespace orchard::ORCHARD_ISA
