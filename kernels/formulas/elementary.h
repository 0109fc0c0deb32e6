// Selections and elementary functions, written once for C++ (native/cpu/elementwise/math.h) and for Metal
// (common/math.h), which include this file after the functions that they implement differently: exp, log, fabs, fused,
// polynomial, to_whole, integer_of and power_of_two.
//
// All formulas of this folder are without branches, so that C++ compilers vectorize them. A GPU computes both sides of
// a selection in a few instructions; its elementwise kernels are limited by memory.

#ifndef ORCHARD_FORMULAS_ELEMENTARY_H
#define ORCHARD_FORMULAS_ELEMENTARY_H

namespace ORCHARD_FORMULAS {

template <typename T> inline bool is_nan(T x) { return x != x; }

// NaN stays NaN.
template <typename T> inline T at_least(T x, T least) { return x < least ? least : x; }
template <typename T> inline T at_most(T x, T most) { return x > most ? most : x; }
// Two separate selections: GCC compiles a three-way selection to branches.
template <typename T> inline T bounded(T x, T least, T most) { return at_most(at_least(x, least), most); }

// e^r - 1 for |r| ≤ ln 2 / 2
inline float expm1_reduced(float r) {
    float p = polynomial(r, 0.000198909882f, 0.00139336474f, 0.00833331048f, 0.0416664667f, 0.166666672f, 0.5f);
    return fused(p * r, r, r);
}

// x - n ln 2, with ln 2 split into two parts: the product of the first part and an integer below 2^12 is exact.
inline float reduced_by_ln2(float x, float n) { return fused(n, 2.12194440e-4f, fused(n, -0.693359375f, x)); }

// e^x - 1 = 2^n (e^r - 1) + (2^n - 1) with x = n ln 2 + r, computed as half of it, since 2^128 is out of range.
inline float expm1(float x) {
    float limited = bounded(x, -18.0f, 89.0f);
    float n = to_whole(limited * 1.44269504f);
    float half_power = power_of_two(integer_of(n) - 1);
    float result = 2.0f * fused(half_power, expm1_reduced(reduced_by_ln2(limited, n)), half_power - 0.5f);
    return fabs(x) < 1e-8f ? x : result;
}

// ln u · x / (u - 1), where u is 1 + x rounded: the quotient compensates the rounding error. Source: W. Kahan, as in
// Goldberg, "What every computer scientist should know about floating-point arithmetic", theorem 4.
inline float log1p(float x) {
    float u = 1.0f + x;
    float corrected = log(u) * (x / (u - 1.0f));
    return u == 1.0f || x == INFINITY ? x : corrected;
}

// e / (1 + e) with e = e^-|x|, which can't overflow.
template <typename T> inline T sigmoid(T x) {
    T e = exp(-fabs(x));
    return (x < T(0) ? e : T(1)) / (T(1) + e);
}

}  // namespace ORCHARD_FORMULAS

#endif
