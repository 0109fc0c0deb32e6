// Mantissas and exponents, by integer arithmetic, since GPUs may flush subnormal numbers; and powers of two. Each
// language defines bits_of, float_of, and two_to, which computes 2^n for an integer n that is a normal exponent.

#ifndef ORCHARD_FORMULAS_EXPONENTS_H
#define ORCHARD_FORMULAS_EXPONENTS_H

namespace ORCHARD_FORMULAS {

// mantissa·2^exponent with 0.5 ≤ |mantissa| < 1; 0, infinity and NaN have the exponent 0.
template <typename T> struct Decomposed {
    T mantissa;
    int exponent;
};

// `digits` is the number of stored bits of the mantissa; a stored exponent is larger by `bias`.
template <int digits, int bias, typename Bits, typename T> inline Decomposed<T> decomposed_bits(T x, Bits all) {
    const Bits one = 1;
    const Bits fraction = (one << digits) - one;
    const Bits sign = one << (8 * sizeof(T) - 1);
    const Bits infinite = Bits(2 * bias + 1) << digits;
    Bits size = all & (sign - one);
    bool is_subnormal = size <= fraction;  // size·2^(1 - bias - digits)
    Bits lifted = is_subnormal ? bits_of(T(size & fraction)) : size;
    int exponent = int(lifted >> digits) - (bias - 1) - (is_subnormal ? bias + digits - 1 : 0);
    bool is_usual = size - one < infinite - one;  // not 0, which wraps around
    T mantissa = float_of((all & sign) | (Bits(bias - 1) << digits) | (lifted & fraction));
    return {is_usual ? mantissa : x, is_usual ? exponent : 0};
}

// a·2^k for an integer k, rounded once: in steps, since 2^k may be out of range where the product is not.
template <typename T> inline T times_power_of_two(T a, T k) {
    const T normal = sizeof(T) == sizeof(float) ? T(126) : T(1022);
    T limited = bounded(k, T(-3) * normal, T(3) * normal);
    T part = fabs(limited) <= normal ? T(0) : to_whole(limited * T(0.333333333333333333));
    T power = two_to(part);
    return a * power * power * two_to(limited - part - part);
}

}  // namespace ORCHARD_FORMULAS

#endif
