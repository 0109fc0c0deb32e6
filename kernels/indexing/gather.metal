// output[…, i, …] = x[…, index[…, i, …], …] for every element of the output; 0 if an index is out of range.
//
// Elements are moved as bits, so a kernel depends only on their size.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"

// - loop: operands: x (stride 0 along the indexed axis), index, output
// - size: length of the indexed axis of x
// - stride: stride of x along the indexed axis
#include "generated/gather.h"

// x       [[buffer(0)]]  the elements that its strides reach
// index   [[buffer(1)]]  the elements that its strides reach
// output  [[buffer(2)]]  the elements that its strides reach
// gather  [[buffer(3)]]
template <typename Bits, typename Index>
kernel void gather(
    device const Bits *x [[buffer(0)]],
    device const Index *index [[buffer(1)]],
    device Bits *output [[buffer(2)]],
    constant Gather &gather [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(gather.loop.count)) {
        return;
    }
    long offsets[3];
    loop_places(gather.loop, element, offsets);
    long at = long(index[offsets[1]]);
    bool inside = at >= 0 && at < gather.size;
    output[offsets[2]] = inside ? x[offsets[0] + at * gather.stride] : Bits(0);
}

#define GATHER(Bits, Index)                                                             \
    template [[host_name("gather_" #Bits "_" #Index)]] kernel void gather<Bits, Index>( \
        device const Bits *, device const Index *, device Bits *, constant Gather &, uint2, uint2);

#define GATHER_BITS(Bits) \
    GATHER(Bits, long)    \
    GATHER(Bits, int)

GATHER_BITS(uchar)
GATHER_BITS(ushort)
GATHER_BITS(uint)
GATHER_BITS(ulong)
