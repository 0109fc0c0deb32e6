// Numbers as unsigned keys: a < b if and only if key(a) < key(b). Every NaN, whatever its sign and payload, has the
// same key, greater than infinity's; both zeros have the same key.
#pragma once

#include "../dtypes.h"

namespace orchard::ORCHARD_ISA {

// Keys follow the order of IEEE 754 bits, which is reversed for negative numbers.
template <class Bits, class Real> inline Bits float_key(Real value) {
  constexpr Bits sign = Bits(1) << (8 * sizeof(Bits) - 1);
  if (value != value) return ~Bits(0);
  Real zeroless = value + Real(0); // -0 becomes 0
  Bits bits;
  std::memcpy(&bits, &zeroless, sizeof bits);
  return bits & sign ? ~bits : bits | sign;
}

template <class T> inline auto sort_key(T stored) {
  auto value = load(stored);
  using Value = decltype(value);
  if constexpr (std::is_same_v<Value, double>) return float_key<uint64_t>(value);
  else if constexpr (std::is_same_v<Value, float>) return float_key<uint32_t>(value);
  else if constexpr (std::is_same_v<Value, int64_t>) return uint64_t(value) ^ (uint64_t(1) << 63);
  else if constexpr (std::is_signed_v<Value>) return uint32_t(int32_t(value)) ^ (uint32_t(1) << 31);
  else return uint32_t(value);
}

} // namespace orchard::ORCHARD_ISA
