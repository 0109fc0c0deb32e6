// Factorizations of complex matrices, and solutions of triangular systems. Matrices are row-major and contiguous. One
// threadgroup computes a matrix in device memory, so matrices may have any size.

#include <metal_stdlib>
using namespace metal;

#include "generated/complex_cholesky.h"
#include "generated/complex_lu.h"
#include "generated/complex_triangular.h"
#include "linalg/complex.h"
#include "linalg/lu.h"
#include "linalg/place.h"

// Columns of B per threadgroup.
#define COLUMNS 32

// The Cholesky factor L of A = L Lᴴ, column by column: divides column k by the root of its diagonal, then subtracts
// L[i, k] conj(L[j, k]) from the elements A[i, j] with k < j <= i. Only the real parts of the diagonal are read.
//
// a     [[buffer(0)]]  batch × rows × rows; the lower triangle is read
// l     [[buffer(1)]]  batch × rows × rows
// info  [[buffer(2)]]  batch: the order of the first leading minor that is not positive, from which on the rows are 0;
//                      or 0
kernel void complex_cholesky(
    device const float2 *a [[buffer(0)]],
    device float2 *l [[buffer(1)]],
    device int *info [[buffer(2)]],
    constant ComplexCholesky &problem [[buffer(3)]],
    PLACE_ARGUMENTS) {
    const uint size = uint(problem.rows);
    const ulong first = ulong(matrix) * size * size;
    device float2 *factor = l + first;
    for (uint at = index; at < size * size; at += threads) {
        const uint i = at / size;
        const uint j = at % size;
        factor[at] = j <= i ? a[first + at] : float2(0.0f);
    }
    threadgroup_barrier(mem_flags::mem_device);
    uint failed = 0;
    for (uint k = 0; k < size && failed == 0; k += 1) {
        const float pivot = factor[k * size + k].x;
        if (!(pivot > 0.0f)) {
            failed = k + 1;
            break;
        }
        const float root = precise::sqrt(pivot);
        threadgroup_barrier(mem_flags::mem_device);
        for (uint i = k + index; i < size; i += threads) {
            const float2 element = factor[i * size + k];
            factor[i * size + k] = i == k ? float2(root, 0.0f)
                                          : float2(precise::divide(element.x, root), precise::divide(element.y, root));
        }
        threadgroup_barrier(mem_flags::mem_device);
        for (uint i = k + 1 + group; i < size; i += groups) {
            const float2 left = factor[i * size + k];
            for (uint j = k + 1 + lane; j <= i; j += 32) {
                factor[i * size + j] -= multiplied(left, conjugate(factor[j * size + k]));
            }
        }
        threadgroup_barrier(mem_flags::mem_device);
    }
    threadgroup_barrier(mem_flags::mem_device);
    for (uint at = (failed == 0 ? size : failed - 1) * size + index; at < size * size; at += threads) {
        factor[at] = float2(0.0f);
    }
    if (index == 0) {
        info[matrix] = int(failed);
    }
}

// Returns the row from k on whose element in column k has the largest |re| + |im|, as in LAPACK's icamax: the first of
// equal ones, and NaN only if it is in row k. Every SIMD-group computes it.
inline uint pivot_row(device const float2 *a, uint k, uint rows, uint columns, uint lane) {
    Pivot pivot = {0, k};
    for (uint i = k + lane; i < rows; i += 32) {
        const float2 element = a[i * columns + k];
        pivot = larger(pivot, fabs(element.x) + fabs(element.y), i);
    }
    pivot = largest_of_lanes(pivot);
    const float2 first = a[k * columns + k];
    const bool is_first_nan = magnitude(fabs(first.x) + fabs(first.y)) > 0x7f800000u;
    return is_first_nan || pivot.size == 0 ? k : pivot.row;
}

// L and U of A = P L U in one matrix.
//
// a       [[buffer(0)]]  batch × rows × columns
// lu      [[buffer(1)]]  batch × rows × columns
// pivots  [[buffer(2)]]  batch × min(rows, columns): row k was exchanged with row pivots[k], counted from 1
// info    [[buffer(3)]]  batch: the first pivot that is 0, counted from 1; or 0
kernel void complex_lu(
    device const float2 *a [[buffer(0)]],
    device float2 *lu [[buffer(1)]],
    device int *pivots [[buffer(2)]],
    device int *info [[buffer(3)]],
    constant ComplexLu &problem [[buffer(4)]],
    PLACE_ARGUMENTS) {
    const uint rows = uint(problem.rows);
    const uint columns = uint(problem.columns);
    const uint steps = min(rows, columns);
    const ulong first = ulong(matrix) * rows * columns;
    device float2 *factors = lu + first;
    for (uint at = index; at < rows * columns; at += threads) {
        factors[at] = a[first + at];
    }
    threadgroup_barrier(mem_flags::mem_device);
    uint failed = 0;
    for (uint k = 0; k < steps; k += 1) {
        const uint p = problem.pivot != 0 ? pivot_row(factors, k, rows, columns, lane) : k;
        const float2 diagonal = factors[p * columns + k];
        const float2 top = factors[k * columns + k];
        const bool is_zero = diagonal.x == 0.0f && diagonal.y == 0.0f;
        failed = failed == 0 && is_zero ? k + 1 : failed;
        if (index == 0) {
            pivots[ulong(matrix) * steps + k] = int(p + 1);
        }
        if (is_zero && problem.pivot != 0) {
            continue;  // the column is 0
        }
        threadgroup_barrier(mem_flags::mem_device);
        for (uint j = index; j < columns; j += threads) {
            if (j != k && p != k) {
                const float2 other = factors[p * columns + j];
                factors[p * columns + j] = factors[k * columns + j];
                factors[k * columns + j] = other;
            }
        }
        for (uint i = k + index; i < rows; i += threads) {
            const float2 value = i == p ? top : factors[i * columns + k];
            factors[i * columns + k] = i == k ? diagonal : divided(value, diagonal);
        }
        threadgroup_barrier(mem_flags::mem_device);
        for (uint i = k + 1 + group; i < rows; i += groups) {
            const float2 factor = factors[i * columns + k];
            for (uint j = k + 1 + lane; j < columns; j += 32) {
                factors[i * columns + j] -= multiplied(factor, factors[k * columns + j]);
            }
        }
        threadgroup_barrier(mem_flags::mem_device);
    }
    if (index == 0) {
        info[matrix] = int(failed);
    }
}

// X of A X = B for a triangle of A. A threadgroup computes COLUMNS columns, and subtracts each row of X from the
// remaining rows as soon as it is known.
//
// a  [[buffer(0)]]  batch × rows × rows; one triangle is read
// b  [[buffer(1)]]  batch × rows × columns
// x  [[buffer(2)]]  batch × rows × columns
// Threadgroups have a multiple of COLUMNS threads.
kernel void complex_triangular(
    device const float2 *a [[buffer(0)]],
    device const float2 *b [[buffer(1)]],
    device float2 *x [[buffer(2)]],
    constant ComplexTriangular &problem [[buffer(3)]],
    uint2 team [[threadgroup_position_in_grid]],
    uint2 thread_in_team [[thread_position_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]]) {
    const uint size = uint(problem.rows);
    const uint columns = uint(problem.columns);
    const uint column = team.x * COLUMNS + thread_in_team.x % COLUMNS;
    const uint first = thread_in_team.x / COLUMNS;
    const uint together = threads.x / COLUMNS;
    const bool is_inside = column < columns;
    device const float2 *factor = a + ulong(team.y) * size * size;
    device const float2 *right = b + ulong(team.y) * size * columns + column;
    device float2 *solution = x + ulong(team.y) * size * columns + column;
    for (uint i = first; i < size && is_inside; i += together) {
        solution[i * columns] = right[i * columns];
    }
    threadgroup_barrier(mem_flags::mem_device);
    for (uint step = 0; step < size; step += 1) {
        const uint k = problem.upper != 0 ? size - 1 - step : step;
        float2 known = float2(0.0f);
        if (is_inside) {
            known = solution[k * columns];
            known = problem.unit_diagonal != 0 ? known : divided(known, factor[k * size + k]);
            for (uint other = first; other < size - 1 - step; other += together) {
                const uint i = problem.upper != 0 ? other : k + 1 + other;
                solution[i * columns] -= multiplied(factor[i * size + k], known);
            }
        }
        threadgroup_barrier(mem_flags::mem_device);
        if (is_inside && first == 0) {
            solution[k * columns] = known;
        }
    }
}
