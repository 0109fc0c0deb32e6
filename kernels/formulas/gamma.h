// The logarithm of the gamma function and its derivative.
//
// On 1 … 3 both are computed as the product of a factor that has their zeros and a smooth quotient, which is
// interpolated at Chebyshev points. Arguments from 3 to `far` are reduced to this range by the recurrence, and
// arguments below 1 are raised to it. From `far` on asymptotic series are used, and for negative arguments the
// reflection formulas. Sources: NIST Digital Library of Mathematical Functions, 5.5 (recurrences and reflections) and
// 5.11 (asymptotic series). Errors are within 4 units in the last place of the largest term.

#ifndef ORCHARD_FORMULAS_GAMMA_H
#define ORCHARD_FORMULAS_GAMMA_H

namespace ORCHARD_FORMULAS {

// x reduced to 1 … 3 by subtracting ones, which is exact. `product` is the product of the values in between, and `sum`
// is the sum of their reciprocals times that product.
template <typename T> struct ReducedToThree {
    T x;
    T product;
    T sum;
};

template <typename T, int steps> inline ReducedToThree<T> reduced_to_three(T x) {
    ReducedToThree<T> y = {x, T(1), T(0)};
    for (int step = 0; step < steps; step++) {
        bool is_above = y.x >= T(3);
        T below = y.x - T(1);
        y.sum = is_above ? y.sum * below + y.product : y.sum;
        y.product = is_above ? y.product * below : y.product;
        y.x = is_above ? below : y.x;
    }
    return y;
}

// ln Γ(x)/((x - 1)(x - 2)) for 1 ≤ x ≤ 3, as a function of t = x - 2.
inline float log_gamma_quotient(float t) {
    return polynomial(
        t, 1.8091514e-05f, -3.85804742e-05f, 2.38816065e-05f, -5.28397359e-05f, 0.000191739688f, -0.00042515414f,
        0.000912594493f, -0.00210224232f, 0.00499899592f, -0.0123849437f, 0.0329649895f, -0.100317277f, 0.422784328f);
}

// For x ≥ 0. Below 1 it is computed as ln Γ(x + 1) - ln x.
inline float log_gamma_of_positive(float x) {
    const float far = 8.0f;
    ReducedToThree<float> y = reduced_to_three<float, 5>(x);
    bool is_small = x < 1.0f;
    bool is_far = x >= far;
    float t = is_small ? x - 1.0f : y.x - 2.0f;
    float near = (is_small ? x * t : (y.x - 1.0f) * t) * log_gamma_quotient(t);
    float logarithm = log((is_small | is_far) ? x : y.product);
    float r = 1.0f / x;
    float z = r * r;
    float series = fused(r, polynomial(z, 0.000793650794f, -0.00277777778f, 0.0833333333f), 0.418938533f);
    float large = fused(x - 0.5f, logarithm - 1.0f, series);
    return is_far ? large : is_small ? near - logarithm : near + logarithm;
}

// For x < 0, with a = -x: -ln(|sin πa|/π) - ln Γ(1 + a). It is infinite at integers and at -infinity.
inline float lgamma(float x) {
    float a = fabs(x);
    float r = turns(a).remainder;
    bool is_negative = x < 0.0f;
    float other = log_gamma_of_positive(is_negative ? 1.0f + a : x);
    float reflected = -log(fabs(r) * sine_quotient(r)) - other;
    float special = ((r == 0.0f) | (a == INFINITY)) ? INFINITY : reflected;
    return is_negative ? special : other;
}

// ψ(x)/(x - root) for 1 ≤ x ≤ 3, as a function of t = x - 2. The root is stored as the sum of two numbers.
inline float digamma_quotient(float t) {
    return polynomial(
        t, -0.000110363042f, 0.000220856396f, -5.58361135e-05f, 0.000112410227f, -0.000758196984f, 0.00152395468f,
        -0.00270920573f, 0.00549150351f, -0.0113436282f, 0.0234577022f, -0.0495507047f, 0.10899926f, -0.260738969f,
        0.785307527f);
}
inline float digamma_root(float) { return 1.46163213f; }
inline float digamma_root_rest(float) { return 1.24381499e-08f; }

// 1/12 - 1/(120·x²) + 1/(252·x⁴) - …, as a function of z = 1/x².
inline float digamma_series(float z) { return polynomial(z, 0.00396825397f, -0.00833333333f, 0.0833333333f); }

// For x ≥ 0. Below 1 it is computed as ψ(x + 1) - 1/x.
template <typename T> inline T digamma_of_positive(T x) {
    const bool is_float = sizeof(T) == sizeof(float);
    const T far = is_float ? T(8) : T(16);
    ReducedToThree<T> y = reduced_to_three<T, (is_float ? 5 : 13)>(x);
    bool is_small = x < T(1);
    T t = is_small ? x - T(1) : y.x - T(2);
    T from_high = is_small ? x - (digamma_root(x) - T(1)) : y.x - digamma_root(x);
    T from_root = from_high - digamma_root_rest(x);
    T steps = (is_small ? T(-1) : y.sum) / (is_small ? x : y.product);
    T near = from_root * digamma_quotient(t) + steps;
    T r = T(1) / x;
    T large = log(x) - r * (T(0.5) + r * digamma_series(r * r));
    return x >= far ? large : near;
}

// π·cot(πr) = (1 - 4r²)·C(r²)/r, where C is interpolated at Chebyshev points.
inline float pi_cotangent(float r) {
    float c =
        polynomial(r * r, 1.75992048f, 0.220113218f, 0.749854326f, 0.661266685f, 0.676204801f, 0.710126758f, 1.0f);
    return fused(-2.0f, r, 1.0f) * fused(2.0f, r, 1.0f) * c / r;
}

// For x < 0, with a = -x: ψ(1 + a) + π·cot(πa). NaN at integers and at -infinity.
template <typename T> inline T digamma(T x) {
    T a = fabs(x);
    T r = turns(a).remainder;
    bool is_negative = x < T(0);
    T other = digamma_of_positive(is_negative ? T(1) + a : x);
    T reflected = other + pi_cotangent(r);
    T special = r == T(0) ? T(NAN) : reflected;
    return is_negative ? special : other;
}

}  // namespace ORCHARD_FORMULAS

#endif
