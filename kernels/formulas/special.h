// sinc, the scaled complement and the inverse of the error function, and functions with logarithms. Errors are within 4
// units in the last place (erfcx, log_ndtr, ndtri: 6).

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

// ln(1 - Φ(-a)) for a ≥ 0, where Φ(-a) = e^(-a²/2)·share.
template <typename T> inline T log_ndtr_above(T a, T share) {
    T limited = at_most(a, T(40));  // 1 - Φ(-a) rounds to 1 from here on
    T square = limited * limited;
    T power = exp(T(-0.5) * square);
    return log1p(-share * fused(-power, T(0.5) * square_error(limited, square), power));
}

// ln Φ(x), where share = erfcx(|x|/√2)/2. float64 computes one of the two sides only.
template <typename T> inline T log_ndtr(T x) {
    T a = fabs(x);
    T share = T(0.5) * erfcx_of_positive(a * T(0.707106781186547524401));
    return x < T(0) ? fused(T(-0.5) * a, a, log(share)) : log_ndtr_above(a, share);
}

// Φ⁻¹(p) by rational functions of q = p - ½ in the middle and of √(-ln p) in the tails. Source: M. J. Wichura,
// "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics, 1988.
template <typename T> inline T ndtri_middle(T q) {
    T r = fused(-q, q, T(0.180625));
    return q *
           polynomial(
               r, T(2509.0809287301227), T(33430.57558358813), T(67265.7709270087), T(45921.95393154987),
               T(13731.69376550946), T(1971.5909503065513), T(133.14166789178438), T(3.3871328727963665)) /
           polynomial(
               r, T(5226.495278852854), T(28729.085735721943), T(39307.89580009271), T(21213.794301586597),
               T(5394.196021424751), T(687.1870074920579), T(42.31333070160091), T(1));
}
template <typename T> inline T ndtri_near(T r) {
    return polynomial(
               r, T(0.0007745450142783414), T(0.022723844989269184), T(0.2417807251774506), T(1.2704582524523684),
               T(3.6478483247632045), T(5.769497221460691), T(4.630337846156546), T(1.4234371107496835)) /
           polynomial(
               r, T(1.0507500716444169e-09), T(0.0005475938084995345), T(0.015198666563616457), T(0.14810397642748008),
               T(0.6897673349851), T(1.6763848301838038), T(2.053191626637759), T(1));
}
template <typename T> inline T ndtri_far(T r) {
    return polynomial(
               r, T(2.0103343992922881e-07), T(2.7115555687434876e-05), T(0.0012426609473880784),
               T(0.026532189526576124), T(0.29656057182850487), T(1.7848265399172913), T(5.463784911164114),
               T(6.657904643501103)) /
           polynomial(
               r, T(2.0442631033899397e-15), T(1.421511758316446e-07), T(1.8463183175100548e-05),
               T(0.0007868691311456133), T(0.014875361290850615), T(0.1369298809227358), T(0.599832206555888), T(1));
}

// ±infinity at 0 and 1, NaN outside.
template <typename T> inline T ndtri(T p) {
    T q = p - T(0.5);
    T share = q < T(0) ? p : T(1) - p;
    T r = sqrt(-log(share));
    T tail = r <= T(5) ? ndtri_near(r - T(1.6)) : ndtri_far(at_most(r, T(28)) - T(5));
    T magnitude = share == T(0) ? T(INFINITY) : tail;
    return fabs(q) <= T(0.425) ? ndtri_middle(q) : q < T(0) ? -magnitude : magnitude;
}

// ln x - ln(1 - x). Near 1/2, where that cancels, 2·artanh(2x - 1), whose argument is exact. GCC compiles the selection
// to branches if its sides are not functions.
template <typename T> inline T logit_near(T x) { return T(2) * atanh(T(2) * x - T(1)); }
template <typename T> inline T logit_far(T x) { return log(x) - log1p(-x); }
template <typename T> inline T logit(T x) { return fabs(x - T(0.5)) < T(0.25) ? logit_near(x) : logit_far(x); }

// ln(e^a + e^b), computed so that no exponential overflows.
template <typename T> inline T logaddexp(T a, T b) {
    T larger = a > b || is_nan(a) ? a : b;
    T distance = a == b ? T(0) : fabs(a - b);  // infinity minus infinity would be NaN
    return larger + log1p(exp(-distance));
}

// log2(2^a + 2^b), computed so that no exponential overflows.
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
