// mean = Σ losses / Σ used, and divisor = Σ used, in one threadgroup of THREADS threads. Each thread adds every
// THREADS-th number, and a tree adds the threads' sums, so that the result is the same in every run.

#include <metal_stdlib>
using namespace metal;

// - count: losses
#include "generated/mean_loss.h"

#define THREADS 256
#define SIMDGROUPS (THREADS / 32)

// Adds a number of each of `lanes` adjacent lanes, in all of them.
inline float lanes_sum(float x, ushort lanes) {
    for (ushort mask = lanes / 2; mask > 0; mask /= 2) {
        x += simd_shuffle_xor(x, mask);
    }
    return x;
}

// losses, used   [[buffer(0, 1)]]  dense
// mean, divisor  [[buffer(2, 3)]]  one number each
kernel void mean_loss(
    device const float *losses [[buffer(0)]],
    device const float *used [[buffer(1)]],
    device float *mean [[buffer(2)]],
    device float *divisor [[buffer(3)]],
    constant MeanLoss &p [[buffer(4)]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float loss_sums[SIMDGROUPS];
    threadgroup float used_sums[SIMDGROUPS];
    float loss_sum = 0.0f;
    float used_sum = 0.0f;
    for (long at = long(thread_index); at < p.count; at += THREADS) {
        loss_sum += losses[at];
        used_sum += used[at];
    }
    loss_sum = lanes_sum(loss_sum, 32);
    used_sum = lanes_sum(used_sum, 32);
    if (thread_index % 32 == 0) {
        loss_sums[thread_index / 32] = loss_sum;
        used_sums[thread_index / 32] = used_sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    loss_sum = lanes_sum(loss_sums[thread_index % SIMDGROUPS], SIMDGROUPS);
    used_sum = lanes_sum(used_sums[thread_index % SIMDGROUPS], SIMDGROUPS);
    if (thread_index == 0) {
        mean[0] = loss_sum / used_sum;
        divisor[0] = used_sum;
    }
}
