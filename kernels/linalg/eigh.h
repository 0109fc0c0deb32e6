// Jacobi's method for a symmetric matrix in threadgroup memory.
#pragma once

#define MAX_SIMDGROUPS 8

struct Rotation {
    float cosine;
    float sine;
};

// Returns the index of the element (i, j), or (j, i), in the packed triangle.
inline uint packed(uint i, uint j) {
    uint high = max(i, j);
    return high * (high + 1) / 2 + min(i, j);
}

inline float power_of_two(int exponent) { return as_type<float>(uint(127 + exponent) << 23); }

// Returns the two rows of pair k in a step.
inline uint2 pair_of(uint k, uint step, uint count) {
    uint others = count - 1;
    return k == 0 ? uint2(others, step) : uint2((step + k) % others, (step + others - k) % others);
}

// Returns the rotation that makes A[p, q] 0. It is the identity if A[p, q] is negligible relative to its diagonal
// elements, or below `smallest`.
inline Rotation annihilate(threadgroup float *a, uint2 pair, float smallest) {
    uint pp = packed(pair.x, pair.x);
    uint qq = packed(pair.y, pair.y);
    uint pq = packed(pair.x, pair.y);
    float first = a[pp];
    float second = a[qq];
    float both = a[pq];
    float beside = 5.96046448e-08f * precise::sqrt(fabs(first)) * precise::sqrt(fabs(second));  // 2^-24
    a[pq] = 0.0f;
    if (fabs(both) <= max(beside, smallest)) {
        return Rotation{1.0f, 0.0f};
    }
    float gap = second - first;
    float twice = 2.0f * both;
    float longer = max(fabs(gap), fabs(twice));
    float ratio = precise::divide(min(fabs(gap), fabs(twice)), longer);
    float length = longer * precise::sqrt(1.0f + ratio * ratio);
    float tangent = precise::divide(gap < 0.0f ? -twice : twice, fabs(gap) + length);
    a[pp] = first - tangent * both;
    a[qq] = second + tangent * both;
    float cosine = precise::divide(1.0f, precise::sqrt(1.0f + tangent * tangent));
    return Rotation{cosine, tangent * cosine};
}

// Rotates the 2 x 2 block of A at the rows of one pair and the columns of another.
inline void rotate_block(threadgroup float *a, uint2 rows, Rotation down, uint2 columns, Rotation across) {
    if (down.sine == 0.0f && across.sine == 0.0f) {
        return;
    }
    uint at[4] = {
        packed(rows.x, columns.x), packed(rows.x, columns.y), packed(rows.y, columns.x), packed(rows.y, columns.y)};
    float x = down.cosine * a[at[0]] - down.sine * a[at[2]];
    float y = down.cosine * a[at[1]] - down.sine * a[at[3]];
    float z = down.sine * a[at[0]] + down.cosine * a[at[2]];
    float w = down.sine * a[at[1]] + down.cosine * a[at[3]];
    a[at[0]] = across.cosine * x - across.sine * y;
    a[at[1]] = across.sine * x + across.cosine * y;
    a[at[2]] = across.cosine * z - across.sine * w;
    a[at[3]] = across.sine * z + across.cosine * w;
}

// Returns the sign that makes the largest element by magnitude positive, the first of equal ones.
inline float sign_of(threadgroup const float *vector, uint size) {
    float largest = 0.0f;
    for (uint i = 0; i < size; i++) {
        float value = vector[i];
        largest = fabs(value) > fabs(largest) ? value : largest;
    }
    return largest < 0.0f ? -1.0f : 1.0f;
}

// The position of a thread.
struct Place {
    uint thread_index;
    uint threads;
    uint simdgroup;
    uint lane;
};

// Threadgroup memory for a matrix of up to ROWS rows.
struct Held {
    threadgroup float *elements;      // one triangle of A
    threadgroup float *vectors;       // the transpose of V, with rows of ROWS + 1 elements
    threadgroup Rotation *rotations;  // one for each pair
    threadgroup uint2 *pairs;         // the pairs of a step
    threadgroup float *largest;       // one for each SIMD-group
    threadgroup uint *refused;        // one for each SIMD-group; the last element: whether a sweep rotated anything
    threadgroup uint *order;          // the sorted order of the eigenvalues
};

// Applies the rotations of a step to A and V.
template <uint ROWS, bool VECTORS> inline void rotate(uint size, uint count, Place place, Held held) {
    for (uint at = place.thread_index; at < count * (count - 1) / 2; at += place.threads) {
        uint k = at % count;
        uint l = (k + 1 + at / count) % count;
        rotate_block(held.elements, held.pairs[k], held.rotations[k], held.pairs[l], held.rotations[l]);
    }
    if (VECTORS) {
        for (uint at = place.thread_index; at < count * ROWS; at += place.threads) {
            uint k = at / ROWS;
            uint i = at % ROWS;
            Rotation rotation = held.rotations[k];
            if (i < size && rotation.sine != 0.0f) {
                threadgroup float *x = held.vectors + held.pairs[k].x * (ROWS + 1) + i;
                threadgroup float *y = held.vectors + held.pairs[k].y * (ROWS + 1) + i;
                float first = *x;
                float second = *y;
                *x = rotation.cosine * first - rotation.sine * second;
                *y = rotation.sine * first + rotation.cosine * second;
            }
        }
    }
}

// Runs a sweep, which rotates every pair of rows once. It has size - 1 steps, or `size` if that is odd. Returns whether
// any rotation was made.
template <uint ROWS, bool VECTORS> inline bool is_changed_by_sweep(uint size, float smallest, Place place, Held held) {
    uint rows = size + size % 2;
    uint count = rows / 2;
    bool is_rotated = false;
    for (uint step = 0; step + 1 < rows; step++) {
        if (place.thread_index < count) {
            uint2 pair = pair_of(place.thread_index, step, rows);
            Rotation rotation = annihilate(held.elements, pair, smallest);
            held.pairs[place.thread_index] = pair;
            held.rotations[place.thread_index] = rotation;
            is_rotated = is_rotated || rotation.sine != 0.0f;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        rotate<ROWS, VECTORS>(size, count, place, held);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    bool is_any = simd_any(is_rotated);  // only the first SIMD-group has pairs
    if (place.thread_index == 0) {
        held.refused[MAX_SIMDGROUPS] = is_any ? 1 : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    bool is_changed = held.refused[MAX_SIMDGROUPS] == 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return is_changed;
}
