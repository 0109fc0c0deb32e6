// A loop nest over up to four operands of one shape, for kernels that go their own way along one axis: such an operand has stride 0
// there. src/ops/indexing/nest.metal.ts writes it.

#ifndef ORCHARD_INDEXING_NEST_H
#define ORCHARD_INDEXING_NEST_H

#define NEST_MAX_OPERANDS 4
#define NEST_MAX_RANK 8

struct Nest {
    long shape[NEST_MAX_RANK];                       // elements in each axis, outermost first
    long strides[NEST_MAX_OPERANDS][NEST_MAX_RANK];  // of each operand, in elements; 0 repeats, negative runs backwards
    long start[NEST_MAX_OPERANDS];                   // of element (0, …, 0), from where the operand is bound
    long count;                                      // product of the shape
    long rank;
};

// The number of this thread's element. The grid is rows of threads, because a coordinate has 32 bits only.
inline ulong nest_element(uint2 position, uint2 grid) {
    return ulong(position.y) * grid.x + position.x;
}

// The place of an element, by its row-major number, in each of the first `operands` operands.
template <int operands>
inline void nest_places(constant Nest &nest, ulong element, thread long (&places)[operands]) {
    for (int operand = 0; operand < operands; operand += 1) {
        places[operand] = nest.start[operand];
    }
    ulong rest = element;
    for (long axis = nest.rank - 1; axis >= 0; axis -= 1) {
        ulong size = ulong(nest.shape[axis]);
        long index = long(axis == 0 ? rest : rest % size);
        rest /= size;
        for (int operand = 0; operand < operands; operand += 1) {
            places[operand] += index * nest.strides[operand][axis];
        }
    }
}

#endif
