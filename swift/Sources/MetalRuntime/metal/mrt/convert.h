// as_type (MSL 2.22): the bits of a value as another type of the same size.
#ifndef MRT_CONVERT_H
#define MRT_CONVERT_H

#include "vec.h"

namespace metal {

template <typename To, typename From> constexpr MRT_FUNC To as_type(From value) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs types of one size");
  return __builtin_bit_cast(To, value);
}

} // namespace metal

using metal::as_type;

#endif
