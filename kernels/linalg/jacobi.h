// One-sided Jacobi rotations of the rows of a matrix in threadgroup or device memory. Each pair of rows has a
// SIMD-group, and all pairs are processed in rounds of disjoint pairs. Every function must be called by all lanes of a
// SIMD-group.
#pragma once

#define LANES 32u
// The number of sweeps after which a matrix that does not converge fails. Six to ten are usual.
#define SWEEPS 60u
// The matrix is scaled so that its largest element is about 1. A row whose largest element is below 2^-100 has no
// digits left to rotate by.
#define NEGLIGIBLE 7.88860905e-31f
#define EPSILON 1.1920929e-7f

// Returns the sum over the lanes, in all of them. The order of simd_sum is unspecified; this order is the same in every
// run.
inline float lanes_sum(float x) {
    for (ushort step = 1; step < LANES; step *= 2) {
        x += simd_shuffle_xor(x, step);
    }
    return x;
}

// Returns the power of two that scales x > 0 to [1, 2).
inline float inverse_power(float x) {
    uint exponent = as_type<uint>(x) >> 23;
    return as_type<float>((254 - min(exponent, 253u)) << 23);
}

// A row; each lane accesses every 32nd element. Pointer points to threadgroup or device memory.
template <typename Pointer> struct Row {
    Pointer elements;
    uint length;
    uint lane;
};

template <typename Pointer> inline float largest_of(Row<Pointer> row) {
    float largest = 0.0f;
    for (uint e = row.lane; e < row.length; e += LANES) {
        largest = max(largest, abs(row.elements[e]));
    }
    return simd_max(largest);
}

// Returns Σ x y of two rows, which are multiplied by scales first, so that no product underflows.
template <typename Pointer> inline float product_of(Row<Pointer> x, Row<Pointer> y, float x_scale, float y_scale) {
    float sum = 0.0f;
    for (uint e = x.lane; e < x.length; e += LANES) {
        sum += (x.elements[e] * x_scale) * (y.elements[e] * y_scale);
    }
    return lanes_sum(sum);
}

template <typename Pointer> inline float norm_of(Row<Pointer> row) {
    float largest = largest_of(row);
    if (largest < NEGLIGIBLE) {
        return 0.0f;
    }
    float scale = inverse_power(largest);
    return precise::divide(precise::sqrt(product_of(row, row, scale, scale)), scale);
}

// The rotation that makes two rows orthogonal. The row with the larger norm becomes c larger - s smaller, the other one
// s larger + c smaller, for the sine s and cosine c of an angle. c is computed as 1 - s tan(angle / 2), which preserves
// lengths for small angles: a rounded c would lengthen all rows in every sweep.
struct Rotation {
    float sine;
    float half_tangent;
    bool is_swapped;  // the second row has the larger norm, and becomes the first
    bool is_needed;   // also true for a mere swap: it changes the rows of later pairs
};

template <typename Pointer> inline Rotation rotation_of(Row<Pointer> x, Row<Pointer> y) {
    float x_largest = largest_of(x);
    float y_largest = largest_of(y);
    if (x_largest < NEGLIGIBLE || y_largest < NEGLIGIBLE) {
        bool is_swapped = x_largest < NEGLIGIBLE && y_largest >= NEGLIGIBLE;
        return Rotation{0.0f, 0.0f, is_swapped, is_swapped};
    }
    float x_scale = inverse_power(x_largest);
    float y_scale = inverse_power(y_largest);
    float x_norm = precise::sqrt(product_of(x, x, x_scale, x_scale));
    float y_norm = precise::sqrt(product_of(y, y, y_scale, y_scale));
    float cosine = precise::divide(product_of(x, y, x_scale, y_scale), x_norm * y_norm);
    float x_length = precise::divide(x_norm, x_scale);
    float y_length = precise::divide(y_norm, y_scale);
    bool is_swapped = y_length > x_length;
    float tolerance = EPSILON * max(4.0f, precise::sqrt(float(x.length)));
    if (abs(cosine) <= tolerance) {
        return Rotation{0.0f, 0.0f, is_swapped, is_swapped};
    }
    // tan 2θ = -2 q cosine / (1 - q²), where q ≤ 1 is the ratio of the norms.
    float q = is_swapped ? precise::divide(x_length, y_length) : precise::divide(y_length, x_length);
    float across = 2.0f * q * abs(cosine);
    float along = (1.0f - q) * (1.0f + q);
    float tangent = precise::divide(across, along + precise::sqrt(along * along + across * across));
    float c = precise::divide(1.0f, precise::sqrt(1.0f + tangent * tangent));
    float sine = cosine < 0.0f ? c * tangent : -c * tangent;
    return Rotation{sine, precise::divide(sine, 1.0f + c), is_swapped, true};
}

template <typename Pointer> inline void rotate(Row<Pointer> x, Row<Pointer> y, Rotation rotation) {
    if (!rotation.is_needed) {
        return;
    }
    for (uint e = x.lane; e < x.length; e += LANES) {
        float first = x.elements[e];
        float second = y.elements[e];
        float longer = rotation.is_swapped ? second : first;
        float shorter = rotation.is_swapped ? first : second;
        x.elements[e] = longer - rotation.sine * (shorter + rotation.half_tangent * longer);
        y.elements[e] = shorter + rotation.sine * (longer - rotation.half_tangent * shorter);
    }
}

// Returns the pair number `at` of rows in a round of a round-robin tournament of an even size, with `rounds` = size -
// 1. The last row stays in place, and the others move in a circle.
inline uint2 pair_of(uint at, uint round, uint rounds) {
    uint first = (round + at) % rounds;
    uint second = at == 0 ? rounds : (round + rounds - at) % rounds;
    return uint2(min(first, second), max(first, second));
}

// Householder reflections. Each is I - 2 v vᵀ / (vᵀ v), with v stored in a row from the diagonal on.

// Replaces a row, from element t on, by the v that reflects it onto an axis. The caller needs a barrier before and
// after the call.
template <typename Pointer> inline void make_reflection(Row<Pointer> row, uint t) {
    float squares = 0.0f;
    for (uint e = row.lane; e < row.length; e += LANES) {
        squares += e < t ? 0.0f : row.elements[e] * row.elements[e];
    }
    float norm = precise::sqrt(lanes_sum(squares));
    if (t % LANES == row.lane) {
        row.elements[t] += row.elements[t] < 0.0f ? -norm : norm;
    }
}

// Reflects y, whose elements are `stride` apart. Each lane accesses the same elements of y and v.
template <typename Vector, typename Pointer> inline void reflect(Row<Vector> v, uint t, Pointer y, ulong stride) {
    float squares = 0.0f;
    float product = 0.0f;
    for (uint e = v.lane; e < v.length; e += LANES) {
        if (e >= t) {
            squares += v.elements[e] * v.elements[e];
            product += v.elements[e] * y[e * stride];
        }
    }
    float factor = precise::divide(2.0f * lanes_sum(product), lanes_sum(squares));
    for (uint e = v.lane; e < v.length; e += LANES) {
        if (e >= t) {
            y[e * stride] -= factor * v.elements[e];
        }
    }
}
