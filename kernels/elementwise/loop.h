// A loop nest over up to four operands of one shape: where an element of the output lies in each of them.
//
// One thread an element, numbered in row-major order of the output, so that neighbouring threads touch neighbouring elements. The host
// (src/ops/elementwise/loop.metal.ts) drops axes of one element and merges neighbours that are one run in every operand: a contiguous
// call has rank 1, a scalar operand stride 0.

#ifndef ORCHARD_ELEMENTWISE_LOOP_H
#define ORCHARD_ELEMENTWISE_LOOP_H

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

// The place of an element in each of the first `operands` operands.
template <int operands>
inline void loop_places(constant LoopNest &loop, ulong element, thread long (&places)[operands]) {
    for (int operand = 0; operand < operands; operand += 1) {
        places[operand] = loop.start[operand];
    }
    ulong rest = element;
    for (long axis = loop.rank - 1; axis >= 0; axis -= 1) {
        ulong size = ulong(loop.shape[axis]);
        long index = long(axis == 0 ? rest : rest % size);
        rest /= size;
        for (int operand = 0; operand < operands; operand += 1) {
            places[operand] += index * loop.strides[operand][axis];
        }
    }
}

#endif
