// The loss of labels without times, CTC: forward and backward variables over states, which are labels with blanks
// around them (A. Graves et al., 2006).
#pragma once

#include "../linalg/matrices.h"

namespace orchard {

// logProbs [times, batch, classes] by strides; states [batch, width], the class of each; lengths [2, batch]: the times
// of each element, and its labels. alphas [batch, times, width], and totals [batch, times + 1] of float64, are what the
// gradient needs of the forward pass: each row of alphas is less than it by its total, so that it is near 0, and the
// last total of an element is its loss.
struct CtcBlock {
  DTypeField dtype;
  Whole times, batch, classes, width;
  Whole offsets[6];
  Whole strides[3]; // of logProbs
};

// The gradient of logProbs, which lies without gaps, of that of the losses [batch].
struct CtcGradientBlock {
  DTypeField dtype;
  Whole times, batch, classes, width;
  Whole offsets[7];
  Whole strides[3];
};

template <class T> struct CtcElement {
  int64_t times, states;  // of this element
  const int64_t *classes; // of the states
  const T *log_probs;     // [time, class] by strides
  int64_t time_stride, class_stride;
  T *alphas; // [time, width]
  int64_t width;
  double *totals; // [time], and the loss at `loss_at`
  int64_t loss_at;
};

template <class T> struct CtcKernel {
  // `space` has room for 4 (width + 2) numbers.
  double (*forward)(const CtcElement<T> &own, T *space);
  // gradient [time, class], `step` from time to time, which is zeros: minus `factor` times the probability of each
  // class at each time. `space` for 6 (width + 2), `sums` for as many numbers as there are classes, zeros before and
  // after.
  void (*backward)(const CtcElement<T> &own, T factor, T *space, double *sums, T *gradient, int64_t step);
};
using CtcKernels = OfReals<CtcKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(CtcKernels, ctc_kernels)
