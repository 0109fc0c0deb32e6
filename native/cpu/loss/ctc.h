// CTC, the loss of label sequences without alignment: forward and backward variables over states, which are the labels
// with blanks between and around them (A. Graves et al., 2006).
#pragma once

// The operands are logProbs [times, batch, classes], strided; states [batch, width], the class of each state; and
// lengths [2, batch], the number of times and of labels of each element. The results are alphas [batch, times, width]
// and totals [batch, times + 1] in float64, from which the gradient is computed. The total of each row of alphas is
// subtracted from it, so that its numbers are near 0. The last total of an element of the batch is its loss, before it
// is finished: a loss above `ctc_infinite` becomes `infinite`; with `is_mean` losses are divided by their numbers of
// labels, or by 1.
// - strides: of logProbs
#include "../../.build/generated/ctc_block.h"

// Computes the gradient of logProbs, which is contiguous, from the gradient of the finished losses [batch]. Infinite
// losses have none.
#include "../../.build/generated/ctc_gradient_block.h"

#include "../linalg/matrices.h"

namespace orchard {

// No positive probability has a larger negative logarithm.
constexpr double ctc_infinite = 1e29;

// States are computed in multiples of `ctc_unit`, a vector of any instruction set. A buffer has room for those of
// `width` states, and for three more numbers.
constexpr int64_t ctc_unit = 16;
inline int64_t ctc_padded(int64_t states) { return (states + ctc_unit - 1) / ctc_unit * ctc_unit; }
inline int64_t ctc_room(int64_t width) { return ctc_padded(width) + ctc_unit; }

template <class T> struct CtcElement {
  int64_t times, states;  // of this element
  const int64_t *classes; // of the states
  const T *log_probs;     // [time, class], strided
  int64_t time_stride, class_stride;
  T *alphas; // [time, width]
  int64_t width;
  double *totals; // one per time, and the loss at index `loss_at`
  int64_t loss_at;
};

template <class T> struct CtcKernel {
  // `space` has 4 · ctc_room(width) numbers.
  double (*forward)(const CtcElement<T> &element, T *space);
  // Writes the gradient [time, class]: minus `factor` times the probability of each class at each time. Times are
  // `step` apart, and the gradient is zero before the call. `space` has 6 · ctc_room(width) numbers. `sums` has one
  // number per class, which are zero before and after.
  void (*backward)(const CtcElement<T> &element, T factor, T *space, double *sums, T *gradient, int64_t step);
};
using CtcKernels = OfReals<CtcKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(CtcKernels, ctc_kernels)
