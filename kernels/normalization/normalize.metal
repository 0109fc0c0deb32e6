// Normalizes rows, after adding the residual if there is one (src/ops/normalization/problem.ts, (1) to (5)):
//
//     s = x + residual      n = (s - mean) / sqrt(Σ (s - mean)² / N + eps)      out = n · weight + bias
//
// The mean is 0 if rows are not centered. A team of threads processes a chunk of rows (rows.h). A row that fits in its
// registers is read once. For longer rows, x (or the sum, if it was written) is read again for the result. Everything
// is computed in float32; a row whose squares overflow or underflow is computed again, scaled by a power of two.

#include <metal_stdlib>
using namespace metal;

#include "normalization/normalize.h"

// x, residual     [[buffer(0, 1)]]  [..., N] with any strides
// weight, bias    [[buffer(2, 3)]]  [N]
// out, sum        [[buffer(4, 5)]]  [rows, N]
// means, scales   [[buffer(6, 7)]]  [rows]
// For absent operands (OPTIONS), any buffer is bound, and it is not accessed.
// grid: threadgroups (chunks of rows / teams) of LANES threads, or of TEAMS SIMD-groups if LANES is 32
template <typename T, typename W>
kernel void normalize(
    device const T *x [[buffer(0)]],
    device const T *residual [[buffer(1)]],
    device const W *weight [[buffer(2)]],
    device const W *bias [[buffer(3)]],
    device T *out [[buffer(4)]],
    device T *sum [[buffer(5)]],
    device float *means [[buffer(6)]],
    device float *scales [[buffer(7)]],
    constant Normalization &p [[buffer(8)]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float parts[2 * SIMDGROUPS];
    threadgroup float2 pairs[2 * SIMDGROUPS];
    normalize_rows(x, residual, weight, bias, out, sum, means, scales, p, parts, pairs, group, thread_index);
}

#define NORMALIZE(T, W)                                                                                 \
    template [[host_name("normalize_" #T "_" #W)]] kernel void normalize<T, W>(                         \
        device const T *, device const T *, device const W *, device const W *, device T *, device T *, \
        device float *, device float *, constant Normalization &, uint, uint);

NORMALIZE(float, float)
NORMALIZE(half, half)
NORMALIZE(half, float)
NORMALIZE(bfloat, bfloat)
NORMALIZE(bfloat, float)
