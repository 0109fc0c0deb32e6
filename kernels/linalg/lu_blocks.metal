// LU factorization of matrices that do not fit in threadgroup memory, in place, BLOCK columns at a time. For each block
// of columns:
//
//     lu_panel   factors the block's columns, from the diagonal on, into P L U
//     lu_beside  swaps the rows of the other columns, and solves L X = B for the columns to the right
//     lu_below   C -= L X for the blocks below and to the right
//
// Systems are solved by `lu_rows`, which permutes the rows of a right-hand side, and solve_triangular_blocks.

#include <metal_stdlib>
using namespace metal;

#include "generated/lu_rows.h"
#include "linalg/blocks.h"
#include "linalg/lu.h"

// - first: first column of the block
#include "generated/lu_step.h"

// The largest number of SIMD-groups that factor a panel.
#define PANEL_GROUPS 32
// The number of columns per threadgroup of lu_beside.
#define SIDE 64

static inline uint block_columns(constant LuStep &step) {
    return uint(min(long(BLOCK), min(step.rows, step.columns) - step.first));
}

// lu      [[buffer(0)]]  batch × rows × columns
// pivots  [[buffer(1)]]  batch × min(rows, columns): those of the block are written
// info    [[buffer(2)]]  batch: the first pivot so far that is 0, counted from 1; or 0
kernel void lu_panel(
    device float *lu [[buffer(0)]],
    device int *pivots [[buffer(1)]],
    device int *info [[buffer(2)]],
    constant LuStep &step [[buffer(3)]],
    uint matrix [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint group [[simdgroup_index_in_threadgroup]]) {
    threadgroup float top[BLOCK];
    threadgroup uint sizes[PANEL_GROUPS];
    threadgroup uint places[PANEL_GROUPS];
    const uint infinity = 0x7f800000u;
    long columns = step.columns;
    uint below = uint(step.rows - step.first);
    uint width = block_columns(step);
    bool pivot = step.pivot != 0;
    device float *a = lu + (long(matrix) * step.rows + step.first) * columns + step.first;
    uint failed = 0;
    for (uint k = 0; k < width; k++) {
        Pivot found = {0, k};
        for (uint i = k + thread_index; i < below; i += threads) {
            found = larger(found, a[i * columns + k], i);
        }
        found = largest_of_lanes(found);
        if (lane == 0) {
            sizes[group] = found.size;
            places[group] = found.row;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint p = k;
        uint size = 0;
        for (uint other = 0; other < threads / 32; other++) {
            bool is_before = sizes[other] == size && size > 0 && places[other] < p;
            if (sizes[other] > size || is_before) {
                size = sizes[other];
                p = places[other];
            }
        }
        p = pivot && magnitude(a[k * columns + k]) <= infinity ? p : k;
        float diagonal = a[p * columns + k];
        failed = failed == 0 && diagonal == 0.0f ? k + 1 : failed;
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        if (thread_index < width) {
            float pivot_element = a[p * columns + thread_index];
            float other = a[k * columns + thread_index];
            a[p * columns + thread_index] = other;
            a[k * columns + thread_index] = pivot_element;
            top[thread_index] = pivot_element;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        for (uint i = k + 1 + thread_index; i < below; i += threads) {
            device float *row = a + i * columns;
            float factor = diagonal == 0.0f && pivot ? row[k] : precise::divide(row[k], diagonal);
            row[k] = factor;
            for (uint j = k + 1; j < width; j++) {
                row[j] -= factor * top[j];
            }
        }
        if (thread_index == 0) {
            pivots[long(matrix) * min(step.rows, columns) + step.first + k] = int(step.first) + int(p) + 1;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    }
    if (thread_index == 0 && (step.first == 0 || info[matrix] == 0)) {
        info[matrix] = failed == 0 ? 0 : int(step.first) + int(failed);
    }
}

// lu      [[buffer(0)]]  batch × rows × columns
// pivots  [[buffer(1)]]  batch × min(rows, columns)
kernel void lu_beside(
    device float *lu [[buffer(0)]],
    device const int *pivots [[buffer(1)]],
    constant LuStep &step [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 thread_index [[thread_position_in_threadgroup]]) {
    threadgroup float l[BLOCK * BLOCK];
    long columns = step.columns;
    uint width = block_columns(step);
    device float *all = lu + long(group.y) * step.rows * columns;
    device const float *corner = all + step.first * (columns + 1);
    for (uint at = thread_index.x; at < width * width; at += SIDE) {
        l[at] = corner[at / width * columns + at % width];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    long column = long(group.x) * SIDE + thread_index.x;
    column += column >= step.first ? width : 0;
    if (column >= columns) {
        return;
    }
    device const int *swaps = pivots + long(group.y) * min(step.rows, columns) + step.first;
    for (uint k = 0; k < width; k++) {
        long row = step.first + k;
        long other = long(swaps[k]) - 1;
        if (other != row) {
            float element = all[row * columns + column];
            all[row * columns + column] = all[other * columns + column];
            all[other * columns + column] = element;
        }
    }
    if (column < step.first) {
        return;
    }
    float x[BLOCK];
    for (uint i = 0; i < width; i++) {
        float remainder = all[(step.first + i) * columns + column];
        for (uint k = 0; k < i; k++) {
            remainder -= l[i * width + k] * x[k];
        }
        x[i] = remainder;
        all[(step.first + i) * columns + column] = remainder;
    }
}

// lu  [[buffer(0)]]  batch × rows × columns; the block is factored and BLOCK columns wide
kernel void lu_below(
    device float *lu [[buffer(0)]],
    constant LuStep &step [[buffer(1)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]]) {
    threadgroup float sums[TILE_ROWS * TILE_PITCH];
    threadgroup float right[BLOCK * TILE_PITCH];
    long next = step.first + BLOCK;
    long row = next + long(group.y) * TILE_ROWS;
    long column = next + long(group.x) * BLOCK;
    device float *matrix = lu + long(group.z) * step.rows * step.columns;
    Elements all = Elements{matrix, step.columns, 1, step.rows, step.columns};
    multiply_blocks(
        sums, right, all.from(row, step.first), all.from(step.first, column), BLOCK, thread_index, simdgroup_index);
    for (int at = int(thread_index); at < TILE_ROWS * BLOCK; at += TILE_THREADS) {
        long i = row + at / BLOCK;
        long j = column + at % BLOCK;
        if (all.has(i, j)) {
            matrix[i * step.columns + j] -= sums[at / BLOCK * TILE_PITCH + at % BLOCK];
        }
    }
}

// b      [[buffer(0)]]  batch × rows × columns
// order  [[buffer(1)]]  batch × rows
// x      [[buffer(2)]]  batch × rows × columns: row i is row order[i] of B
// grid: one thread per element
kernel void lu_rows(
    device const float *b [[buffer(0)]],
    device const int *order [[buffer(1)]],
    device float *x [[buffer(2)]],
    constant LuRows &problem [[buffer(3)]],
    uint3 at [[thread_position_in_grid]]) {
    long first = long(at.z) * problem.rows;
    x[(first + at.y) * problem.columns + at.x] = b[(first + order[first + at.y]) * problem.columns + at.x];
}

// Permutes the rows as `lu_rows` does, with the identity matrix as B.
kernel void lu_unit_rows(
    device const int *order [[buffer(0)]],
    device float *x [[buffer(1)]],
    constant LuRows &problem [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
    long row = long(at.z) * problem.rows + at.y;
    x[row * problem.columns + at.x] = order[row] == int(at.x) ? 1.0f : 0.0f;
}
