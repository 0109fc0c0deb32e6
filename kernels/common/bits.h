// Operations on bit patterns: the next number of a float type, greatest common divisors, and shifts.
// native/cpu/elementwise/bits.h has the same formulas.

#ifndef ORCHARD_COMMON_BITS_H
#define ORCHARD_COMMON_BITS_H

#include <metal_stdlib>

namespace orchard {

// Works for formats with a sign, an exponent and a fraction: magnitudes are ordered as their bits are. `infinite` is
// the bit pattern of infinity.
template <typename Bits> inline Bits next_bits(Bits a, Bits b, Bits infinite) {
    const Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
    Bits from = a & Bits(~sign);
    Bits to = b & Bits(~sign);
    if (from > infinite || to > infinite) {
        return infinite | Bits(infinite >> 1);  // a NaN
    }
    if (a == b || (from | to) == Bits(0)) {
        return b;
    }
    if (from == Bits(0)) {
        return (b & sign) | Bits(1);
    }
    bool falls = ((a ^ b) & sign) != Bits(0) || from > to;
    return falls ? Bits(a - Bits(1)) : Bits(a + Bits(1));
}

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

// Returns |x| as an unsigned integer: T can't represent the magnitude of its smallest value.
template <typename T> inline typename Unsigned<T>::type unsigned_magnitude(T x) {
    using U = typename Unsigned<T>::type;
    return x < T(0) ? U(U(0) - U(x)) : U(x);
}

// Computes the greatest common divisor by Euclid's algorithm; 0 if both are 0. A result that exceeds T wraps around.
template <typename T> inline T greatest_common_divisor(T a, T b) {
    using U = typename Unsigned<T>::type;
    U x = unsigned_magnitude(a);
    U y = unsigned_magnitude(b);
    while (y != U(0)) {
        U remainder = U(x % y);
        x = y;
        y = remainder;
    }
    return T(x);
}

// Computes the least common multiple; 0 if either is 0.
template <typename T> inline T least_common_multiple(T a, T b) {
    using U = typename Unsigned<T>::type;
    U divisor = U(greatest_common_divisor(a, b));
    return divisor == U(0) ? T(0) : T(U(U(unsigned_magnitude(a) / divisor) * unsigned_magnitude(b)));
}

// Returns a 2^b modulo 2^bits, computed in an unsigned type; 0 if b is negative or at least the number of bits.
template <typename T> inline T shifted_left(T a, T b) {
    using U = typename Unsigned<T>::type;
    const bool is_inside = b >= T(0) && ulong(b) < 8 * sizeof(T);
    return is_inside ? T(U(U(a) << uint(b))) : T(0);
}

// Returns a / 2^b rounded down. If b is negative or at least the number of bits, 0 for a >= 0 and -1 for a < 0.
template <typename T> inline T shifted_right(T a, T b) {
    const bool is_inside = b >= T(0) && ulong(b) < 8 * sizeof(T);
    return is_inside ? T(a >> uint(b)) : a < T(0) ? T(-1) : T(0);
}

}  // namespace orchard

#endif
