// output[i] = value for every index i of the output's shape. The value is passed as bits, so there is one kernel per
// element size.

#include <metal_stdlib>
using namespace metal;

#include "common/runs.h"

// - loop: operands: output
// - bits: of the element
#include "generated/fill.h"

// output  [[buffer(0)]]  the elements that its strides reach
// given   [[buffer(1)]]
template <typename Bits>
kernel void fill(
    device Bits *output [[buffer(0)]],
    constant Fill &given [[buffer(1)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    const Run run = run_of(given.loop, position, grid);
    if (run.count == 0) return;
    long places[1];
    run_places(given.loop, run, places);
    Bits elements[run_width<Bits>()];
    for (uint i = 0; i < run_length(); i += 1) elements[i] = Bits(given.bits);
    store_run(output, places[0], elements, run.count);
}

template [[host_name("fill_1")]] kernel void fill<uchar>(device uchar *, constant Fill &, uint2, uint2);
template [[host_name("fill_2")]] kernel void fill<ushort>(device ushort *, constant Fill &, uint2, uint2);
template [[host_name("fill_4")]] kernel void fill<uint>(device uint *, constant Fill &, uint2, uint2);
template [[host_name("fill_8")]] kernel void fill<ulong>(device ulong *, constant Fill &, uint2, uint2);
