// Slices along one axis of operands with one shape: the elements along that axis, for each index of the other axes. The
// host (src/tensor/slices.ts) merges the other axes.

#ifndef ORCHARD_COMMON_SLICES_H
#define ORCHARD_COMMON_SLICES_H

#include "common/loop.h"

// - nest: the other axes: each element of this nest is the first element of a slice
// - along: stride between elements of a slice; negative if the slice is read backwards
// - length: elements of a slice
#include "generated/slices.h"

// Computes the offset of a slice's first element in each operand.
template <int operands>
inline void slice_offsets(constant Slices<operands> &slices, ulong slice, thread long (&offsets)[operands]) {
    loop_places(slices.nest, slice, offsets);
}

#endif
