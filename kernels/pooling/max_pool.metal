// The maximum of each window and its position, and the gradient: for each element, the sum of the gradients of the
// windows whose maximum it is. In the gradient, each thread gathers the sum for one element, in the order of the
// windows, so no atomics are needed and every run gives the same bits.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"
#include "pooling/windows.h"

constant uint INDEXED [[function_constant(0)]];  // whether indices are written

// x        [[buffer(0)]]  [planes, …input]
// values   [[buffer(1)]]  [planes, …output]
// indices  [[buffer(2)]]  [planes, …output]: positions in a plane, -1 for an empty window; any buffer if not INDEXED
// grid: one thread per window
template <typename T, typename Index>
kernel void max_pool(
    device const T *x [[buffer(0)]],
    device T *values [[buffer(1)]],
    device Index *indices [[buffer(2)]],
    constant Pooling &pooling [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    const ulong window = loop_element(position, grid);
    const uint results = volume(pooling.output);
    const ulong plane = window / results;
    if (plane >= ulong(pooling.planes)) return;
    int at[3];
    coordinates(pooling.output, uint(window % results), at);
    const Span depths = window_span(pooling, 0, at[0]);
    const Span rows = window_span(pooling, 1, at[1]);
    const Span columns = window_span(pooling, 2, at[2]);
    device const T *elements = x + plane * volume(pooling.input);
    T best = T(-INFINITY);
    int place = -1;
    for (int deep = 0; deep < depths.size; deep += 1) {
        const int z = depths.first + deep * int(pooling.dilation[0]);
        if (z < 0 || z >= int(pooling.input[0])) continue;
        for (int high = 0; high < rows.size; high += 1) {
            const int y = rows.first + high * int(pooling.dilation[1]);
            if (y < 0 || y >= int(pooling.input[1])) continue;
            for (int wide = 0; wide < columns.size; wide += 1) {
                const int column = columns.first + wide * int(pooling.dilation[2]);
                if (column < 0 || column >= int(pooling.input[2])) continue;
                const int here = (z * int(pooling.input[1]) + y) * int(pooling.input[2]) + column;
                const T value = elements[here];
                if (value > best || isnan(float(value)) || place < 0) {
                    best = value;
                    place = here;
                }
            }
        }
    }
    values[window] = best;
    if (INDEXED != 0) {
        indices[window] = Index(place);
    }
}

// gradient  [[buffer(0)]]  [planes, …output]
// indices   [[buffer(1)]]  [planes, …output]
// output    [[buffer(2)]]  [planes, …input]
// grid: one thread per element of x
template <typename T, typename Index>
kernel void max_pool_gradient(
    device const T *gradient [[buffer(0)]],
    device const Index *indices [[buffer(1)]],
    device T *output [[buffer(2)]],
    constant Pooling &pooling [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    const ulong element = loop_element(position, grid);
    const uint pixels = volume(pooling.input);
    const ulong plane = element / pixels;
    if (plane >= ulong(pooling.planes)) return;
    const uint place = uint(element % pixels);
    int at[3];
    coordinates(pooling.input, place, at);
    const Reach deep = windows_around(pooling, 0, at[0]);
    const Reach high = windows_around(pooling, 1, at[1]);
    const Reach wide = windows_around(pooling, 2, at[2]);
    const ulong first = plane * volume(pooling.output);
    float sum = 0.0f;
    for (int z = deep.begin; z < deep.end; z += 1) {
        for (int y = high.begin; y < high.end; y += 1) {
            const ulong row = first + ulong((z * int(pooling.output[1]) + y) * int(pooling.output[2]));
            for (int column = wide.begin; column < wide.end; column += 1) {
                if (indices[row + column] == Index(place)) {
                    sum += float(gradient[row + column]);
                }
            }
        }
    }
    output[element] = T(sum);
}

#define MAX_POOL(T, Index)                                                                              \
    template [[host_name("max_pool_" #T "_" #Index)]] kernel void max_pool<T, Index>(                   \
        device const T *, device T *, device Index *, constant Pooling &, uint2, uint2);                \
    template [[host_name("max_pool_gradient_" #T "_" #Index)]] kernel void max_pool_gradient<T, Index>( \
        device const T *, device const Index *, device T *, constant Pooling &, uint2, uint2);
#define MAX_POOL_OF(T) MAX_POOL(T, int) MAX_POOL(T, long)

MAX_POOL_OF(float)
MAX_POOL_OF(half)
MAX_POOL_OF(bfloat)
