// The function "meanLoss".
#include "mean.h"

#include "../functions.h"
#include "../lanes.h"

using namespace orchard;

namespace {

template <class T> void mean_of(int64_t count, const Operands &operands) {
  const T *losses = operands.inputs<T>(0, 0, Extent(count)), *used = operands.inputs<T>(1, 0, Extent(count));
  T *mean = operands.results<T>(2, 0, Extent()), *divisor = operands.results<T>(3, 0, Extent());
  const double total = ORCHARD_ISA::summed(count, [=](int64_t i) { return double(losses[i]); });
  const double weights = ORCHARD_ISA::summed(count, [=](int64_t i) { return double(used[i]); });
  *divisor = T(weights);
  *mean = T(total / weights);
}

// mean = Σ losses / Σ used, and divisor = Σ used.
void mean_loss(const MeanLossBlock &block, Operands operands) {
  if (block.dtype == DType::float64) mean_of<double>(block.count, operands);
  else if (block.dtype == DType::float32) mean_of<float>(block.count, operands);
  else fail(ORCHARD_CPU_UNSUPPORTED, "expected losses of float32 or float64");
}

ORCHARD_FUNCTION("meanLoss", mean_loss, MeanLossBlock, 4)

} // namespace
