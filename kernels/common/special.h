// float32 functions that Metal Shading Language lacks: the functions of formulas/special.h, which C++ computes in the
// same way, and erfc and hypot, which C++ computes differently. Errors are within 4 units in the last place (erfc: 6).

#ifndef ORCHARD_COMMON_SPECIAL_H
#define ORCHARD_COMMON_SPECIAL_H

#include <metal_stdlib>

#include "common/gated.h"
#include "common/math.h"

namespace orchard {

// A number a ≥ 0 as the sum of an integer n and a remainder from -½ to ½, which is exact. NaN for infinity.
template <typename T> struct Turns {
    T remainder;
    bool is_odd;  // whether n is odd
};
inline Turns<float> turns(float a) {
    float n = rint(a);
    return {a - n, a < 8388608.0f && (int(n) & 1) != 0};
}

inline float log2_of_e(float) { return 1.44269504f; }

// a^2 minus its rounded value
inline float square_error(float a, float square) { return metal::fma(a, a, -square); }

// erfc(a) = 2 e^(-a^2) G(sqrt(2) a) for a >= 0, where G is smooth (common/gated.h). It is 0 from 10.7 on.
inline float erfc(float x) {
    float a = metal::fabs(x);
    a = a > 10.7f ? 10.7f : a;
    float square = a * a;
    float e = exp_of_negative(square, metal::fma(a, a, -square));
    float tail = 2.0f * e * NormalShare::factor(1.41421356f * a);
    return x < 0.0f ? 2.0f - tail : tail;
}

// The larger side times sqrt(1 + q^2), where q is the smaller side divided by the larger one. Infinite if one side is
// infinite, even if the other is NaN.
inline float hypot(float x, float y) {
    float a = metal::fabs(x);
    float b = metal::fabs(y);
    if (a == INFINITY || b == INFINITY) {
        return INFINITY;
    }
    float larger = a > b || is_nan(a) ? a : b;
    float smaller = a > b || is_nan(a) ? b : a;
    if (larger == 0.0f) {
        return smaller;
    }
    float q = smaller / larger;
    return larger * metal::precise::sqrt(metal::fma(q, q, 1.0f));
}

}  // namespace orchard

#include "formulas/special.h"

#endif
