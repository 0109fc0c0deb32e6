// Copies of elements as they are, between operands of any strides.
#pragma once

#include "../elementwise/loop.h"

namespace orchard {

struct CopyBlock {
  DTypeField from, to;
  LoopBlock<2> loop;
};

// An axis of a copy; strides in bytes.
struct CopyAxis {
  int64_t size, from, to;
};

// Copies by the layout of both operands. Axes are ordered by the result's strides, the smallest last, and merged where
// both operands allow it. `is_rows`: both have adjacent elements along the last axis. Else the last two axes are
// transposed: elements are adjacent in the result along the last one, and lie closest in the operand along the other.
struct CopyPlan {
  int rank;
  CopyAxis axes[max_rank];
  bool is_rows;
};

// The last two axes of a transposed copy, or a block of them. Rows are what is adjacent in the result.
struct TransposeBlock {
  const char *from;
  char *to;
  CopyAxis columns, rows;
  bool is_streamed; // the result's rows are whole lines, written past the caches
};

// How many elements along an axis have kernels of their own.
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
