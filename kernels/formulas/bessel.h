// The modified Bessel functions of the first kind of orders 0 and 1: the power series up to `far`, and Hankel's
// asymptotic series beyond. All terms of the power series have the same sign; the omitted terms of Hankel's series are
// below the rounding error. Errors are within 6 units in the last place (scaled: 8). Source: NIST Digital Library of
// Mathematical Functions, 10.25.2 and 10.40.1.

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

// The end of the power series.
template <typename T> inline T bessel_end() { return sizeof(T) == sizeof(float) ? T(12) : T(20); }

// The function for x from 0 to the end of the power series.
template <int order, typename T> inline T bessel_near(T x) {
    T half_x = x * T(0.5);
    T sum = BesselTerms<order, (sizeof(T) == sizeof(float) ? 22 : 36)>::near(half_x * half_x, T(1));
    return order == 0 ? sum : half_x * sum;
}

// √x·e^(-x) times the function, from the end of the power series on.
template <int order, typename T> inline T bessel_far(T x) {
    T sum = BesselTerms<order, (sizeof(T) == sizeof(float) ? 12 : 30)>::far(T(1) / x, T(1));
    return T(0.398942280401432677940) * sum;
}

template <int order, typename T> inline T bessel(T x) {
    const T infinite = sizeof(T) == sizeof(float) ? T(100) : T(730);  // from here on the result is infinite
    const T end = bessel_end<T>();
    T a = fabs(x);
    T far = at_most(a <= end ? end : a, infinite);  // written so that NaN stays NaN
    T root = exp(far * T(0.5));  // multiplied twice, since the full exponential overflows before the function does
    T value = a <= end ? bessel_near<order>(at_most(a, end)) : root / sqrt(far) * bessel_far<order>(far) * root;
    return order == 1 && x < T(0) ? -value : value;
}

// e^(-|x|) times the function, which does not overflow.
template <int order, typename T> inline T scaled_bessel(T x) {
    const T end = bessel_end<T>();
    T a = fabs(x);
    T near = at_most(a, end);
    T far = a <= end ? end : a;
    T value = a <= end ? exp(-near) * bessel_near<order>(near) : bessel_far<order>(far) / sqrt(far);
    return order == 1 && x < T(0) ? -value : value;
}

}  // namespace ORCHARD_FORMULAS

#endif
