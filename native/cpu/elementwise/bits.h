// The integer arithmetic of kernels/formulas/integers.h, the bits of kernels/formulas/exponents.h, and the next number
// of each float dtype.
#pragma once

#include "math.h"

#include <cstring>
#include <type_traits>

namespace orchard::ORCHARD_ISA {

template <class T> struct Unsigned {
  using type = std::make_unsigned_t<T>;
};
template <class T> struct Wide {
  using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};

template <class T> struct PowerOf {
  using type = uint64_t;
};

inline float two_to(float n) { return power_of_two(integer_of(n)); }
inline double two_to(double n) { return float64::power_of_two(float64::integer_of(n)); }

} // namespace orchard::ORCHARD_ISA

#include "../../../kernels/formulas/exponents.h"
#include "../../../kernels/formulas/integers.h"

namespace orchard::ORCHARD_ISA {

inline float mantissa_of(float x) { return decomposed_bits<23, 127>(x, bits_of(x)).mantissa; }
inline int exponent_of(float x) { return decomposed_bits<23, 127>(x, bits_of(x)).exponent; }
inline double mantissa_of(double x) { return decomposed_bits<52, 1023>(x, bits_of(x)).mantissa; }
inline int exponent_of(double x) { return decomposed_bits<52, 1023>(x, bits_of(x)).exponent; }

template <class Bits, class T> inline T next_after_by(T a, T b, Bits infinite) {
  static_assert(sizeof(Bits) == sizeof(T));
  Bits from, to;
  std::memcpy(&from, &a, sizeof from);
  std::memcpy(&to, &b, sizeof to);
  Bits next = next_bits<Bits>(from, to, infinite);
  T result;
  std::memcpy(&result, &next, sizeof result);
  return result;
}

// Returns the number next to a in the direction of b; b if they are equal, NaN if either is.
inline Float16 next_after(Float16 a, Float16 b) { return next_after_by<uint16_t>(a, b, 0x7c00); }
inline BFloat16 next_after(BFloat16 a, BFloat16 b) { return next_after_by<uint16_t>(a, b, 0x7f80); }
inline float next_after(float a, float b) { return next_after_by<uint32_t>(a, b, 0x7f800000); }
inline double next_after(double a, double b) { return next_after_by<uint64_t>(a, b, uint64_t(0x7ff) << 52); }

} // namespace orchard::ORCHARD_ISA
