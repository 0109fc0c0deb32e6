// Integer arithmetic modulo 2^bits, division, powers, greatest common divisors, shifts, and the next number of a float
// format.
//
// Wide<T> is the unsigned type in which an integer type T is added and multiplied, of at least 32 bits: in C++ an
// overflow of a signed type is undefined. Unsigned<T> has the same size as T, and PowerOf<T> is the fastest unsigned
// type for powers: 64 bits for CPUs, as few as possible for GPUs. Each language defines them.

#ifndef ORCHARD_FORMULAS_INTEGERS_H
#define ORCHARD_FORMULAS_INTEGERS_H

namespace ORCHARD_FORMULAS {

template <typename T> inline typename Wide<T>::type wide(T x) { return typename Wide<T>::type(x); }
template <typename T> inline T negated(T x) { return T(wide(T(0)) - wide(x)); }

// Predicates of floats that are true for every integer, or false for every integer.
template <typename T> inline bool always(T) { return true; }
template <typename T> inline bool never(T) { return false; }

// x86 traps when the smallest integer is divided by -1; the quotient wraps around.
template <typename T> inline bool is_minus_one(T b) { return T(-1) < T(0) && b == T(-1); }

// Division by 0 gives 0, and so does its remainder. Callers check divisors first.
template <typename T> inline T quotient(T a, T b) { return is_minus_one(b) ? negated(a) : b == T(0) ? T(0) : T(a / b); }
template <typename T> inline T rest(T a, T b) { return is_minus_one(b) || b == T(0) ? T(0) : T(a % b); }

// Also used for floats.
template <typename T> inline bool signs_differ(T remainder, T b) {
    return (remainder != T(0)) & ((remainder < T(0)) != (b < T(0)));
}
// A remainder with the sign of the divisor, from one with the sign of the dividend.
template <typename T> inline T signed_as_divisor(T remainder, T b) {
    return signs_differ(remainder, b) ? T(remainder + b) : remainder;
}

// The power modulo 2^bits. A negative exponent gives 0, except for the bases 1 and -1.
template <typename T> inline T power(T base, T exponent) {
    using U = typename PowerOf<T>::type;
    if (exponent < T(0)) {
        T sign = (exponent & T(1)) != T(0) ? base : T(1);
        return base == T(1) || is_minus_one(base) ? sign : T(0);
    }
    U result = U(1);
    U factor = U(base);
    for (U left = U(exponent); left != U(0); left >>= 1) {
        if ((left & U(1)) != U(0)) result *= factor;
        factor *= factor;
    }
    return T(result);
}

// |x| as an unsigned integer: T can't represent the magnitude of its smallest value.
template <typename T> inline typename Unsigned<T>::type unsigned_magnitude(T x) {
    using U = typename Unsigned<T>::type;
    return x < T(0) ? U(U(0) - U(x)) : U(x);
}

// Euclid's algorithm. 0 if both are 0; a result that exceeds T wraps around.
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

// 0 if either is 0.
template <typename T> inline T least_common_multiple(T a, T b) {
    using U = typename Unsigned<T>::type;
    U divisor = U(greatest_common_divisor(a, b));
    return divisor == U(0) ? T(0) : T(U(U(unsigned_magnitude(a) / divisor) * unsigned_magnitude(b)));
}

// Whether a number can be shifted by b bits.
template <typename T> inline bool is_shift(T b) { return !(b < T(0)) && wide(b) < 8 * sizeof(T); }

// a·2^b modulo 2^bits; 0 if b is negative or at least the number of bits.
template <typename T> inline T shifted_left(T a, T b) {
    using U = typename Unsigned<T>::type;
    return is_shift(b) ? T(U(U(a) << int(is_shift(b) ? b : T(0)))) : T(0);
}

// a/2^b rounded down; if b is negative or at least the number of bits, 0 for a ≥ 0 and -1 for a < 0.
template <typename T> inline T shifted_right(T a, T b) {
    return is_shift(b) ? T(a >> int(is_shift(b) ? b : T(0))) : a < T(0) ? T(-1) : T(0);
}

// The bits of the number next to a in the direction of b; b if they are equal, NaN if either is NaN. Works for formats
// with a sign, an exponent and a fraction, whose magnitudes are ordered as their bits are. `infinite` is the bit
// pattern of infinity.
template <typename Bits> inline Bits next_bits(Bits a, Bits b, Bits infinite) {
    const Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
    Bits from = a & Bits(~sign);
    Bits to = b & Bits(~sign);
    bool is_none = (from > infinite) | (to > infinite);
    bool is_same = (a == b) | ((from | to) == 0);
    bool falls = ((a ^ b) & sign) != 0 || from > to;
    Bits next = from == 0 ? Bits((b & sign) | 1) : Bits(falls ? a - 1 : a + 1);
    return is_none ? Bits(infinite | (infinite >> 1)) : is_same ? b : next;
}

}  // namespace ORCHARD_FORMULAS

#endif
