// Floor division and the remainder of floats, by fmod. C++ computes them without branches
// (native/cpu/elementwise/quotients.h).

#ifndef ORCHARD_COMMON_QUOTIENTS_H
#define ORCHARD_COMMON_QUOTIENTS_H

#include "common/bits.h"

namespace orchard {

// The remainder that has the sign of the divisor.
inline float remainder(float a, float b) { return signed_as_divisor(fmod(a, b), b); }

// (a - a mod b) / b, which is an integer except for rounding error; a / b could round up to the next integer.
inline float floor_divide(float a, float b) {
    if (b == 0.0f) {
        return a / b;
    }
    float rest = fmod(a, b);
    float quotient = rint((a - rest) / b);
    // From 2^22 on, the sum of both rounding errors may reach the next integer; this step corrects it. From 2^24 on,
    // float32 has no fractions.
    if (fabs(quotient) >= 4194304.0f && fabs(quotient) < 16777216.0f) {
        quotient += rint((fused(-quotient, b, a) - rest) / b);
    }
    if (signs_differ(rest, b)) {
        quotient -= 1.0f;
    }
    return quotient == 0.0f ? copysign(0.0f, a / b) : quotient;
}

}  // namespace orchard

#endif
