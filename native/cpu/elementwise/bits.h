// Operations on bit patterns: the next number of a float dtype, greatest common divisors, and shifts.
#pragma once

#include "../dtypes.h"

#include <cstring>
#include <type_traits>

namespace orchard::ORCHARD_ISA {

// Works for formats with a sign, an exponent and a fraction: magnitudes are ordered as their bits are. `infinite` is
// the bit pattern of infinity.
template <class Bits> inline Bits next_bits(Bits a, Bits b, Bits infinite) {
  constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  Bits from = a & Bits(~sign), to = b & Bits(~sign);
  bool is_nan = (from > infinite) | (to > infinite), is_same = (a == b) | ((from | to) == 0);
  bool falls = ((a ^ b) & sign) != 0 || from > to;
  Bits next = from == 0 ? Bits((b & sign) | 1) : Bits(falls ? a - 1 : a + 1);
  return is_nan ? Bits(infinite | (infinite >> 1)) : is_same ? b : next;
}

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

// x| as an unsigned integer: T can't represent the magnitude of its smallest value.
template <class T> inline std::make_unsigned_t<T> unsigned_magnitude(T x) {
  using Unsigned = std::make_unsigned_t<T>;
  return x < T(0) ? Unsigned(Unsigned(0) - Unsigned(x)) : Unsigned(x);
}

// Euclid's algorithm. Returns 0 if both are 0; a result that exceeds T wraps around.
template <class T> inline T greatest_common_divisor(T a, T b) {
  auto x = unsigned_magnitude(a), y = unsigned_magnitude(b);
  while (y != 0) {
    auto remainder = decltype(x)(x % y);
    x = y;
    y = remainder;
  }
  return T(x);
}

// Returns 0 if either is 0.
template <class T> inline T least_common_multiple(T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  Unsigned x = unsigned_magnitude(a), y = unsigned_magnitude(b), divisor = Unsigned(greatest_common_divisor(a, b));
  return divisor == 0 ? T(0) : T(Unsigned(uint64_t(x / divisor) * y));
}

// a·2^b on unsigned bits, modulo 2^bits; 0 if b is negative or too large.
template <class T> inline T shifted_left(T a, T b) {
  constexpr int bits = 8 * sizeof(T);
  bool is_inside = !(b < T(0)) && uint64_t(b) < uint64_t(bits);
  return is_inside ? T(std::make_unsigned_t<T>(a) << (is_inside ? int(b) : 0)) : T(0);
}

// a/2^b rounded down; if b is negative or too large, 0 for a ≥ 0 and -1 for a < 0.
template <class T> inline T shifted_right(T a, T b) {
  constexpr int bits = 8 * sizeof(T);
  bool is_inside = !(b < T(0)) && uint64_t(b) < uint64_t(bits);
  return is_inside ? T(a >> (is_inside ? int(b) : 0)) : a < T(0) ? T(-1) : T(0);
}

} // namespace orchard::ORCHARD_ISA
