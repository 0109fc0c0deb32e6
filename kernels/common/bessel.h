// The modified Bessel functions of the first kind of orders 0 and 1 for float32. native/cpu/elementwise/bessel.h has
// the same formulas.

#ifndef ORCHARD_COMMON_BESSEL_H
#define ORCHARD_COMMON_BESSEL_H

#include <metal_stdlib>

namespace orchard {

// The power series for |x| ≤ 12, and Hankel's asymptotic series beyond.
template <int order> inline float bessel(float x) {
    float a = metal::fabs(x);
    float value;
    if (a <= 12.0f) {
        float half_a = 0.5f * a;
        float t = half_a * half_a;
        float sum = 1.0f;
        for (int k = 22; k >= 1; k -= 1) {
            sum = metal::fma(sum, t / float(k * (k + order)), 1.0f);
        }
        value = order == 0 ? sum : half_a * sum;
    } else {
        float far = a > 100.0f ? 100.0f : a;  // the result is infinite from here on
        float sum = 1.0f;
        for (int k = 12; k >= 1; k -= 1) {
            int odd = 2 * k - 1;
            sum = metal::fma(sum, float(odd * odd - 4 * order * order) / (8.0f * float(k) * far), 1.0f);
        }
        float root = metal::precise::exp(0.5f * far);  // multiplied twice, since the full exponential overflows earlier
        value = root / metal::precise::sqrt(6.28318531f * far) * sum * root;
    }
    return order == 1 && x < 0.0f ? -value : value;
}

}  // namespace orchard

#endif
