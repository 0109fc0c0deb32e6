// Complex numbers as float2: the real part, then the imaginary part.
#pragma once

inline float2 conjugate(float2 a) { return float2(a.x, -a.y); }

inline float2 multiplied(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// Divides by the larger part first, so that no square overflows. Source: R. L. Smith, "Algorithm 116: Complex
// division", 1962.
inline float2 divided(float2 a, float2 b) {
    if (fabs(b.x) >= fabs(b.y)) {
        const float ratio = b.y == 0.0f ? b.y : precise::divide(b.y, b.x);
        const float divisor = b.x + b.y * ratio;
        return float2(precise::divide(a.x + a.y * ratio, divisor), precise::divide(a.y - a.x * ratio, divisor));
    }
    const float ratio = precise::divide(b.x, b.y);
    const float divisor = b.x * ratio + b.y;
    return float2(precise::divide(a.x * ratio + a.y, divisor), precise::divide(a.y * ratio - a.x, divisor));
}

// |a|, without overflow.
inline float absolute(float2 a) {
    const float larger = max(fabs(a.x), fabs(a.y));
    const float smaller = min(fabs(a.x), fabs(a.y));
    if (smaller == 0.0f) {
        return larger;
    }
    const float ratio = precise::divide(smaller, larger);
    return larger * precise::sqrt(1.0f + ratio * ratio);
}

// a / |a|, or 1 if a is 0.
inline float2 phase_of(float2 a) {
    const float size = absolute(a);
    return size == 0.0f ? float2(1.0f, 0.0f) : float2(precise::divide(a.x, size), precise::divide(a.y, size));
}
