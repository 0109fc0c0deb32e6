// Solves A X = B for triangular matrices A that do not fit in threadgroup memory. A threadgroup computes TILE_ROWS
// columns of X, BLOCK rows at a time:
//
//     X = D⁻¹ (B - A X over the known rows)      with D the diagonal block of A
//
// An upper triangle becomes a lower one when its rows and columns are counted from the end. In threadgroup memory, the
// columns are stored as rows.

#include <metal_stdlib>
using namespace metal;

#include "linalg/blocks.h"
#include "linalg/triangular.h"

// a  [[buffer(0)]]  batch × rows × rows; one triangle is read
// b  [[buffer(1)]]  batch × rows × columns
// x  [[buffer(2)]]  batch × rows × columns
kernel void solve_triangular_blocks(
    device const float *a [[buffer(0)]],
    device const float *b [[buffer(1)]],
    device float *x [[buffer(2)]],
    constant SolveTriangular &problem [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]]) {
    threadgroup float solved[TILE_ROWS * TILE_PITCH];
    threadgroup float right[BLOCK * TILE_PITCH];
    threadgroup float block[BLOCK * TILE_PITCH];
    long size = problem.rows;
    long columns = problem.columns;
    bool is_upper = problem.upper != 0;
    bool is_turned = problem.transposed_b != 0;
    long a_row = problem.transposed_a != 0 ? 1 : size;
    long a_column = problem.transposed_a != 0 ? size : 1;
    long row_stride = is_turned ? 1 : columns;
    long column_stride = is_turned ? size : 1;
    device const float *a_first = a + long(group.y) * size * size + (is_upper ? size * size - 1 : 0);
    long side = long(group.y) * size * columns + (is_upper ? (size - 1) * row_stride : 0);
    Elements factor = Elements{a_first, is_upper ? -a_row : a_row, is_upper ? -a_column : a_column, size, size};
    // Transposed: each row is a column of X.
    Elements solution = Elements{x + side, column_stride, is_upper ? -row_stride : row_stride, columns, size}.from(
        long(group.x) * TILE_ROWS, 0);
    long tile = solution.data - x;
    for (long first = 0; first < size; first += BLOCK) {
        // Both operands are read up to `first` only; `right` is the transpose of A's rows.
        multiply_blocks(
            solved, right, solution, factor.from(first, 0).transposed(), first, thread_index, simdgroup_index);
        Elements known = factor.from(first, first);
        Elements next = solution.from(0, first);
        device const float *sides = b + tile + first * next.column;
        for (int at = int(thread_index); at < TILE_ROWS * BLOCK; at += TILE_THREADS) {
            int i = is_turned ? at / BLOCK : at % TILE_ROWS;
            int j = is_turned ? at % BLOCK : at / TILE_ROWS;
            float value = next.has(i, j) ? sides[i * next.row + j * next.column] : 0.0f;
            solved[i * TILE_PITCH + j] = value - solved[i * TILE_PITCH + j];
        }
        for (int at = int(thread_index); at < BLOCK * BLOCK; at += TILE_THREADS) {
            int i = at / BLOCK;
            int j = at % BLOCK;
            bool is_read = j <= i && known.has(i, j) && !(i == j && problem.unit_diagonal != 0);
            block[i * TILE_PITCH + j] = is_read ? known.data[i * known.row + j * known.column] : 1.0f;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (thread_index < TILE_ROWS) {
            threadgroup float *row = solved + thread_index * TILE_PITCH;
            for (int i = 0; i < BLOCK; i++) {
                float remainder = row[i];
                for (int k = 0; k < i; k++) {
                    remainder -= row[k] * block[i * TILE_PITCH + k];
                }
                row[i] = problem.unit_diagonal != 0 ? remainder : precise::divide(remainder, block[i * TILE_PITCH + i]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        device float *to = x + tile + first * next.column;
        for (int at = int(thread_index); at < TILE_ROWS * BLOCK; at += TILE_THREADS) {
            int i = is_turned ? at / BLOCK : at % TILE_ROWS;
            int j = is_turned ? at % BLOCK : at / TILE_ROWS;
            if (next.has(i, j)) {
                to[i * next.row + j * next.column] = solved[i * TILE_PITCH + j];
            }
        }
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    }
}
