// Copies of elements without conversion, between operands of any strides.
#pragma once

#include "../../.build/generated/copy_block.h"

#include "../elementwise/loop.h"

namespace orchard {

// An axis of a copy; strides are in bytes.
struct CopyAxis {
  int64_t size, from, to;
};

// A plan for a copy. Axes are sorted by the result's strides, smallest last, and merged where both layouts allow it.
// With `is_rows`, both operands have adjacent elements along the last axis. Otherwise the last two axes are transposed:
// the last one has the result's adjacent elements, the other one the source's closest elements.
struct CopyPlan {
  int rank;
  CopyAxis axes[max_rank];
  bool is_rows;
  bool is_filling; // each row repeats one element of the source
};

// The last two axes of a transposed copy, or a block of them. Rows are adjacent in the result.
struct TransposeBlock {
  const char *from;
  char *to;
  CopyAxis columns, rows;
  bool is_streamed; // the result's rows are whole cache lines, written with nontemporal stores
};

// Axes of 2 to this many elements have specialized kernels.
constexpr int64_t few = 4;

// Kernels for elements of 1, 2, 4 and 8 bytes: for blocks of up to `side` by `side` elements, and for blocks of any
// size with 2 to `few` elements along one axis.
struct Transposes {
  int64_t side[4];
  void (*block[4])(const TransposeBlock &);
  void (*few[4])(const TransposeBlock &);
};

// Copies the elements of a nest, of `size` bytes each, from operand 0 to operand 1, on several threads. The addresses
// point to elements (0, …, 0).
void copy_nest(const Nest<2> &nest, int64_t size, const char *from, char *to);

} // namespace orchard

ORCHARD_ISA_TABLE(Transposes, transposes)
