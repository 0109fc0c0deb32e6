// Roots of unity, and transforms of a few complex numbers.
#pragma once

#include <metal_stdlib>
using namespace metal;

inline float2 complex_product(float2 a, float2 b) {
    return float2(fma(-a.y, b.y, a.x * b.x), fma(a.y, b.x, a.x * b.y));
}

// Returns e^(-2 pi i k / n) for 0 <= k < n < 2^28. The angle is reduced to an eighth of a turn in integers; there,
// Taylor's polynomials have an error below 3e-10.
inline float2 root_of_unity(uint k, uint n) {
    const uint eighths = 8 * k;
    const uint octant = eighths / n;
    const uint past = eighths - octant * n;
    const uint part = octant % 2 == 0 ? past : n - past;
    const float x = precise::divide(float(part), float(n)) * 0.78539816339744831f;
    const float square = x * x;
    float c = fma(square, -2.7557319e-7f, 2.4801587e-5f);
    c = fma(square, c, -1.3888889e-3f);
    c = fma(square, c, 4.1666667e-2f);
    c = fma(square, c, -0.5f);
    c = fma(square, c, 1.0f);
    float s = fma(square, 2.7557319e-6f, -1.9841270e-4f);
    s = fma(square, s, 8.3333333e-3f);
    s = fma(square, s, -1.6666667e-1f);
    s = fma(square * s, x, x);
    const bool is_swapped = octant == 1 || octant == 2 || octant == 5 || octant == 6;
    const float cosine = is_swapped ? s : c;
    const float sine = is_swapped ? c : s;
    return float2(octant >= 2 && octant < 6 ? -cosine : cosine, octant >= 4 ? sine : -sine);
}

// The product -i x.
inline float2 turned(float2 x) { return float2(x.y, -x.x); }

inline void transform_2(thread float2 *x) {
    const float2 a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
}

inline void transform_3(thread float2 *x) {
    const float2 sum = x[1] + x[2];
    const float2 difference = turned(x[1] - x[2]) * 0.86602540378443865f;
    const float2 middle = x[0] - 0.5f * sum;
    x[0] = x[0] + sum;
    x[1] = middle + difference;
    x[2] = middle - difference;
}

inline void transform_4(thread float2 *x) {
    const float2 a = x[0] + x[2];
    const float2 b = x[0] - x[2];
    const float2 c = x[1] + x[3];
    const float2 d = turned(x[1] - x[3]);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
}

inline void transform_5(thread float2 *x) {
    const float c1 = 0.30901699437494742f;
    const float s1 = 0.95105651629515357f;
    const float c2 = -0.80901699437494742f;
    const float s2 = 0.58778525229247313f;
    const float2 t1 = x[1] + x[4];
    const float2 t2 = x[2] + x[3];
    const float2 d1 = turned(x[1] - x[4]);
    const float2 d2 = turned(x[2] - x[3]);
    const float2 a = x[0] + c1 * t1 + c2 * t2;
    const float2 b = x[0] + c2 * t1 + c1 * t2;
    const float2 p = s1 * d1 + s2 * d2;
    const float2 q = s2 * d1 - s1 * d2;
    x[0] = x[0] + t1 + t2;
    x[1] = a + p;
    x[2] = b + q;
    x[3] = b - q;
    x[4] = a - p;
}

inline void transform_7(thread float2 *x) {
    const float c1 = 0.62348980185873353f;
    const float s1 = 0.78183148246802981f;
    const float c2 = -0.22252093395631440f;
    const float s2 = 0.97492791218182361f;
    const float c3 = -0.90096886790241913f;
    const float s3 = 0.43388373911755812f;
    const float2 t1 = x[1] + x[6];
    const float2 t2 = x[2] + x[5];
    const float2 t3 = x[3] + x[4];
    const float2 d1 = turned(x[1] - x[6]);
    const float2 d2 = turned(x[2] - x[5]);
    const float2 d3 = turned(x[3] - x[4]);
    const float2 a = x[0] + c1 * t1 + c2 * t2 + c3 * t3;
    const float2 b = x[0] + c2 * t1 + c3 * t2 + c1 * t3;
    const float2 c = x[0] + c3 * t1 + c1 * t2 + c2 * t3;
    const float2 p = s1 * d1 + s2 * d2 + s3 * d3;
    const float2 q = s2 * d1 - s3 * d2 - s1 * d3;
    const float2 r = s3 * d1 - s1 * d2 + s2 * d3;
    x[0] = x[0] + t1 + t2 + t3;
    x[1] = a + p;
    x[2] = b + q;
    x[3] = c + r;
    x[4] = c - r;
    x[5] = b - q;
    x[6] = a - p;
}

inline void transform_8(thread float2 *x) {
    const float half_root = 0.70710678118654752f;
    float2 even[4] = {x[0] + x[4], x[1] + x[5], x[2] + x[6], x[3] + x[7]};
    const float2 d1 = x[1] - x[5];
    const float2 d3 = x[3] - x[7];
    float2 odd[4] = {
        x[0] - x[4], float2(d1.x + d1.y, d1.y - d1.x) * half_root, turned(x[2] - x[6]),
        float2(d3.y - d3.x, -d3.x - d3.y) * half_root};
    transform_4(even);
    transform_4(odd);
    for (int k = 0; k < 4; k += 1) {
        x[2 * k] = even[k];
        x[2 * k + 1] = odd[k];
    }
}
