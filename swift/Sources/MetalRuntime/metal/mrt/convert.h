// as_type (MSL 2.22): the bits of a value as another type of the same size.
#ifndef MRT_CONVERT_H
#define MRT_CONVERT_H

#include "vec.h"

namespace mrt {

// Copying a vector may not copy its bits (vec.h).
template <typename T> struct bits_of {
  typedef T type;
  static constexpr MRT_FUNC T from(T value) { return value; }
  static constexpr MRT_FUNC T to(T bits) { return bits; }
};
#if defined(MRT_CHECKED) || defined(MRT_GPU)
template <typename T, int N> struct bits_of<metal::vec<T, N>> {
  struct alignas(metal::vec<T, N>) type {
    T elements[N];
  };
  static constexpr MRT_FUNC type from(metal::vec<T, N> v) {
    if constexpr (N == 2) return {{v.x, v.y}};
    else if constexpr (N == 3) return {{v.x, v.y, v.z}};
    else return {{v.x, v.y, v.z, v.w}};
  }
  static constexpr MRT_FUNC metal::vec<T, N> to(type bits) {
    if constexpr (N == 2) return {bits.elements[0], bits.elements[1]};
    else if constexpr (N == 3) return {bits.elements[0], bits.elements[1], bits.elements[2]};
    else return {bits.elements[0], bits.elements[1], bits.elements[2], bits.elements[3]};
  }
};
#endif

} // namespace mrt

namespace metal {

template <typename To, typename From> constexpr MRT_FUNC To as_type(From value) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs types of one size");
  return mrt::bits_of<To>::to(__builtin_bit_cast(typename mrt::bits_of<To>::type, mrt::bits_of<From>::from(value)));
}

} // namespace metal

using metal::as_type;

#endif
