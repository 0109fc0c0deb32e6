// The epilogue of a convolution in inference, in one pass over its result: bias, another summand, activation, scale.
#pragma once

// y ← f(y + bias + added) · scale + shift for y and added [planes, columns], contiguous. The bias has an element for
// each channel; plane p belongs to channel p % channels. `alpha` and `beta` are the parameters of f: the slope of
// leaky, the bounds of clamp, and the slope and offset of hardsigmoid.
// - offsets: of bias, added and y
#include "../../.build/generated/finish_block.h"

#include "../linalg/matrices.h"
#include "../names.h"

namespace orchard {

template <class T> struct Finish {
  T alpha, beta, scale, shift;
};

// `rows` is indexed by activation: computes `count` elements of one plane. `added` may be null.
template <class T> struct FinishKernel {
  void (*rows[static_cast<int>(FinishActivation::count)])(const Finish<T> &finish, T bias, const T *added, T *y,
                                                          int64_t count);
};
using FinishKernels = OfReals<FinishKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(FinishKernels, finish_kernels)
