#include "few_queries.h"
#include "forward.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Few queries (decoding) are not worth a panel, or not a wide one.
template <class S> void forward(const AttentionProblem &problem) {
  int64_t queries = 0;
  for (const AttentionSequence &sequence : problem.sequences) queries = std::max(queries, sequence.queries);
  if (queries <= FewQueries<S>::most_queries) FewQueries<S>(problem).run();
  else if (queries <= lanes<Compute<S>>) AttentionForward<S, 1>(problem).run();
  else AttentionForward<S, panel_vectors>(problem).run();
}

} // namespace

extern const AttentionForwardKernels attention_forward_kernels = {{forward<double>, forward<float>, forward<Float16>, forward<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
