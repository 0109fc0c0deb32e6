#include "backward.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class S> void backward(const AttentionProblem &problem) {
  with_panel_vectors<Compute<S>>(problem.most_queries(),
                                 [&](auto vectors) { AttentionBackward<S, vectors>(problem).run(); });
}

} // namespace

extern const AttentionBackwardKernels attention_backward_kernels = {
    {backward<double>, backward<float>, backward<Float16>, backward<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
