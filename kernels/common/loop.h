// Loop nests over operands of one shape: they map an element's number to its offset in each operand.
//
// Elements are numbered in row-major order, so that adjacent threads access adjacent elements. The host
// (src/backend/metal/loop.ts) drops axes of length 1, and merges axes that are contiguous in every operand. So a
// contiguous call has rank 1, and a scalar operand has stride 0. If a kernel iterates over an axis itself, the stride
// of that axis is 0.

#ifndef ORCHARD_COMMON_LOOP_H
#define ORCHARD_COMMON_LOOP_H

// - shape: elements in each axis, outermost first
// - strides: of each operand, in elements; 0 broadcasts, negative strides reverse
// - start: offset of element (0, …, 0) from the address where the operand is bound
// - count: product of the shape
#include "generated/nest.h"

// For kernels with one thread per element: up to four operands, the output last.
using LoopNest = Nest<4>;

// Returns the number of this thread's element. The grid is two-dimensional, because a coordinate has only 32 bits.
inline ulong loop_element(uint2 position, uint2 grid) { return ulong(position.y) * grid.x + position.x; }

// Visits the axes from the last to the first: the element's number is divided by each length; the remainder is the
// index along that axis, and the quotient is passed on to the next one.
template <typename Number, int count, int operands>
inline void loop_walk(constant Nest<operands> &loop, Number element, thread long (&places)[count]) {
    Number remainder = element;
    for (long axis = loop.rank - 1; axis > 0; axis -= 1) {
        Number size = Number(loop.shape[axis]);
        Number outer = remainder / size;
        long index = long(remainder - outer * size);
        for (int operand = 0; operand < count; operand += 1) {
            places[operand] += index * loop.strides[operand][axis];
        }
        remainder = outer;
    }
    for (int operand = 0; operand < count; operand += 1) {
        places[operand] += long(remainder) * loop.strides[operand][0];
    }
}

// Computes the offset of an element in each of the first `count` operands. GPUs have no instruction for 64-bit
// division, so numbers that fit are divided in 32 bits.
template <int count, int operands>
inline void loop_places(constant Nest<operands> &loop, ulong element, thread long (&places)[count]) {
    for (int operand = 0; operand < count; operand += 1) {
        places[operand] = loop.start[operand];
    }
    if (loop.count <= long(0xffffffffu)) {
        loop_walk(loop, uint(element), places);
    } else {
        loop_walk(loop, element, places);
    }
}

// Returns the offset of an element in one operand.
template <int operands> inline long loop_offset(constant Nest<operands> &loop, int operand, ulong element) {
    long offset = loop.start[operand];
    ulong remainder = element;
    for (long axis = loop.rank - 1; axis > 0; axis -= 1) {
        ulong size = ulong(loop.shape[axis]);
        offset += long(remainder % size) * loop.strides[operand][axis];
        remainder /= size;
    }
    return offset + long(remainder) * loop.strides[operand][0];
}

#endif
