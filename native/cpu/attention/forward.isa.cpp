#include "few_queries.h"
#include "forward.h"

namespace orchard::ORCHARD_ISA {
namespace {

// With few queries (decoding), packing a panel costs more than it saves.
template <class S> void forward(const AttentionProblem &problem) {
  if (problem.most_queries() <= tuning::attention::few_queries) FewQueries<S>(problem).run();
  else
    with_panel_vectors<Compute<S>>(problem.most_queries(),
                                   [&](auto vectors) { AttentionForward<S, vectors>(problem).run(); });
}

} // namespace

extern const AttentionForwardKernels attention_forward_kernels = {
    {forward<double>, forward<float>, forward<Float16>, forward<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
