// CTC, the loss of labels without alignment: forward and backward variables over states, which are labels with blanks
// around them (A. Graves et al., 2006).
#pragma once

#include "../linalg/matrices.h"

namespace orchard {

// logProbs [times, batch, classes], strided. states [batch, width]: the class of each. lengths [2, batch]: the times of
// each element, and its labels. alphas [batch, times, width], and totals [batch, times + 1] of float64, are the results
// of the forward pass that the gradient needs. Each row of alphas is stored less its total, so that it is near 0. The
// last total of an element is its loss.
struct CtcBlock {
  DTypeField dtype;
  Whole times, batch, classes, width;
  Whole offsets[6];
  Whole strides[3]; // of logProbs
};

// The gradient of logProbs, which is contiguous, from that of the losses [batch].
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
  double (*forward)(const CtcElement<T> &element, T *space);
  // Writes the gradient [time, class], `step` apart from time to time and zeros at first: minus `factor` times the
  // probability of each class at each time. `space` has room for 6 (width + 2) numbers, and `sums` for one per class,
  // zeros before and after.
  void (*backward)(const CtcElement<T> &element, T factor, T *space, double *sums, T *gradient, int64_t step);
};
using CtcKernels = OfReals<CtcKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(CtcKernels, ctc_kernels)
