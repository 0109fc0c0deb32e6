// The modified Bessel functions of the first kind of orders 0 and 1: the power series up to `far`, and Hankel's
// asymptotic series beyond. All terms of the power series have the same sign; the omitted terms of Hankel's series are
// below the rounding error. Errors are within 6 units in the last place. Source: NIST Digital Library of Mathematical
// Functions, 10.25.2 and 10.40.1.

#ifndef ORCHARD_FORMULAS_BESSEL_H
#define ORCHARD_FORMULAS_BESSEL_H

namespace ORCHARD_FORMULAS {

// Both series are summed from the term k down to the first. A recursion of templates makes the factors constants.
template <int order, int k> struct BesselTerms {
    // Σ t^k / (k! (k + order)!)
    template <typename T> static T near(T t, T sum) {
        return BesselTerms<order, k - 1>::near(t, fused(sum, t * T(1.0 / (k * (k + order))), T(1)));
    }
    // Σ of the products of ((2k - 1)^2 - 4 order^2) / (8 k x)
    template <typename T> static T far(T reciprocal, T sum) {
        const T factor = T(1.0 * ((2 * k - 1) * (2 * k - 1) - 4 * order * order) / (8 * k));
        return BesselTerms<order, k - 1>::far(reciprocal, fused(sum, reciprocal * factor, T(1)));
    }
};
template <int order> struct BesselTerms<order, 0> {
    template <typename T> static T near(T, T sum) { return sum; }
    template <typename T> static T far(T, T sum) { return sum; }
};

template <int order, typename T> inline T bessel(T x) {
    const bool is_float = sizeof(T) == sizeof(float);
    const T end = is_float ? T(12) : T(20);         // of the power series
    const T infinite = is_float ? T(100) : T(730);  // from here on the result is infinite
    T a = fabs(x);
    T near = at_most(a, end);
    T half_near = near * T(0.5);
    T far = at_most(a <= end ? end : a, infinite);  // written so that NaN stays NaN
    T small = BesselTerms<order, (is_float ? 22 : 36)>::near(half_near * half_near, T(1));
    T root = exp(far * T(0.5));  // multiplied twice, since the full exponential overflows before the function does
    T large = BesselTerms<order, (is_float ? 12 : 30)>::far(T(1) / far, T(1));
    T inside = order == 0 ? small : half_near * small;
    T value = a <= end ? inside : root / sqrt(T(6.28318530717958647693) * far) * large * root;
    return order == 1 && x < T(0) ? -value : value;
}

}  // namespace ORCHARD_FORMULAS

#endif
