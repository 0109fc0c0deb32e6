// Slices along one axis of operands with one shape: the elements along that axis, for each index of the other axes.
// TypeScript computes their layout (src/tensor/slices.ts).
#pragma once

#include "../.build/generated/slices_block.h"

#include "nest.h"

namespace orchard {

// Strides and offsets are in elements.
template <int operands> struct Slices {
  int64_t length;            // elements of a slice
  int64_t along[operands];   // stride between elements of a slice
  int64_t offsets[operands]; // of the first slice's first element
  Nest<operands> nest;       // the other axes; if there are none, it has one element, which stands for the only slice

  Slices(const SlicesBlock<operands> &block) : length(block.length), nest(block.nest) {
    if (nest.rank < 1) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected slices over 1 to 8 axes, got 0");
    if (length < 0) refuse_number(double(length), "slices of at least 0 elements");
    for (int operand = 0; operand < operands; operand++) {
      along[operand] = block.along[operand];
      offsets[operand] = block.offsets[operand];
    }
  }

  int64_t count() const { return nest.count(); }
  bool is_empty() const { return length == 0 || count() == 0; }

  // Returns the extent of all slices of an operand, from the first element of the first slice.
  Extent extent(int operand) const { return extent(operand, length); }
  // The same for the first `elements` of each slice.
  Extent extent(int operand, int64_t elements) const { return nest.extent(operand).along(elements, along[operand]); }

  // Copies the layout of operand `like`, for an operand that the call does not use.
  void set_layout_of(int operand, int like) {
    along[operand] = along[like];
    offsets[operand] = offsets[like];
    nest.set_strides_of(operand, like);
  }

  // Finds the offset of a slice's first element in each operand, relative to the first slice.
  void find_offsets(int64_t slice, int64_t (&found)[operands]) const { nest.find_offsets(slice, found); }
};

} // namespace orchard
