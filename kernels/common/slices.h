// Slices along one axis of operands of one shape: the elements along that axis, for each index of the other axes. The
// host (src/tensor/slices.ts) merges the other axes.

#ifndef ORCHARD_COMMON_SLICES_H
#define ORCHARD_COMMON_SLICES_H

#include "common/loop.h"

template <int operands> struct Slices {
    Nest<operands> nest;   // of the other axes: each of its elements is a slice, placed at the slice's first element
    long along[operands];  // from one element of a slice to the next; negative if it is walked backwards
    long length;           // elements of a slice
};

// Computes the offset of a slice's first element in each operand.
template <int operands>
inline void slice_offsets(constant Slices<operands> &slices, ulong slice, thread long (&offsets)[operands]) {
    loop_places(slices.nest, slice, offsets);
}

#endif
