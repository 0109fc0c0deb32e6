// The factor L of A = L Lᵀ, one threadgroup for each matrix and a thread for each row. Column by column:
// L[i, j] = (A[i, j] - Σ L[i, k] L[j, k] over k < j) / L[j, j], and on the diagonal its square root.

#include <metal_stdlib>
using namespace metal;

#include "linalg/matrix.h"

struct Cholesky {
    long batch;
    long size;
    uint upper;  // 1: the upper triangles are read, and become the transposes of the factors; 0: the lower ones
};

// a       [[buffer(0)]]  batch × size × size; one triangle is read
// factor  [[buffer(1)]]  batch × size × size
// info    [[buffer(2)]]  batch: the order of the first leading minor that is not positive, from which on the factor
//                        is 0; or 0
kernel void cholesky(
    device const float *a [[buffer(0)]],
    device float *factor [[buffer(1)]],
    device int *info [[buffer(2)]],
    constant Cholesky &problem [[buffer(3)]],
    uint matrix [[threadgroup_position_in_grid]],
    uint row [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
    threadgroup float l[MAX_SIZE * ROW];
    threadgroup uint failed;
    uint size = uint(problem.size);
    long first = long(matrix) * size * size;
    for (uint at = row; at < size * size; at += threads) {
        uint i = at / size;
        uint j = at % size;
        if (problem.upper != 0) {
            l[j * ROW + i] = i <= j ? a[first + at] : 0.0f;
        } else {
            l[i * ROW + j] = j <= i ? a[first + at] : 0.0f;
        }
    }
    if (row == 0) {
        failed = 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < size; j++) {
        float rest = 0.0f;
        if (row >= j && row < size) {
            rest = l[row * ROW + j];
            for (uint k = 0; k < j; k++) {
                rest -= l[row * ROW + k] * l[j * ROW + k];
            }
        }
        if (row == j) {
            if (rest > 0.0f) {
                l[j * ROW + j] = precise::sqrt(rest);
            } else {
                failed = j + 1;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (failed != 0) {
            break;
        }
        if (row > j && row < size) {
            l[row * ROW + j] = precise::divide(rest, l[j * ROW + j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    uint rows = failed == 0 ? size : failed - 1;
    for (uint at = row; at < size * size; at += threads) {
        uint i = at / size;
        uint j = at % size;
        float own = problem.upper != 0 ? l[j * ROW + i] : l[i * ROW + j];
        factor[first + at] = (problem.upper != 0 ? j : i) < rows ? own : 0.0f;
    }
    if (row == 0) {
        info[matrix] = int(failed);
    }
}
