// The Cholesky factor L of A = L Lᵀ for matrices that do not fit in threadgroup memory, BLOCK columns at a time. For
// each block of columns:
//
//     cholesky_update   C = A - L Lᵀ over the known columns of L, for the block's columns from its diagonal on
//     cholesky_panel    D = L Lᵀ for the diagonal block, and L = C L⁻ᵀ below it
//
// and at the end `cholesky_clear`. Every threadgroup of a panel factors D itself. D is read from a separate buffer,
// since one of the threadgroups overwrites the factor.

#include <metal_stdlib>
using namespace metal;

#include "linalg/blocks.h"
#include "linalg/cholesky.h"

// - first: first column of the block
// - upper: 1: column-major; 0: row-major
#include "generated/cholesky_step.h"

static inline Elements matrix_elements(device const float *all, constant CholeskyStep &step, uint matrix) {
    long size = step.size;
    bool is_turned = step.upper != 0;
    return Elements{all + long(matrix) * size * size, is_turned ? 1 : size, is_turned ? size : 1, size, size};
}

// a         [[buffer(0)]]  batch × size × size; one triangle is read
// factor    [[buffer(1)]]  batch × size × size; the columns before the block are read, those of the block are written
// diagonal  [[buffer(2)]]  batch × BLOCK × BLOCK: the diagonal block, padded with the identity matrix; 0 if the matrix
//                          was refused
// info      [[buffer(3)]]  batch: the result of the previous blocks
kernel void cholesky_update(
    device const float *a [[buffer(0)]],
    device float *factor [[buffer(1)]],
    device float *diagonal [[buffer(2)]],
    device const int *info [[buffer(3)]],
    constant CholeskyStep &step [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]]) {
    threadgroup float sums[TILE_ROWS * TILE_PITCH];
    threadgroup float right[BLOCK * TILE_PITCH];
    uint matrix = group.y;
    long row = step.first + long(group.x) * TILE_ROWS;
    bool is_refused = step.first > 0 && info[matrix] != 0;
    Elements from = matrix_elements(a, step, matrix).from(row, step.first);
    Elements known = matrix_elements(factor, step, matrix);
    if (!is_refused) {
        multiply_blocks(
            sums, right, known.from(row, 0), known.from(step.first, 0).transposed(), step.first, thread_index,
            simdgroup_index);
    }
    device float *to = factor + (from.data - a);
    device float *block = diagonal + long(matrix) * BLOCK * BLOCK;
    bool is_turned = step.upper != 0;
    for (int at = int(thread_index); at < TILE_ROWS * BLOCK; at += TILE_THREADS) {
        int i = is_turned ? at % TILE_ROWS : at / BLOCK;
        int j = is_turned ? at / TILE_ROWS : at % BLOCK;
        bool is_diagonal = group.x == 0 && i < BLOCK;
        if (is_diagonal && j > i) {
            continue;
        }
        float value = is_diagonal && i == j ? 1.0f : 0.0f;
        if (is_refused) {
            value = 0.0f;
        } else if (from.has(i, j)) {
            value = from.data[i * from.row + j * from.column] - sums[i * TILE_PITCH + j];
        }
        if (is_diagonal) {
            block[i * BLOCK + j] = value;
        } else if (from.has(i, j)) {
            to[i * from.row + j * from.column] = value;
        }
    }
}

// diagonal  [[buffer(0)]]  as written by cholesky_update
// factor    [[buffer(1)]]  batch × size × size: the rows below the block are replaced by those of the factor; elements
//                          above the diagonal do not change
// info      [[buffer(2)]]  batch: the order of the first leading minor that is not positive, or 0
// The first threadgroup writes the diagonal block; each of the others computes TILE_ROWS rows below it.
kernel void cholesky_panel(
    device const float *diagonal [[buffer(0)]],
    device float *factor [[buffer(1)]],
    device int *info [[buffer(2)]],
    constant CholeskyStep &step [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float l[BLOCK * TILE_PITCH];
    threadgroup float rows[TILE_ROWS * TILE_PITCH];
    threadgroup uint failed;
    uint matrix = group.y;
    device const float *block = diagonal + long(matrix) * BLOCK * BLOCK;
    for (uint at = thread_index; at < BLOCK * BLOCK; at += TILE_ROWS) {
        uint i = at / BLOCK;
        uint j = at % BLOCK;
        l[i * TILE_PITCH + j] = j <= i ? block[at] : 0.0f;
    }
    if (thread_index == 0) {
        failed = 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    factorize<TILE_PITCH>(l, &failed, thread_index, BLOCK);
    Elements all = matrix_elements(factor, step, matrix);
    bool is_turned = step.upper != 0;
    if (group.x == 0) {
        if (thread_index == 0 && (step.first == 0 || info[matrix] == 0)) {
            info[matrix] = failed == 0 ? 0 : int(step.first) + int(failed);
        }
        Elements corner = all.from(step.first, step.first);
        device float *to = factor + (corner.data - factor);
        for (uint at = thread_index; at < BLOCK * BLOCK; at += TILE_ROWS) {
            uint i = is_turned ? at % BLOCK : at / BLOCK;
            uint j = is_turned ? at / BLOCK : at % BLOCK;
            if (j <= i && corner.has(i, j)) {
                to[long(i) * corner.row + long(j) * corner.column] = l[i * TILE_PITCH + j];
            }
        }
        return;
    }
    if (failed != 0) {
        return;  // these rows are set to 0 later
    }
    Elements below = all.from(step.first + BLOCK + long(group.x - 1) * TILE_ROWS, step.first);
    load_elements<TILE_ROWS>(rows, below, thread_index, TILE_ROWS);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float *row = rows + thread_index * TILE_PITCH;
    for (uint j = 0; j < BLOCK; j++) {
        float remainder = row[j];
        for (uint k = 0; k < j; k++) {
            remainder -= row[k] * l[j * TILE_PITCH + k];
        }
        row[j] = precise::divide(remainder, l[j * TILE_PITCH + j]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device float *to = factor + (below.data - factor);
    for (uint at = thread_index; at < TILE_ROWS * BLOCK; at += TILE_ROWS) {
        uint i = is_turned ? at % TILE_ROWS : at / BLOCK;
        uint j = is_turned ? at / TILE_ROWS : at % BLOCK;
        if (below.has(i, j)) {
            to[long(i) * below.row + long(j) * below.column] = rows[i * TILE_PITCH + j];
        }
    }
}

// Zeros the elements above the diagonal, and the rows from the first minor that is not positive. One thread per
// element.
//
// info    [[buffer(0)]]  batch
// factor  [[buffer(1)]]  batch × size × size
kernel void cholesky_clear(
    device const int *info [[buffer(0)]],
    device float *factor [[buffer(1)]],
    constant CholeskyStep &step [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
    long row = step.upper != 0 ? at.x : at.y;
    long column = step.upper != 0 ? at.y : at.x;
    int failed = info[at.z];
    if (column > row || (failed != 0 && row >= failed - 1)) {
        factor[(long(at.z) * step.size + at.y) * step.size + at.x] = 0.0f;
    }
}
