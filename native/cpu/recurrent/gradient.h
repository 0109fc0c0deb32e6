// The gradients of a recurrent layer: back-propagation through all steps of one direction in one call.
#pragma once

// Elements of all operands are contiguous from the offsets on: products [steps, batch, width], with a width of `gates`
// times the size; weight [width, size]; bias [width], for a GRU that has one; hidden and cell [batch, size], the latter
// for an LSTM only; out [steps, batch, size], the states that "recurrent" computed; the gradients of out and of the
// last cell. Results are the gradients of products; of h Wᵀ + b, for a GRU only; of hidden; and of cell. For other
// kinds than a GRU, the gradients of h Wᵀ are those of products.
#include "../../.build/generated/recurrent_gradient_block.h"

#include "recurrent.h"

namespace orchard {

// The rows of one step, of a batch of them, contiguous. `gates` has the activated gates of an LSTM, which are replaced
// by the gradients of their sums; for a GRU, `sums` are replaced by gradients.
template <class T> struct RecurrentGradientStep {
  int64_t batch, size;
  const T *inputs;      // products of the inputs, of a GRU
  T *gates, *sums;      // [batch, width]
  const T *before;      // the states before the step
  const T *after;       // and after it
  const T *cell_before; // of an LSTM
  const T *cell_after;  //
  const T *gradient;    // of the states after it, by later losses
  const T *of_later;    // and by later steps
  T *of_cell;           // of the cells: after the step, then before it
  T *direct;            // of the states before a GRU's step, without those by the sums
};

template <class T> struct RecurrentGradientKernel {
  // Replaces an LSTM's sums by its activated gates, and computes the next cells.
  void (*open_gates)(int64_t batch, int64_t size, T *gates, const T *cell, T *next);
  // Computes the gradients of a step's sums, by kind.
  void (*step[static_cast<int>(RecurrentKind::count)])(const RecurrentGradientStep<T> &step);
};

struct RecurrentGradientKernels {
  RecurrentGradientKernel<double> float64;
  RecurrentGradientKernel<float> float32;
};

} // namespace orchard

ORCHARD_ISA_TABLE(RecurrentGradientKernels, recurrent_gradient_kernels)
