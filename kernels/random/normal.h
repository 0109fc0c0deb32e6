// The normal and exponential distributions from random words: the same operations in the same order as in
// src/random/normal.ts, which explains them. Every product in a sum is written as `fma`, so that the compiler can
// contract nothing, and the bits equal those of the other backends.

#ifndef ORCHARD_RANDOM_NORMAL_H
#define ORCHARD_RANDOM_NORMAL_H

// ln(1 + x) + exponent · ln 2
inline float random_logarithm(float x, float exponent) {
    float square = x * x;
    float p = 7.0376836292e-2f;
    p = fma(p, x, -1.151461031e-1f);
    p = fma(p, x, 1.167699874e-1f);
    p = fma(p, x, -1.2420140846e-1f);
    p = fma(p, x, 1.4249322787e-1f);
    p = fma(p, x, -1.6668057665e-1f);
    p = fma(p, x, 2.0000714765e-1f);
    p = fma(p, x, -2.4999993993e-1f);
    p = fma(p, x, 3.3333331174e-1f);
    float tail = (x * square) * p;
    tail = fma(exponent, -2.1219444e-4f, tail);
    tail = fma(-0.5f, square, tail);
    return fma(exponent, 0.693359375f, x + tail);
}

// ln(value · 2^scale)
inline float random_logarithm_of(float value, int scale) {
    int bits = as_type<int>(value);
    int exponent = (bits - 0x3f3504f3) >> 23;
    return random_logarithm(as_type<float>(bits - exponent * (1 << 23)) - 1.0f, float(exponent + scale));
}

// −ln u
inline float negative_log(uint word) {
    bool is_large = word >= (1u << 24);
    uint digits = is_large ? word >> 8 : max(word, 1u);
    return -random_logarithm_of(float(digits), is_large ? -24 : -32);
}

// −ln(1 − u)
inline float exponential_number(uint word) {
    bool is_large = word >= (1u << 24);
    uint digits = is_large ? word >> 8 : max(word, 1u);
    float scale = is_large ? 5.96046448e-08f : 2.32830644e-10f;  // 2^-24, 2^-32
    float u = float(digits) * scale;
    // For u >= 1/4, 1 − u is exact, whether or not it is fused with the product above.
    return -(u < 0.25f ? random_logarithm(-u, 0.0f) : random_logarithm_of(1.0f - u, 0));
}

// Cosine and sine of 2π · word · 2^−32
inline float2 random_cosine_and_sine(uint word) {
    uint quarter = (word + (1u << 29)) >> 30;
    int remainder = int(word - (quarter << 30)) >> 6;
    float x = float(remainder) * 9.36267597e-08f;  // π / 2 · 2^-24
    float square = x * x;
    float s = fma(fma(-1.9515295891e-4f, square, 8.3321608736e-3f), square, -1.6666654611e-1f);
    float c = fma(fma(2.443315711809948e-5f, square, -1.388731625493765e-3f), square, 4.166664568298827e-2f);
    float sine = fma(x * square, s, x);
    float cosine = fma(square * square, c, fma(-0.5f, square, 1.0f));
    bool is_odd = (quarter & 1) != 0;
    float2 point = is_odd ? float2(sine, cosine) : float2(cosine, sine);
    return float2(((quarter + 1) & 2) != 0 ? -point.x : point.x, (quarter & 2) != 0 ? -point.y : point.y);
}

inline float2 normal_pair(uint first, uint second) {
    float radius = precise::sqrt(2.0f * negative_log(first));
    return radius * random_cosine_and_sine(second);
}

#endif
