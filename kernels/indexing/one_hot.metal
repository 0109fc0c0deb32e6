// output[…, c] = 1 if index[…] = c, else 0, for every element of the output.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"

// - loop: operands: index (stride 0 along the last axis, the classes), output
#include "generated/one_hot.h"

// index    [[buffer(0)]]  the elements that its strides reach
// output   [[buffer(1)]]  the elements that its strides reach
// one_hot  [[buffer(2)]]
template <typename Index>
kernel void one_hot(
    device const Index *index [[buffer(0)]],
    device long *output [[buffer(1)]],
    constant OneHot &one_hot [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(one_hot.loop.count)) {
        return;
    }
    long offsets[2];
    loop_places(one_hot.loop, element, offsets);
    long category = long(element % ulong(one_hot.classes));
    output[offsets[1]] = long(index[offsets[0]]) == category ? 1 : 0;
}

#define ONE_HOT(Index)                                                    \
    template [[host_name("one_hot_" #Index)]] kernel void one_hot<Index>( \
        device const Index *, device long *, constant OneHot &, uint2, uint2);

ONE_HOT(long)
ONE_HOT(int)
