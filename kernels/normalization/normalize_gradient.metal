// Gradients of normalized rows (src/ops/normalization/problem.ts), with v = grad_out · weight and
// n = (x - mean) · scale:
//
//     grad_x      = scale · (v - Σ v / N - n · Σ (v · n) / N) + grad_sum     without Σ v / N if rows are not centered
//     grad_weight = Σ grad_out · n,   grad_bias = Σ grad_out                 over all rows
//
// normalize_gradient: a team of threads processes a chunk of rows (rows.h) and sums their terms of grad_weight and
// grad_bias in registers, so that it writes one row of each, without atomics. Rows that fit in the registers are read
// once; longer rows are read twice, chunk by chunk.
// add_chunks: adds the rows that the teams wrote, in order.

#include <metal_stdlib>
using namespace metal;

#include "normalization/normalize_gradient.h"

// x, grad_out, grad_sum  [[buffer(0, 1, 2)]]  [..., N] with any strides
// weight                 [[buffer(3)]]        [N]
// means, scales          [[buffer(4, 5)]]     [rows]
// grad_x                 [[buffer(6)]]        [rows, N]
// parts                  [[buffer(7)]]        [1 or 2, chunks, N]
// row_sums               [[threadgroup(0)]]   a pair for each row of a chunk, if rows are longer than a block
// grid: threadgroups (chunks / teams) of LANES threads, or of TEAMS SIMD-groups if LANES is 32
// For absent operands (OPTIONS), any buffer is bound, and it is not accessed.
// A thread has up to 16 elements of five arrays in registers. The limit of 512 threads keeps the compiler from using so
// many registers that such a threadgroup does not fit.
template <typename T, typename W>
[[kernel, max_total_threads_per_threadgroup(512)]] void normalize_gradient(
    device const T *x [[buffer(0)]],
    device const T *grad_out [[buffer(1)]],
    device const T *grad_sum [[buffer(2)]],
    device const W *weight [[buffer(3)]],
    device const float *means [[buffer(4)]],
    device const float *scales [[buffer(5)]],
    device T *grad_x [[buffer(6)]],
    device float *parts [[buffer(7)]],
    constant Normalization &p [[buffer(8)]],
    threadgroup float2 *row_sums [[threadgroup(0)]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float2 pairs[2 * SIMDGROUPS];
    const Operands<T, W> all = {x, grad_out, grad_sum, weight, means, scales, grad_x};
    normalize_gradient_rows(all, parts, p, row_sums, pairs, group, thread_index);
}

// parts                   [[buffer(0)]]     [1 or 2, chunks, N]
// grad_weight, grad_bias  [[buffer(1, 2)]]  [N]
// grid: threadgroups (N / ADDED_COLUMNS, number of gradients needed) of ADDED_THREADS threads; ADDED_PARTS threads add
// the chunks of one column
template <typename W>
kernel void add_chunks(
    device const float *parts [[buffer(0)]],
    device W *grad_weight [[buffer(1)]],
    device W *grad_bias [[buffer(2)]],
    constant Normalization &p [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float sums[ADDED_THREADS];
    add_chunks_of(parts, grad_weight, grad_bias, p, sums, group, thread_index);
}

#define NORMALIZE_GRADIENT(T, W)                                                                      \
    template [[host_name("normalize_gradient_" #T "_" #W)]] kernel void normalize_gradient<T, W>(     \
        device const T *, device const T *, device const T *, device const W *, device const float *, \
        device const float *, device T *, device float *, constant Normalization &, threadgroup float2 *, uint, uint);
#define ADD_CHUNKS(W)                                                   \
    template [[host_name("add_chunks_" #W)]] kernel void add_chunks<W>( \
        device const float *, device W *, device W *, constant Normalization &, uint2, uint);

NORMALIZE_GRADIENT(float, float)
NORMALIZE_GRADIENT(half, half)
NORMALIZE_GRADIENT(half, float)
NORMALIZE_GRADIENT(bfloat, bfloat)
NORMALIZE_GRADIENT(bfloat, float)
ADD_CHUNKS(float)
ADD_CHUNKS(half)
ADD_CHUNKS(bfloat)
