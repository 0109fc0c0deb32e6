// Slices along one axis of operands of one shape: the elements along that axis, for each index of the other axes.
// TypeScript finds them (src/tensor/slices.ts).
#pragma once

#include "nest.h"

namespace orchard {

template <int operands> struct SlicesBlock {
  Whole length;
  Whole along[operands];
  Whole offsets[operands];
  NestBlock<operands> nest;
};

// Strides and offsets are in elements.
template <int operands> struct Slices {
  int64_t length;            // elements of a slice
  int64_t along[operands];   // from one element of a slice to the next
  int64_t offsets[operands]; // of the first slice's first element
  Nest<operands> nest;       // over the other axes, at least one: an element is a slice

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

  // All slices of an operand, from the first element of the first slice.
  Extent extent(int operand) const { return extent(operand, length); }
  // The same for the first `elements` of each slice.
  Extent extent(int operand, int64_t elements) const { return nest.extent(operand).along(elements, along[operand]); }

  // For an operand that the call does not use: copies another operand's layout.
  void set_layout_of(int operand, int like) {
    along[operand] = along[like];
    offsets[operand] = offsets[like];
    nest.set_strides_of(operand, like);
  }

  // The offset of a slice's first element in each operand, relative to the first slice.
  void find_offsets(int64_t slice, int64_t (&found)[operands]) const { nest.find_offsets(slice, found); }
};

} // namespace orchard
