// Copies of elements without conversion, between operands of any strides.
#pragma once

#include "../elementwise/loop.h"

namespace orchard {

struct CopyBlock {
  DTypeField from, to;
  LoopBlock<2> loop;
};

// An axis of a copy; strides are in bytes.
struct CopyAxis {
  int64_t size, from, to;
};

// A copy ordered by both layouts. Axes are sorted by the result's strides, smallest last, and merged if both operands
// allow it. `is_rows`: both have adjacent elements along the last axis. Otherwise the last two axes are transposed: the
// result's elements are adjacent along the last one, and the operand's are closest along the other.
struct CopyPlan {
  int rank;
  CopyAxis axes[max_rank];
  bool is_rows;
};

// The last two axes of a transposed copy, or a block of them. Rows are adjacent in the result.
struct TransposeBlock {
  const char *from;
  char *to;
  CopyAxis columns, rows;
  bool is_streamed; // the result's rows are whole cache lines, written with nontemporal stores
};

// Up to this many elements along an axis have specialized kernels.
constexpr int64_t few = 4;

// Kernels for elements of 1, 2, 4 and 8 bytes: blocks of up to `side` by `side`, and of any size with 2 to `few`
// elements along one of the axes.
struct Transposes {
  int64_t side[4];
  void (*block[4])(const TransposeBlock &);
  void (*few[4])(const TransposeBlock &);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Transposes, transposes)
