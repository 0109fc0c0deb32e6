// Recurrent layers: all steps of one direction of a layer in one call, given the products of its inputs.
#pragma once

// LSTM, GRU, and Elman's network with either activation.
#include "../../.build/generated/recurrent_kind.h"

// - offsets, step_strides, row_strides: offsets, and strides of steps and of rows, of inputs, weight, bias, hidden,
//   cell, out and lastCell. Elements of a row are adjacent.
#include "../../.build/generated/recurrent_block.h"

#include "../functions.h"
#include "../names.h"

namespace orchard {

// The rows of one step. A row of a gate array has the gates one after the other, `size` numbers each. `cell` and
// `next_cell` are used by LSTMs only; they may be the same memory.
struct RecurrentStep {
  int64_t batch, size;
  const char *inputs, *sums, *hidden, *cell;
  int64_t inputs_stride, sums_stride, hidden_stride, cell_stride;
  char *next, *next_cell;
  int64_t next_stride, next_cell_stride;
};

// `activate` is indexed by kind and dtype (float64, float32): computes the next states of all rows. The sums are
// h Wᵀ + b for a GRU; for other kinds, they include the inputs.
// `transpose` is indexed by dtype: out[c * rows + r] = in[r * stride + c].
struct RecurrentKernels {
  void (*activate[static_cast<int>(RecurrentKind::count)][2])(const RecurrentStep &step);
  void (*transpose[2])(const char *in, int64_t stride, int64_t rows, int64_t columns, char *out);
};

} // namespace orchard

ORCHARD_ISA_TABLE(RecurrentKernels, recurrent_kernels)
