// Singular values of matrices that do not fit in threadgroup memory. The taller one of A and Aᵀ, with its columns in
// descending order of their largest elements, is factored into Q R by blocked reflections. Then the rows of R are
// rotated until they are orthogonal, Rᵀ = U Σ Vᵀ. The order makes R's rows decrease in size, which helps the rotations
// to converge:
//
//   A  P = Q R:   A = (Q V) Σ (P U)ᵀ
//   Aᵀ P = Q R:   A = (P U) Σ (Q V)ᵀ
//
// Source: Z. Drmač and K. Veselić, "New fast and accurate Jacobi SVD algorithm", 2008, part I.

#include <metal_stdlib>
using namespace metal;

#include "linalg/svd.h"

// - width: columns of the matrix to which Q is applied
// - is_tall: whether A has more rows than columns (1 or 0)
#include "generated/svd_tall.h"

// - rows: rows of a matrix with vectors as columns
// - first: the first column whose sign is fixed
// - partners: rows of the other side whose sign changes too, each with `length` elements
// - all: all rows of the other side
#include "generated/svd_signs.h"

#define MOST_GROUPS 16
#define MOST_COLUMNS (MOST_GROUPS * LANES)
#define GROUPS 8

// Computes the largest absolute value in each column of the taller one of A and Aᵀ, as bits.
inline void measure(
    device const float *a,
    uint large,
    uint small,
    bool is_tall,
    threadgroup uint *parts,
    threadgroup uint *largest,
    Place place) {
    uint slices = is_tall ? max(1u, place.threads / max(1u, small)) : 1;
    if (is_tall) {
        uint most = 0;
        for (uint i = place.index / small; i < large && place.index < slices * small; i += slices) {
            most = max(most, as_type<uint>(a[ulong(i) * small + place.index % small]) & 0x7fffffffu);
        }
        parts[place.index] = most;
    } else {
        for (uint j = place.group; j < small; j += place.groups) {
            uint most = 0;
            for (uint i = place.lane; i < large; i += LANES) {
                most = max(most, as_type<uint>(a[ulong(j) * large + i]) & 0x7fffffffu);
            }
            most = simd_max(most);
            if (place.lane == 0) {
                parts[j] = most;
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = place.index; j < small; j += place.threads) {
        uint most = 0;
        for (uint slice = 0; slice < slices; slice++) {
            most = max(most, parts[slice * small + j]);
        }
        largest[j] = most;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// a          [[buffer(0)]]  batch × rows × columns
// to         [[buffer(1)]]  batch × large × small: A P or Aᵀ P divided by a power of two
// exponents  [[buffer(2)]]  batch: the exponent of that power; 0 if an element is not finite
// places     [[buffer(3)]]  batch × small: the original index of each column of A P
[[kernel, max_total_threads_per_threadgroup(MOST_COLUMNS)]] void svd_take(
    device const float *a [[buffer(0)]],
    device float *to [[buffer(1)]],
    device int *exponents [[buffer(2)]],
    device int *places [[buffer(3)]],
    constant SvdTall &problem [[buffer(4)]],
    PLACE_ARGUMENTS) {
    threadgroup uint parts[MOST_COLUMNS];
    threadgroup uint largest[MOST_COLUMNS];
    uint small = uint(problem.small);
    uint large = uint(problem.large);
    bool is_tall = problem.is_tall != 0;
    device const float *from = a + ulong(matrix) * small * large;
    measure(from, large, small, is_tall, parts, largest, Place{matrix, index, threads, group, groups, lane});
    for (uint j = index; j < small; j += threads) {
        uint rank = 0;
        for (uint other = 0; other < small; other++) {
            rank += largest[other] > largest[j] || (largest[other] == largest[j] && other < j) ? 1 : 0;
        }
        parts[j] = rank;
        places[ulong(matrix) * small + j] = int(rank);
    }
    uint most = 0;
    for (uint j = 0; j < small; j++) {
        most = max(most, largest[j]);
    }
    int exponent = most >= 0x7f800000u ? 0 : int(most >> 23) - 127;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device float *sorted = to + ulong(matrix) * small * large;
    for (uint at = index; at < small * large; at += threads) {
        uint i = is_tall ? at / small : at % large;
        uint j = is_tall ? at % small : at / large;
        sorted[ulong(i) * small + parts[j]] = scaled(from[at], -exponent);
    }
    if (index == 0) {
        exponents[matrix] = exponent;
    }
}

// factors  [[buffer(0)]]  batch × large × small: R in the upper triangle
// lower    [[buffer(1)]]  batch × small × small: Rᵀ
kernel void svd_triangle(
    device const float *factors [[buffer(0)]],
    device float *lower [[buffer(1)]],
    constant SvdTall &problem [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
    ulong small = ulong(problem.small);
    lower[(at.z * small + at.x) * small + at.y] =
        at.x < at.y ? 0.0f : factors[(at.z * ulong(problem.large) + at.y) * small + at.x];
}

// vh  [[buffer(0)]]  batch × small × small: Vᵀ of Rᵀ
// c   [[buffer(1)]]  batch × large × width: V, continued by the identity matrix
kernel void svd_embed(
    device const float *vh [[buffer(0)]],
    device float *c [[buffer(1)]],
    constant SvdTall &problem [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
    ulong small = ulong(problem.small);
    bool is_inside = at.x < small && at.y < small;
    float unit = at.x == at.y ? 1.0f : 0.0f;
    c[(at.z * ulong(problem.large) + at.y) * ulong(problem.width) + at.x] =
        is_inside ? vh[(at.z * small + at.x) * small + at.y] : unit;
}

// u       [[buffer(0)]]  batch × small × small: U of Rᵀ
// to      [[buffer(1)]]  batch × small × small: P U, or its transpose if A is tall
// places  [[buffer(2)]]  as above
kernel void svd_place(
    device const float *u [[buffer(0)]],
    device float *to [[buffer(1)]],
    device const int *places [[buffer(2)]],
    constant SvdTall &problem [[buffer(3)]],
    uint3 at [[thread_position_in_grid]]) {
    ulong small = ulong(problem.small);
    uint row = problem.is_tall != 0 ? at.x : at.y;
    uint column = problem.is_tall != 0 ? at.y : at.x;
    to[(at.z * small + at.y) * small + at.x] = u[(at.z * small + ulong(places[at.z * small + row])) * small + column];
}

// c         [[buffer(0)]]  batch × rows × columns
// partners  [[buffer(1)]]  batch × all × length
// grid: threadgroups (columns / 32, batch); a lane reads one column, a SIMD-group every GROUPS-th row
[[kernel, max_total_threads_per_threadgroup(GROUPS *LANES)]] void svd_turn_signs(
    device float *c [[buffer(0)]],
    device float *partners [[buffer(1)]],
    constant SvdSigns &problem [[buffer(2)]],
    uint2 position [[threadgroup_position_in_grid]],
    uint group [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float elements[GROUPS * LANES];
    threadgroup uint places[GROUPS * LANES];
    uint rows = uint(problem.rows);
    ulong columns = ulong(problem.columns);
    uint column = uint(problem.first) + position.x * LANES + lane;
    bool is_inside = column < columns;
    device float *vector = c + position.y * rows * columns + column;
    float largest = 0.0f;
    uint place = rows;
    for (uint i = group; i < rows && is_inside; i += GROUPS) {
        float element = vector[i * columns];
        if (abs(element) > abs(largest)) {
            largest = element;
            place = i;
        }
    }
    elements[group * LANES + lane] = largest;
    places[group * LANES + lane] = place;
    threadgroup_barrier(ROWS);
    for (uint other = 0; other < GROUPS; other++) {
        float element = elements[other * LANES + lane];
        uint found = places[other * LANES + lane];
        if (abs(element) > abs(largest) || (abs(element) == abs(largest) && found < place)) {
            largest = element;
            place = found;
        }
    }
    bool is_turned = is_inside && largest < 0.0f;
    for (uint i = group; i < rows && is_turned; i += GROUPS) {
        vector[i * columns] = -vector[i * columns];
    }
    device float *partner = partners + (position.y * ulong(problem.all) + column) * ulong(problem.length);
    bool has_partner = is_turned && column < uint(problem.partners);
    for (uint e = group; e < uint(problem.length) && has_partner; e += GROUPS) {
        partner[e] = -partner[e];
    }
}

// c   [[buffer(0)]]  batch × large × width
// vh  [[buffer(1)]]  batch × width × large
kernel void svd_transpose(
    device const float *c [[buffer(0)]],
    device float *vh [[buffer(1)]],
    constant SvdTall &problem [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
    vh[(at.z * ulong(problem.width) + at.y) * ulong(problem.large) + at.x] =
        c[(at.z * ulong(problem.large) + at.x) * ulong(problem.width) + at.y];
}

// s          [[buffer(0)]]  batch × small
// exponents  [[buffer(1)]]  batch
kernel void svd_scale(
    device float *s [[buffer(0)]],
    device const int *exponents [[buffer(1)]],
    constant SvdTall &problem [[buffer(2)]],
    uint2 at [[thread_position_in_grid]]) {
    s[at.y * ulong(problem.small) + at.x] = scaled(s[at.y * ulong(problem.small) + at.x], exponents[at.y]);
}
