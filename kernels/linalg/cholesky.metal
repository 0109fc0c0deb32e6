// The Cholesky factor L of A = L Lᵀ: one threadgroup per matrix, one thread per row. Column by column:
// L[i, j] = (A[i, j] - Σ L[i, k] L[j, k] over k < j) / L[j, j], and on the diagonal the square root of that difference.

#include <metal_stdlib>
using namespace metal;

#include "linalg/cholesky.h"
#include "linalg/matrix.h"

// - upper: 1: the upper triangles, replaced by the transposed factors; 0: the lower triangles
#include "generated/cholesky.h"

#define SMALL_THREADS 128

// The Cholesky factor of matrices of up to N rows, 16 or 32. Each lane has one row in registers, so that a SIMD-group
// computes one matrix or two. Padding rows and columns are taken from an identity matrix. It needs neither threadgroup
// memory nor barriers. The operands are the same as for `cholesky` below. Threadgroups have SMALL_THREADS threads.
template <int N>
kernel void cholesky_small(
    device const float *a [[buffer(0)]],
    device float *factor [[buffer(1)]],
    device int *info [[buffer(2)]],
    constant Cholesky &problem [[buffer(3)]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    int size = int(problem.size);
    int row = int(thread_index) % N;
    ushort first_lane = ushort(int(lane) / N * N);
    long matrix = long(group) * (SMALL_THREADS / N) + int(thread_index) / N;
    bool is_inside = matrix < problem.batch && row < size;
    bool is_turned = problem.upper != 0;
    long first = matrix * size * size + row * (is_turned ? 1 : size);
    int stride = is_turned ? size : 1;
    float l[N];
    for (int j = 0; j < N; j++) {
        l[j] = is_inside && j <= row ? a[first + j * stride] : float(row == j);
    }
    int failed = 0;
    for (int j = 0; j < N; j++) {
        float remainder = l[j];
        for (int k = 0; k < j; k++) {
            remainder -= l[k] * simd_shuffle(l[k], ushort(first_lane + j));
        }
        float pivot = simd_shuffle(remainder, ushort(first_lane + j));
        bool is_positive = pivot > 0.0f;
        failed = failed == 0 && !is_positive ? j + 1 : failed;
        float root = precise::sqrt(is_positive ? pivot : 1.0f);
        float below = precise::divide(remainder, root);
        l[j] = row == j ? root : row > j ? below : 0.0f;
    }
    for (int j = 0; j < size && is_inside; j++) {
        factor[first + j * stride] = failed == 0 || row < failed - 1 ? l[j] : 0.0f;
    }
    if (row == 0 && matrix < problem.batch) {
        info[matrix] = failed;  // also for an empty matrix
    }
}

template [[host_name("cholesky_small_16")]] kernel void cholesky_small<16>(
    device const float *, device float *, device int *, constant Cholesky &, uint, uint, uint);
template [[host_name("cholesky_small_32")]] kernel void cholesky_small<32>(
    device const float *, device float *, device int *, constant Cholesky &, uint, uint, uint);

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
    factorize<ROW>(l, &failed, row, size);
    uint rows = failed == 0 ? size : failed - 1;
    for (uint at = row; at < size * size; at += threads) {
        uint i = at / size;
        uint j = at % size;
        float element = problem.upper != 0 ? l[j * ROW + i] : l[i * ROW + j];
        factor[first + at] = (problem.upper != 0 ? j : i) < rows ? element : 0.0f;
    }
    if (row == 0) {
        info[matrix] = int(failed);
    }
}
