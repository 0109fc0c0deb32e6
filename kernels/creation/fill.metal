// output[i] = value for every index i of the output's shape. The value comes as bits: one kernel for each size serves every type.

#include <metal_stdlib>
using namespace metal;

#include "elementwise/loop.h"

constant uint low [[function_constant(0)]];   // bits 0 to 31 of the element
constant uint high [[function_constant(1)]];  // bits 32 to 63

// output  [[buffer(0)]]  the elements that its strides reach
// loop    [[buffer(1)]]  operands: output
template <typename Bits>
kernel void fill(
    device Bits *output [[buffer(0)]],
    constant LoopNest &loop [[buffer(1)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(loop.count)) {
        return;
    }
    long places[1];
    loop_places(loop, element, places);
    output[places[0]] = Bits(ulong(high) << 32 | low);
}

template [[host_name("fill_1")]] kernel void fill<uchar>(device uchar *, constant LoopNest &, uint2, uint2);
template [[host_name("fill_2")]] kernel void fill<ushort>(device ushort *, constant LoopNest &, uint2, uint2);
template [[host_name("fill_4")]] kernel void fill<uint>(device uint *, constant LoopNest &, uint2, uint2);
template [[host_name("fill_8")]] kernel void fill<ulong>(device ulong *, constant LoopNest &, uint2, uint2);
