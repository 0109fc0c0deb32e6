// A = Q R by Householder's reflections, with a diagonal of R that is real and at least 0. One threadgroup computes a
// matrix in device memory, in `work`, where columns are contiguous.

#include <metal_stdlib>
using namespace metal;

#include "generated/complex_qr.h"
#include "linalg/complex.h"
#include "linalg/place.h"
#include "linalg/reflections.h"

// A reflection H = I - tau v vᴴ that maps a column to beta e₁. v is 1 in its first row, and the other elements are
// those of the column, divided by `scale` and multiplied by `factor`. beta has the opposite phase of the column's first
// element, so nothing cancels. tau is (|x[0]| + ‖x‖) / ‖x‖, since vᴴ v = 2 ‖x‖ / (|x[0]| + ‖x‖).
struct ComplexReflection {
    float2 beta;
    float tau;
    float scale;
    float2 factor;
};

// Computes the reflection for the rows from k on of a column. Every SIMD-group computes it and gets the same bits.
inline ComplexReflection complex_reflection(device const float2 *column, uint k, uint rows, uint lane) {
    float largest = 0.0f;
    bool is_zero = true;
    for (uint i = k + 1 + lane; i < rows; i += 32) {
        const float2 element = column[i];
        largest = max(largest, max(fabs(element.x), fabs(element.y)));
        is_zero = is_zero && element.x == 0.0f && element.y == 0.0f;
    }
    largest = simd_max(largest);
    const float2 first = column[k];
    if (simd_all(is_zero)) {
        return {first, 0.0f, 1.0f, float2(0.0f)};
    }
    const float size = absolute(first);
    const float scale = max(largest, size);
    float square = 0.0f;
    for (uint i = k + 1 + lane; i < rows; i += 32) {
        const float re = precise::divide(column[i].x, scale);
        const float im = precise::divide(column[i].y, scale);
        square += re * re + im * im;
    }
    const float top = precise::divide(size, scale);
    const float length = precise::sqrt(team_sum(square, 32) + top * top);
    const float sum = top + length;
    const float2 phase = phase_of(first);
    const float2 beta = phase * (-length * scale);
    return {beta, precise::divide(sum, length), scale, conjugate(phase) * precise::divide(1.0f, sum)};
}

// C = H C for columns `begin` to `end` - 1 of a matrix of `rows` rows. v is 1 in row k, and contains its elements below
// that row. A SIMD-group computes a column.
inline void reflect_contiguous(
    device float2 *c, device const float2 *v, float tau, uint k, uint rows, uint begin, uint end, Place place) {
    for (uint j = begin + place.group; j < end; j += place.groups) {
        device float2 *column = c + ulong(j) * rows;
        const float2 first = column[k];
        float2 sum = float2(0.0f);
        for (uint i = k + 1 + place.lane; i < rows; i += 32) {
            sum += multiplied(conjugate(v[i]), column[i]);
        }
        const float2 change = (first + float2(team_sum(sum.x, 32), team_sum(sum.y, 32))) * tau;
        for (uint i = k + 1 + place.lane; i < rows; i += 32) {
            column[i] -= multiplied(v[i], change);
        }
        simdgroup_barrier(mem_flags::mem_device);
        if (place.lane == 0) {
            column[k] = first - change;
        }
    }
}

// a     [[buffer(0)]]  batch × rows × columns
// work  [[buffer(1)]]  batch × (columns + width) × rows, and `steps` more elements per matrix: A, then Q, by columns,
//                      and the reflections' tau
// q     [[buffer(2)]]  batch × rows × width: the first columns of Q
// r     [[buffer(3)]]  batch × (width, or the smaller size of A without Q) × columns
kernel void complex_qr(
    device const float2 *a [[buffer(0)]],
    device float2 *work [[buffer(1)]],
    device float2 *q [[buffer(2)]],
    device float2 *r [[buffer(3)]],
    constant ComplexQr &problem [[buffer(4)]],
    PLACE_ARGUMENTS) {
    const Place place = {matrix, index, threads, group, groups, lane};
    const uint rows = uint(problem.rows);
    const uint columns = uint(problem.columns);
    const uint width = uint(problem.width);
    const uint steps = min(rows, columns);
    const uint inner = width > 0 ? width : steps;
    device const float2 *given = a + ulong(matrix) * rows * columns;
    device float2 *whole = work + ulong(matrix) * ((columns + width) * ulong(rows) + steps);
    device float2 *unitary = whole + ulong(columns) * rows;
    device float2 *taus = unitary + ulong(width) * rows;
    for (uint at = index; at < rows * columns; at += threads) {
        whole[at % columns * rows + at / columns] = given[at];
    }
    for (uint at = index; at < rows * width; at += threads) {
        unitary[at] = float2(at / rows == at % rows ? 1.0f : 0.0f, 0.0f);
    }
    threadgroup_barrier(mem_flags::mem_device);
    for (uint k = 0; k < steps; k += 1) {
        device float2 *column = whole + ulong(k) * rows;
        const ComplexReflection found = complex_reflection(column, k, rows, lane);
        threadgroup_barrier(mem_flags::mem_device);
        for (uint i = k + 1 + index; i < rows && found.tau != 0.0f; i += threads) {
            const float2 element = column[i];
            const float2 ratio =
                float2(precise::divide(element.x, found.scale), precise::divide(element.y, found.scale));
            column[i] = multiplied(ratio, found.factor);
        }
        if (index == 0) {
            column[k] = found.beta;
            taus[k] = float2(found.tau, 0.0f);
        }
        threadgroup_barrier(mem_flags::mem_device);
        if (found.tau != 0.0f) {
            reflect_contiguous(whole, column, found.tau, k, rows, k + 1, columns, place);
        }
        threadgroup_barrier(mem_flags::mem_device);
    }
    for (uint step = 0; step < min(steps, width); step += 1) {
        const uint k = min(steps, width) - 1 - step;
        const float tau = taus[k].x;
        if (tau != 0.0f) {
            reflect_contiguous(unitary, whole + ulong(k) * rows, tau, k, rows, k, width, place);
        }
        threadgroup_barrier(mem_flags::mem_device);
    }
    device float2 *triangle = r + ulong(matrix) * inner * columns;
    for (uint at = index; at < inner * columns; at += threads) {
        const uint i = at / columns;
        const uint j = at % columns;
        float2 element = float2(0.0f);
        if (i < steps && i <= j) {
            const float2 diagonal = whole[ulong(i) * rows + i];
            element = i == j ? float2(absolute(diagonal), 0.0f)
                             : multiplied(conjugate(phase_of(diagonal)), whole[ulong(j) * rows + i]);
        }
        triangle[at] = element;
    }
    device float2 *left = q + ulong(matrix) * rows * width;
    for (uint at = index; at < rows * width; at += threads) {
        const uint j = at % width;
        const float2 phase = j < steps ? phase_of(whole[ulong(j) * rows + j]) : float2(1.0f, 0.0f);
        left[at] = multiplied(unitary[ulong(j) * rows + at / width], phase);
    }
}
