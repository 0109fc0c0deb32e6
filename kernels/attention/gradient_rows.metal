// Sums over rows that the gradients of attention need (problem.h), and the gradient of the sinks:
//
//     Δ[i] = Σ_e gradOut[i, e] · out[i, e] − gradL[i]                 gradient_rows
//     gradSink[h] = −Σ_b Σ_i exp(sink[h] − L[i]) · Δ[i]               gradient_sinks
//
// gradient_rows: one SIMD-group per row, whose lanes divide the elements along E. Grid: threadgroups (rows / 4, heads,
// B) of 4 SIMD-groups. gradient_sinks: one threadgroup per head, whose threads divide the rows. Grid: threadgroups
// (heads) of SINK_THREADS threads.

#include <metal_stdlib>
using namespace metal;

#include "attention/problem.h"

#define SINK_THREADS 256

// out, grad_out      [[buffer(0, 1)]]  [B, H, M, E]
// grad_log_sum_exp   [[buffer(2)]]     [B, H, M]
// delta              [[buffer(3)]]     [B, H, M], row-major
template <typename T>
kernel void gradient_rows(
    device const T *out [[buffer(0)]],
    device const T *grad_out [[buffer(1)]],
    device const float *grad_log_sum_exp [[buffer(2)]],
    device float *delta [[buffer(3)]],
    constant Attention &a [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    const long row = long(group.x) * simdgroups + simdgroup;
    if (row >= a.queries) {
        return;
    }
    device const T *left = out + row_offset(a.out, int(group.z), group.y, row);
    device const T *right = grad_out + row_offset(a.grad_out, int(group.z), group.y, row);
    float sum = 0.0f;
    for (uint e = lane; e < VALUE_DIM; e += 32) {
        sum = fma(float(left[e * a.out.column]), float(right[e * a.grad_out.column]), sum);
    }
    sum = lanes_sum<32>(sum);
    if (has(ATTENTION_OPTION_GRAD_LOG_SUM_EXP)) {
        sum -= grad_log_sum_exp[row_offset(a.grad_log_sum_exp, int(group.z), group.y, row)];
    }
    if (lane == 0) {
        delta[(group.z * a.heads + group.y) * a.queries + row] = sum;
    }
}

// sinks               [[buffer(0)]]     [H]
// log_sum_exp         [[buffer(1, 2)]]  [B, H, M], and its low part
// delta               [[buffer(3)]]     [B, H, M], row-major
// grad_sinks          [[buffer(4)]]     [H]
template <typename T>
kernel void gradient_sinks(
    device const T *sinks [[buffer(0)]],
    device const float *log_sum_exp [[buffer(1)]],
    device const float *log_sum_exp_low [[buffer(2)]],
    device const float *delta [[buffer(3)]],
    device T *grad_sinks [[buffer(4)]],
    constant Attention &a [[buffer(5)]],
    uint head [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float parts[SINK_THREADS / 32];
    const float sink = float(sinks[row_offset(a.sinks, 0, head, 0)]);
    float sum = 0.0f;
    for (long batch = 0; batch < a.batch; batch += 1) {
        for (long row = thread_index; row < a.queries; row += SINK_THREADS) {
            const float high = log_sum_exp[row_offset(a.log_sum_exp, int(batch), head, row)];
            const float low = log_sum_exp_low[row_offset(a.log_sum_exp_low, int(batch), head, row)];
            if (high != -INFINITY) {
                sum -= probability_of(sink, high, low) * delta[(batch * a.heads + head) * a.queries + row];
            }
        }
    }
    sum = lanes_sum<32>(sum);
    if (lane == 0) {
        parts[simdgroup] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index == 0) {
        float total = 0.0f;
        for (int part = 0; part < SINK_THREADS / 32; part += 1) {
            total += parts[part];
        }
        grad_sinks[row_offset(a.grad_sinks, 0, head, 0)] = T(total);
    }
}

#define GRADIENT_ROWS(T)                                                                                             \
    template [[host_name("gradient_rows_" #T)]] kernel void gradient_rows<T>(                                        \
        device const T *, device const T *, device const float *, device float *, constant Attention &, uint3, uint, \
        uint, uint);                                                                                                 \
    template [[host_name("gradient_sinks_" #T)]] kernel void gradient_sinks<T>(                                      \
        device const T *, device const float *, device const float *, device const float *, device T *,              \
        constant Attention &, uint, uint, uint, uint);

GRADIENT_ROWS(float)
GRADIENT_ROWS(half)
GRADIENT_ROWS(bfloat)
