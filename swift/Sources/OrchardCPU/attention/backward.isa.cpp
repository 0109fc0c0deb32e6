#include "backward.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class S> void backward(const AttentionProblem &problem) { AttentionBackward<S>(problem).run(); }

} // namespace

extern const AttentionBackwardKernels attention_backward_kernels = {{backward<double>, backward<float>, backward<Float16>, backward<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
