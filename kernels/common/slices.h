// Slices along one axis of operands of one shape: what lies along that axis, for each index of the others. The host
// (src/tensor/slices.ts) merges the other axes.

#ifndef ORCHARD_COMMON_SLICES_H
#define ORCHARD_COMMON_SLICES_H

#include "common/loop.h"

template <int operands> struct Slices {
    Nest<operands> nest;   // of the other axes: an element is a slice, and starts where its first element is
    long along[operands];  // from one element of a slice to the next; negative where it is walked backwards
    long length;           // elements of a slice
};

// The offset of a slice's first element in each operand.
template <int operands>
inline void slice_offsets(constant Slices<operands> &slices, ulong slice, thread long (&offsets)[operands]) {
    loop_places(slices.nest, slice, offsets);
}

#endif
