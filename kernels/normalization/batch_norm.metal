// Batch normalization and its gradients; src/ops/normalization/batch_norm_primitive.ts has the formulas.
//
// One threadgroup computes one channel. Each thread reads every LANES-th element, three times: for the mean, for the
// deviations from it, and for the result. Sums are compensated, and are added in an order that depends on sizes only.

#include <metal_stdlib>
using namespace metal;

#include "generated/batch_norm.h"
#include "generated/batch_norm_option.h"
#include "indexing/sorted.h"

constant uint OPTIONS [[function_constant(0)]];  // one bit for each BatchNormOption
constant uint LANES [[function_constant(1)]];    // threads per threadgroup: 32, or a power of two of at most 512

#include "common/teams.h"

inline bool has(uint option) { return (OPTIONS >> option & 1) != 0; }

inline uint channel_size(constant BatchNorm &p) { return uint(p.batch * p.inner); }

// Returns the offset of a channel's element in x.
inline long element_of(constant BatchNorm &p, uint channel, uint at) {
    const uint inner = uint(p.inner);
    const uint row = at / inner;
    return (long(row) * p.channels + channel) * p.inner + (at - row * inner);
}

// x                [[buffer(0)]]     [batch, channels, inner]
// weight, bias     [[buffer(1, 2)]]  [channels]
// means, variances [[buffer(3, 4)]]  [channels], read if they are given
// out              [[buffer(5)]]     [batch, channels, inner]
// For absent operands (OPTIONS), any buffer is bound, and it is not accessed.
// grid: one threadgroup of LANES threads per channel
template <typename T>
kernel void batch_norm(
    device const T *x [[buffer(0)]],
    device const float *weight [[buffer(1)]],
    device const float *bias [[buffer(2)]],
    device float *means [[buffer(3)]],
    device float *variances [[buffer(4)]],
    device T *out [[buffer(5)]],
    constant BatchNorm &p [[buffer(6)]],
    uint channel [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_threadgroup]]) {
    threadgroup float parts[2 * SIMDGROUPS];
    threadgroup float2 pairs[2 * SIMDGROUPS];
    const uint count = channel_size(p);
    float mean;
    float lost = 0.0f;
    float variance;
    if (has(BATCH_NORM_OPTION_GIVEN)) {
        mean = means[channel];
        variance = variances[channel];
    } else {
        Exchange<float> one = {parts, lane, 0};
        Exchange<float2> two = {pairs, lane, 0};
        FloatSum sum;
        for (uint at = lane; at < count; at += LANES) {
            sum.add(float(x[element_of(p, channel, at)]));
        }
        const float rounded = team_combined<Sum>(sum.result(), one) / float(count);
        FloatSum deviations;
        FloatSum squares;
        for (uint at = lane; at < count; at += LANES) {
            const float deviation = float(x[element_of(p, channel, at)]) - rounded;
            deviations.add(deviation);
            squares.add(deviation * deviation);
        }
        const float2 sums = team_combined<Sum>(float2(deviations.result(), squares.result()), two);
        lost = sums.x / float(count);
        const float corrected = sums.y - sums.x * lost;
        mean = rounded;
        variance = (corrected < 0.0f ? 0.0f : corrected) / float(count);
        if (lane == 0) {
            means[channel] = mean + lost;
            variances[channel] = variance;
        }
    }
    const float scale = precise::rsqrt(variance + p.eps);
    const float factor = has(BATCH_NORM_OPTION_WEIGHT) ? scale * weight[channel] : scale;
    const float added = has(BATCH_NORM_OPTION_BIAS) ? bias[channel] : 0.0f;
    for (uint at = lane; at < count; at += LANES) {
        const long element = element_of(p, channel, at);
        out[element] = T(((float(x[element]) - mean) - lost) * factor + added);
    }
}

// x, grad_out              [[buffer(0, 1)]]     [batch, channels, inner]
// weight, means, variances [[buffer(2, 3, 4)]]  [channels]
// grad_x                   [[buffer(5)]]        [batch, channels, inner]
// grad_weight, grad_bias   [[buffer(6, 7)]]     [channels]
// For absent operands (OPTIONS), any buffer is bound, and it is not accessed.
// grid: one threadgroup of LANES threads per channel
template <typename T>
kernel void batch_norm_gradient(
    device const T *x [[buffer(0)]],
    device const T *grad_out [[buffer(1)]],
    device const float *weight [[buffer(2)]],
    device const float *means [[buffer(3)]],
    device const float *variances [[buffer(4)]],
    device T *grad_x [[buffer(5)]],
    device float *grad_weight [[buffer(6)]],
    device float *grad_bias [[buffer(7)]],
    constant BatchNorm &p [[buffer(8)]],
    uint channel [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_threadgroup]]) {
    threadgroup float2 pairs[2 * SIMDGROUPS];
    Exchange<float2> exchange = {pairs, lane, 0};
    const uint count = channel_size(p);
    const float mean = means[channel];
    const float scale = precise::rsqrt(variances[channel] + p.eps);
    FloatSum of_bias;
    FloatSum of_weight;
    for (uint at = lane; at < count; at += LANES) {
        const long element = element_of(p, channel, at);
        const float gradient = float(grad_out[element]);
        of_bias.add(gradient);
        of_weight.add(gradient * ((float(x[element]) - mean) * scale));
    }
    const float2 sums = team_combined<Sum>(float2(of_bias.result(), of_weight.result()), exchange);
    if (lane == 0) {
        if (has(BATCH_NORM_OPTION_GRAD_BIAS)) grad_bias[channel] = sums.x;
        if (has(BATCH_NORM_OPTION_GRAD_WEIGHT)) grad_weight[channel] = sums.y;
    }
    if (!has(BATCH_NORM_OPTION_GRAD_X)) return;
    const float factor = has(BATCH_NORM_OPTION_WEIGHT) ? scale * weight[channel] : scale;
    const float2 shares = sums / float(count);
    for (uint at = lane; at < count; at += LANES) {
        const long element = element_of(p, channel, at);
        const float normalized = (float(x[element]) - mean) * scale;
        grad_x[element] = T(factor * ((float(grad_out[element]) - shares.x) - normalized * shares.y));
    }
}

#define BATCH_NORM(T)                                                                                             \
    template [[host_name("batch_norm_" #T)]] kernel void batch_norm<T>(                                           \
        device const T *, device const float *, device const float *, device float *, device float *, device T *, \
        constant BatchNorm &, uint, uint);                                                                        \
    template [[host_name("batch_norm_gradient_" #T)]] kernel void batch_norm_gradient<T>(                         \
        device const T *, device const T *, device const float *, device const float *, device const float *,     \
        device T *, device float *, device float *, constant BatchNorm &, uint, uint);

BATCH_NORM(float)
BATCH_NORM(half)
BATCH_NORM(bfloat)
