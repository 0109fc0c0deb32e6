// sinc, the scaled complement and the inverse of the error function, and functions with logarithms. Errors are within 4
// units in the last place (erfcx, log_ndtr: 6).

#ifndef ORCHARD_FORMULAS_SPECIAL_H
#define ORCHARD_FORMULAS_SPECIAL_H

namespace ORCHARD_FORMULAS {

// sin(πr)/(πr) for |r| ≤ ½, interpolated in r² at Chebyshev points.
inline float sine_quotient(float r) {
    return polynomial(r * r, -0.00223717862f, 0.0261174385f, -0.190747902f, 0.811742187f, -1.64493406f, 1.0f);
}

// sin(πx)/(πx) = ±sin(πr)/(πr)·r/x, where r is x minus the nearest integer; 1 at 0.
template <typename T> inline T sinc(T x) {
    T a = fabs(x);
    Turns<T> t = turns(a);
    T value = t.remainder / a * sine_quotient(t.remainder);
    return a == T(0) ? T(1) : t.is_odd ? -value : value;
}

// x·P(w) with w = -ln(1 - x²): a polynomial in w for w ≤ 5, and in √w beyond. ±infinity at ±1, NaN for |x| > 1. Source:
// M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2012. The polynomials here have one degree more.
inline float erfinv(float x) {
    float w = -log((1.0f - x) * (1.0f + x));
    float s = w - 2.5f;
    float t = sqrt(w) - 3.0f;
    float center = polynomial(
        s, -8.93192631e-09f, 2.33359678e-08f, 4.68131361e-07f, -3.46398519e-06f, -4.9724199e-06f, 0.000218349393f,
        -0.00125272642f, -0.00417739293f, 0.24664028f, 1.50140941f);
    float tail = polynomial(
        t, 0.000120385863f, -0.000313715573f, -6.2952633e-05f, 0.00148983696f, -0.00359459501f, 0.00568534806f,
        -0.00763777411f, 0.00944545027f, 1.00167501f, 2.83297682f);
    return fabs(x) == 1.0f ? x * INFINITY : x * (w < 5.0f ? center : tail);
}

// ((1 + 2a)·e^(a²)·erfc(a) - 1)/(1 + t) for a ≥ 0, interpolated at Chebyshev points of t = (a - 3)/(a + 3). The product
// is from 1 to 1.26, so one polynomial suffices. Source: M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation
// of (1 + 2x)exp(x²)erfc x in 0 ≤ x < ∞", Mathematics of Computation, 1981.
inline float erfcx_slope(float t) {
    return polynomial(
        t, 6.81508463e-05f, -0.000161661475f, -0.000538912776f, 0.00241640746f, 5.59595428e-05f, -0.0238216519f,
        0.09215042f, -0.211424932f, 0.341066748f, -0.388628989f, 0.253008068f);
}

// e^(a²)·erfc(a) for a ≥ 0
template <typename T> inline T erfcx_of_positive(T a) {
    T t = T(1) - T(6) / (a + T(3));
    return T(0.5) * fused(T(1) + t, erfcx_slope(t), T(1)) / (a + T(0.5));
}

// For x < 0: 2·e^(x²) - erfcx(-x), which is infinite below -27.
template <typename T> inline T erfcx(T x) {
    T a = fabs(x);
    T limited = at_most(a, T(27));
    T square = limited * limited;
    T power = exp(square);
    // e^(x²) needs more digits of the square than T has
    T whole = fused(power, square_error(limited, square), power);
    T positive = erfcx_of_positive(a);
    return x < T(0) ? T(2) * (power < T(INFINITY) ? whole : power) - positive : positive;
}

// ln Φ(x), where Φ(-a) = e^(-a²/2)·erfcx(a/√2)/2: ln Φ(-a), and ln(1 - Φ(-a)) for x ≥ 0.
template <typename T> inline T log_ndtr(T x) {
    T a = fabs(x);
    T limited = at_most(a, T(40));  // 1 - Φ(-a) rounds to 1 from here on
    T half_square = T(0.5) * limited * limited;
    T share = T(0.5) * erfcx_of_positive(a * T(0.707106781186547524401));
    T power = exp(-half_square);
    T tail = share * fused(-power, T(0.5) * square_error(limited, limited * limited), power);
    return x < T(0) ? fused(T(-0.5) * a, a, log(share)) : log1p(-tail);
}

// ln(e^a + e^b), computed so that no exponential overflows.
template <typename T> inline T logaddexp(T a, T b) {
    T larger = a > b || is_nan(a) ? a : b;
    T distance = a == b ? T(0) : fabs(a - b);  // infinity minus infinity would be NaN
    return larger + log1p(exp(-distance));
}

// log2(2^a + 2^b), computed likewise.
template <typename T> inline T logaddexp2(T a, T b) {
    T larger = a > b || is_nan(a) ? a : b;
    T distance = a == b ? T(0) : fabs(a - b);
    return larger + log1p(exp2(-distance)) * log2_of_e(a);
}

// a·ln b; 0 if a is 0, unless b is NaN.
template <typename T> inline T xlogy(T a, T b) {
    T product = a * log(b);
    return a == T(0) && !is_nan(b) ? T(0) : product;
}

}  // namespace ORCHARD_FORMULAS

#endif
