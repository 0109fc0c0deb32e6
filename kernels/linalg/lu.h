// LU factorization of a matrix in threadgroup memory, and solution of its systems. All threads of a threadgroup must
// call these functions with the same arguments, except for their `Worker`.
#pragma once

#include "linalg/matrix.h"

// The number of columns of right-hand sides that are in threadgroup memory at a time.
#define RIGHT 32

// A thread's position within its threadgroup.
struct Worker {
    uint index;
    uint threads;
    uint lane;   // within its SIMD-group
    uint group;  // number of its SIMD-group
    uint groups;
};

// Returns the bits of |x|, which are ordered as |x| is.
inline uint magnitude(float x) { return as_type<uint>(x) & 0x7fffffffu; }

// The largest magnitude found so far in a column, and its row.
struct Pivot {
    uint size;
    uint row;
};

// Returns the larger of a pivot and a row whose element is x. NaN counts as 0.
inline Pivot larger(Pivot pivot, float x, uint row) {
    const uint infinity = 0x7f800000u;
    uint size = magnitude(x);
    size = size > infinity ? 0 : size;
    return size > pivot.size ? Pivot{size, row} : pivot;
}

// Returns the largest pivot among the lanes of a SIMD-group; of equal ones, the one with the lowest row.
inline Pivot largest_of_lanes(Pivot pivot) {
    uint largest = simd_max(pivot.size);
    return {largest, simd_min(pivot.size == largest ? pivot.row : 0xffffffffu)};
}

// Returns the row from k on with the largest absolute value in column k, the first of equal ones. NaN is ignored unless
// it is in row k, as in LAPACK's idamax. Every SIMD-group computes it.
inline uint find_pivot(threadgroup const float *a, uint k, uint rows, uint lane) {
    Pivot pivot = {0, k};
    for (uint i = k + lane; i < rows; i += 32) {
        pivot = larger(pivot, a[i * ROW + k], i);
    }
    pivot = largest_of_lanes(pivot);
    bool is_first_nan = magnitude(a[k * ROW + k]) > 0x7f800000u;
    return is_first_nan || pivot.size == 0 ? k : pivot.row;
}

// Replaces A by L and U of A = P L U; row i of Pᵀ A is row order[i] of A. Writes `pivots`, counted from 1, unless null.
// Returns the first pivot that is 0, counted from 1, or 0.
inline uint eliminate(
    threadgroup float *a,
    threadgroup uint *order,
    device int *pivots,
    uint rows,
    uint columns,
    bool pivot,
    Worker worker) {
    uint failed = 0;
    for (uint i = worker.index; i < rows; i += worker.threads) {
        order[i] = i;
    }
    uint steps = min(rows, columns);
    for (uint k = 0; k < steps; k++) {
        uint p = pivot ? find_pivot(a, k, rows, worker.lane) : k;
        float top = a[k * ROW + k];
        float diagonal = a[p * ROW + k];
        failed = failed == 0 && diagonal == 0.0f ? k + 1 : failed;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint j = worker.index; j < columns; j += worker.threads) {
            if (j != k && p != k) {
                float other = a[p * ROW + j];
                a[p * ROW + j] = a[k * ROW + j];
                a[k * ROW + j] = other;
            }
        }
        for (uint i = k + 1 + worker.index; i < rows; i += worker.threads) {
            float value = i == p ? top : a[i * ROW + k];
            a[i * ROW + k] = diagonal == 0.0f && pivot ? value : precise::divide(value, diagonal);
        }
        if (worker.index == 0) {
            a[k * ROW + k] = diagonal;
            uint other = order[p];
            order[p] = order[k];
            order[k] = other;
            if (pivots) {
                pivots[k] = int(p + 1);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = k + 1 + worker.group; i < rows; i += worker.groups) {
            float factor = a[i * ROW + k];
            for (uint j = k + 1 + worker.lane; j < columns; j += 32) {
                a[i * ROW + j] -= factor * a[k * ROW + j];
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    return failed;
}

// A triangle of a matrix, or of its transpose.
struct Triangle {
    bool upper;
    bool transposed;
    bool unit_diagonal;
};

// Replaces B, which has `width` columns, by X of T X = B. Each row of X is subtracted from the remaining rows as soon
// as it is known.
inline void substitute(
    threadgroup const float *a, threadgroup float *b, uint size, uint width, Triangle triangle, Worker worker) {
    uint column = worker.index % width;
    uint first = worker.index / width;
    uint rows = worker.threads / width;
    for (uint step = 0; step < size; step++) {
        uint k = triangle.upper ? size - 1 - step : step;
        float x = b[k * RIGHT + column];
        if (!triangle.unit_diagonal) {
            x = precise::divide(x, a[k * ROW + k]);
        }
        for (uint other = first; other < size - 1 - step && first < rows; other += rows) {
            uint i = triangle.upper ? other : k + 1 + other;
            b[i * RIGHT + column] -= (triangle.transposed ? a[k * ROW + i] : a[i * ROW + k]) * x;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (first == 0) {
            b[k * RIGHT + column] = x;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
