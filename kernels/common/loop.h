// Loop nests over operands of one shape: where an element lies in each of them.
//
// Elements are numbered in row-major order, so that neighbouring threads touch neighbouring elements. The host
// (src/backend/metal/loop.ts) drops axes of one element and merges axes that are one run in every operand: a contiguous
// call has rank 1, a scalar operand stride 0. A kernel that goes its own way along an axis has stride 0 there.

#ifndef ORCHARD_COMMON_LOOP_H
#define ORCHARD_COMMON_LOOP_H

#define LOOP_MAX_RANK 8

template <int operands> struct Nest {
    long shape[LOOP_MAX_RANK];              // elements in each axis, outermost first
    long strides[operands][LOOP_MAX_RANK];  // of each operand, in elements: 0 repeats, negative runs backwards
    long start[operands];                   // of element (0, …, 0), from where the operand is bound
    long count;                             // product of the shape
    long rank;
};

// Of kernels with one thread an element: up to four operands, the output last.
using LoopNest = Nest<4>;

// The number of this thread's element. The grid is rows of threads, because a coordinate has 32 bits only.
inline ulong loop_element(uint2 position, uint2 grid) { return ulong(position.y) * grid.x + position.x; }

// Walks the axes from the last: what is left of the element's number is divided by each size, and the first axis takes
// the remainder.
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

// The offset of an element in each of the first `count` operands. GPUs have no division of 64 bits: it is many
// instructions, so numbers that fit are divided in 32.
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

// The offset of an element in one operand.
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
