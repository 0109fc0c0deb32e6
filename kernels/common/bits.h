// The integer arithmetic of formulas/integers.h, the bits of formulas/exponents.h, and the next number of each float
// type.

#ifndef ORCHARD_COMMON_BITS_H
#define ORCHARD_COMMON_BITS_H

#include <metal_stdlib>

#include "common/functions.h"

namespace orchard {

// The unsigned type for an integer's magnitude.
template <typename T> struct Unsigned {
    using type = T;
};
template <> struct Unsigned<long> {
    using type = ulong;
};
template <> struct Unsigned<int> {
    using type = uint;
};
template <> struct Unsigned<char> {
    using type = uchar;
};

// The unsigned type in which integers are added and multiplied.
template <typename T> struct Wide {
    using type = uint;
};
template <> struct Wide<long> {
    using type = ulong;
};

template <typename T> struct PowerOf {
    using type = typename Wide<T>::type;
};

inline uint bits_of(float value) { return as_type<uint>(value); }
inline float float_of(uint bits) { return as_type<float>(bits); }
inline float two_to(float n) { return power_of_two(integer_of(n)); }

}  // namespace orchard

#include "formulas/elementary.h"
#include "formulas/exponents.h"
#include "formulas/integers.h"

namespace orchard {

inline float mantissa_of(float x) { return decomposed_bits<23, 127>(x, bits_of(x)).mantissa; }
inline int exponent_of(float x) { return decomposed_bits<23, 127>(x, bits_of(x)).exponent; }

// Returns the number next to a in the direction of b; b if they are equal, NaN if either is NaN.
inline float next_after(float a, float b) {
    return as_type<float>(next_bits<uint>(as_type<uint>(a), as_type<uint>(b), 0x7f800000u));
}
inline half next_after(half a, half b) {
    ushort next = next_bits<ushort>(as_type<ushort>(a), as_type<ushort>(b), ushort(0x7c00));
    return as_type<half>(next);
}
inline bfloat next_after(bfloat a, bfloat b) {
    ushort next = next_bits<ushort>(as_type<ushort>(a), as_type<ushort>(b), ushort(0x7f80));
    return as_type<bfloat>(next);
}

}  // namespace orchard

#endif
