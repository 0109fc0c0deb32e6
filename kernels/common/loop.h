// A loop nest over up to four operands of one shape: where an element lies in each of them.
//
// One thread an element, numbered in row-major order, so that neighbouring threads touch neighbouring elements. The host
// (src/backend/metal/loop.ts) drops axes of one element and merges neighbours that are one run in every operand: a contiguous call has
// rank 1, a scalar operand stride 0. A kernel that goes its own way along an axis has stride 0 there.

#ifndef ORCHARD_COMMON_LOOP_H
#define ORCHARD_COMMON_LOOP_H

#define LOOP_MAX_OPERANDS 4
#define LOOP_MAX_RANK 8

struct LoopNest {
    long shape[LOOP_MAX_RANK];                       // elements in each axis, outermost first
    long strides[LOOP_MAX_OPERANDS][LOOP_MAX_RANK];  // of each operand, the output last; in elements, 0 repeats, negative runs backwards
    long start[LOOP_MAX_OPERANDS];                   // of element (0, …, 0), from where the operand is bound
    long count;                                      // product of the shape
    long rank;
};

// The number of this thread's element. The grid is rows of threads, because a coordinate has 32 bits only.
inline ulong loop_element(uint2 position, uint2 grid) {
    return ulong(position.y) * grid.x + position.x;
}

// Walks the axes from the last: what is left of the element's number is divided by each size, and the first axis takes the rest.
template <typename Number, int operands>
inline void loop_walk(constant LoopNest &loop, Number element, thread long (&places)[operands]) {
    Number rest = element;
    for (long axis = loop.rank - 1; axis > 0; axis -= 1) {
        Number size = Number(loop.shape[axis]);
        Number outer = rest / size;
        long index = long(rest - outer * size);
        for (int operand = 0; operand < operands; operand += 1) {
            places[operand] += index * loop.strides[operand][axis];
        }
        rest = outer;
    }
    for (int operand = 0; operand < operands; operand += 1) {
        places[operand] += long(rest) * loop.strides[operand][0];
    }
}

// The place of an element in each of the first `operands` operands. GPUs have no division of 64 bits: it is many instructions, so
// numbers that fit are divided in 32.
template <int operands>
inline void loop_places(constant LoopNest &loop, ulong element, thread long (&places)[operands]) {
    for (int operand = 0; operand < operands; operand += 1) {
        places[operand] = loop.start[operand];
    }
    if (loop.count <= long(UINT_MAX)) {
        loop_walk(loop, uint(element), places);
    } else {
        loop_walk(loop, element, places);
    }
}

#endif
