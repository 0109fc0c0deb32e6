// Rotations of pairs for rotary position embeddings.
//
// An angle is a 64-bit phase in units of 2^-64 cycles: the pair's phase per position, times the position, modulo 2^64.
// Whole cycles vanish exactly, so angles are as accurate for large positions as for small ones.

#ifndef ORCHARD_POSITION_ROTATION_H
#define ORCHARD_POSITION_ROTATION_H

// Returns the cosine and the sine of an angle. The angle is split into the nearest quarter of a cycle and a remainder
// of at most pi / 4, for which polynomials are evaluated: Chebyshev interpolants with coefficients rounded to float32.
inline float2 direction(ulong phase) {
    uint upper = uint(phase >> 32);
    uint quadrant = (upper + (1u << 29)) >> 30;
    float r = float(int(upper - (quadrant << 30))) * 1.46291807927e-9f;  // 2 pi / 2^32
    float s = r * r;
    float sine = fma(fma(fma(-0.000195878907f, s, 0.00833274797f), s, -0.166666642f) * s, r, r);
    float cosine = fma(fma(fma(0.0000245479423f, s, -0.00138883025f), s, 0.0416666642f) * s, s, fma(s, -0.5f, 1.0f));
    float2 rotated = (quadrant & 1) != 0 ? float2(-sine, cosine) : float2(cosine, sine);
    return (quadrant & 2) != 0 ? -rotated : rotated;
}

// Rotates a pair (a, b): (a cos f - b sin f, a sin f + b cos f). The rotation is (cos f, sin f), scaled.
inline float2 rotated(float2 pair, float2 rotation) {
    return float2(pair.x * rotation.x - pair.y * rotation.y, pair.x * rotation.y + pair.y * rotation.x);
}

#endif
