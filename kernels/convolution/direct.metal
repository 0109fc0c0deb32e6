// Sums over windows (windows.h) with few rows per group, for example one channel per group, which would not fill a tile
// of a matrix product. float16 and bfloat16 are storage types: sums are in float32 and rounded once.

#include <metal_stdlib>
using namespace metal;

#include "convolution/windows.h"

// Each thread computes one element of the result, summed in the order of channels and kernel elements.
//
// Grid: threads (positions, rows, groups).
template <typename In, typename Out>
kernel void convolution_direct(
    device const In *weight [[buffer(0)]],
    device const In *source [[buffer(1)]],
    device Out *result [[buffer(2)]],
    constant Windows &windows [[buffer(3)]],
    uint3 at [[thread_position_in_grid]]) {
    device const In *row_weight = weight + long(at.z) * windows.weight_group + long(at.y) * windows.weight_row;
    device const In *group_source = source + long(at.z) * windows.channels * volume(windows.source);
    const WindowPart position = position_part(windows, at.x);
    const uint steps = uint(windows.channels * volume(windows.places));
    float sum = 0.0f;
    for (uint step = 0; step < steps; step += 1) {
        const WindowPart part = step_part(windows, step);
        sum += float(row_weight[part.other]) * window_element(windows, group_source, part, position);
    }
    result[result_offset(windows, at.z, long(at.y), at.x)] = Out(sum);
}

// Each SIMD-group computes one element of the weight's gradient; each lane sums every 32nd position.
//
// Grid: threadgroups (steps, rows, groups) of 32 threads.
template <typename In, typename Out>
kernel void convolution_direct_weight(
    device const In *gradient [[buffer(0)]],
    device const In *source [[buffer(1)]],
    device Out *result [[buffer(2)]],
    constant Windows &windows [[buffer(3)]],
    uint3 at [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
    device const In *row_gradient = gradient + (long(at.z) * windows.rows + long(at.y)) * volume(windows.grid);
    device const In *group_source = source + long(at.z) * windows.channels * volume(windows.source);
    const WindowPart step = step_part(windows, at.x);
    const uint positions = uint(windows.batch * volume(windows.grid));
    float sum = 0.0f;
    for (uint position = lane; position < positions; position += 32) {
        const WindowPart part = position_part(windows, position);
        sum += float(row_gradient[part.other]) * window_element(windows, group_source, step, part);
    }
    // Summed as a tree, since the order of simd_sum is unspecified.
    for (ushort distance = 16; distance > 0; distance /= 2) {
        sum += simd_shuffle_xor(sum, distance);
    }
    if (lane == 0) {
        const long steps = windows.channels * volume(windows.places);
        result[(long(at.z) * windows.rows + long(at.y)) * steps + at.x] = Out(sum);
    }
}

#define DIRECT(In, Out)                                                                                               \
    template [[host_name("convolution_direct_" #In "_" #Out)]] kernel void convolution_direct<In, Out>(               \
        device const In *, device const In *, device Out *, constant Windows &, uint3);                               \
    template [[host_name("convolution_direct_weight_" #In "_" #Out)]] kernel void convolution_direct_weight<In, Out>( \
        device const In *, device const In *, device Out *, constant Windows &, uint3, uint);

DIRECT(float, float)
DIRECT(half, half)
DIRECT(half, float)
DIRECT(bfloat, bfloat)
DIRECT(bfloat, float)
