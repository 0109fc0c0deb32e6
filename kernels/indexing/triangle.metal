// output[…, i, j] = x[…, i, j] if j ≤ i + diagonal (lower) or j ≥ i + diagonal (upper), else 0.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"

// - loop: operands: x, output; the last two axes are rows and columns
#include "generated/triangle.h"

// x         [[buffer(0)]]  the elements that its strides reach
// output    [[buffer(1)]]  the elements that its strides reach
// triangle  [[buffer(2)]]
template <typename Bits>
kernel void triangle(
    device const Bits *x [[buffer(0)]],
    device Bits *output [[buffer(1)]],
    constant Triangle &triangle [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(triangle.loop.count)) {
        return;
    }
    long offsets[2];
    loop_places(triangle.loop, element, offsets);
    ulong rows = ulong(triangle.loop.shape[triangle.loop.rank - 2]);
    ulong columns = ulong(triangle.loop.shape[triangle.loop.rank - 1]);
    long edge = long(element / columns % rows) + triangle.diagonal;
    long column = long(element % columns);
    bool stays = triangle.lower != 0 ? column <= edge : column >= edge;
    output[offsets[1]] = stays ? x[offsets[0]] : Bits(0);
}

#define TRIANGLE(Bits)                                                    \
    template [[host_name("triangle_" #Bits)]] kernel void triangle<Bits>( \
        device const Bits *, device Bits *, constant Triangle &, uint2, uint2);

TRIANGLE(uchar)
TRIANGLE(ushort)
TRIANGLE(uint)
TRIANGLE(ulong)
