// Numbers with more digits or a wider range than float32, for products of many factors and sums of squares. Their
// results fit in float32, but intermediate values would lose digits, overflow or underflow. All scaling is by powers of
// two, and exact.

#ifndef ORCHARD_COMMON_EXTENDED_H
#define ORCHARD_COMMON_EXTENDED_H

// (value + lost) · 2^exponent: a product together with its rounding errors (Dekker, "A floating-point technique for
// extending the available precision", 1971). |value| is in [0.5, 1], or 0 or not finite.
struct ExtendedProduct {
    float value;
    float lost;
    int exponent;
};

inline ExtendedProduct product_of(float x) {
    int exponent = 0;
    if (x == 0.0f || !isfinite(x)) return {x, 0.0f, 0};
    float value = frexp(x, exponent);
    return {value, 0.0f, exponent};
}

inline ExtendedProduct multiplied(ExtendedProduct a, ExtendedProduct b) {
    float product = a.value * b.value;
    if (product == 0.0f || !isfinite(product)) return {product, 0.0f, 0};
    float error = fma(a.value, b.value, -product) + fma(a.value, b.lost, a.lost * b.value);
    float value = product + error;
    float lost = error - (value - product);
    int exponent = clamp(a.exponent + b.exponent, -0x1000000, 0x1000000);
    if (abs(value) >= 0.5f) return {value, lost, exponent};
    return {2.0f * value, 2.0f * lost, exponent - 1};
}

inline float rounded(ExtendedProduct x) { return ldexp(x.value + x.lost, clamp(x.exponent, -400, 400)); }

// sum · 2^(180 · level): a sum of squares of numbers above 2^50 (level 1), between 2^-50 and 2^50 (level 0), or below
// (level -1, including subnormal numbers). The largest number determines the level. Numbers that are too small for a
// level are below the last digit of the sum.
struct Squares {
    float sum;
    int level;
};

// Powers of two in decimal: hexadecimal floats require C++17, and kernels of other projects do not use them.
constant float TWO_TO_50 = 1.12589991e+15f;
constant float TWO_TO_MINUS_50 = 8.8817842e-16f;
constant float TWO_TO_90 = 1.23794004e+27f;
constant float TWO_TO_MINUS_90 = 8.07793567e-28f;

// Returns the factor by which numbers of a level are multiplied before they are squared.
inline float unit_of(int level) { return level == 0 ? 1.0f : level > 0 ? TWO_TO_MINUS_90 : TWO_TO_90; }

inline Squares square_of(float x) {
    int level = abs(x) >= TWO_TO_50 ? 1 : abs(x) < TWO_TO_MINUS_50 ? -1 : 0;
    float scaled = x * unit_of(level);
    return {scaled * scaled, level};
}

inline float at_level(Squares x, int level) {
    if (x.level == level) return x.sum;
    return level - x.level == 1 ? x.sum * TWO_TO_MINUS_90 * TWO_TO_MINUS_90 : 0.0f;
}

inline Squares added(Squares a, Squares b) {
    int level = max(a.level, b.level);
    return {at_level(a, level) + at_level(b, level), level};
}

inline float rounded(Squares x) { return x.sum * unit_of(-x.level) * unit_of(-x.level); }

inline float root(Squares x) { return precise::sqrt(x.sum) * unit_of(-x.level); }

#endif
