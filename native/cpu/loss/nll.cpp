// The function "nllLoss": the negative log likelihood of classes.
#include "nll.h"
#include "../functions.h"
#include "../indexing/indices.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

using namespace orchard;
using orchard::ORCHARD_ISA::load;

namespace {

using tuning::loss::nll_slices;

struct Sum {
  double losses, factors;
};

// Sums of tasks are added in order, so they do not depend on the number of threads.
template <class T, class Index>
Sum losses_of(const NllLossBlock &block, const Slices<3> &slices, const T *x, const Index *targets,
              const Compute<T> *factors, Compute<T> *out) {
  const int64_t classes = slices.length, along = slices.along[0], ignored = block.ignore_index;
  const int64_t steps[] = {slices.nest.run_stride(0), slices.nest.run_stride(1), slices.nest.run_stride(2)};
  Scratch<Sum> sums((slices.count() + nll_slices - 1) / nll_slices);
  BadIndex bad;
  parallel_for(slices.count(), nll_slices, [&](int64_t begin, int64_t end) {
    Sum sum{0, 0};
    for_each_run(slices.nest, begin, end, [&](const int64_t (&offsets)[3], int64_t, int64_t length) {
      for (int64_t i = 0; i < length; i++) {
        const int64_t target = targets[offsets[1] + i * steps[1]];
        const bool is_counted = target != ignored, is_right = is_in_range(target, classes);
        if (is_counted && !is_right) bad.set(target);
        const Compute<T> factor = !is_counted || !is_right ? 0 : factors ? factors[target] : 1;
        const Compute<T> loss =
            is_counted && is_right ? -load(x[offsets[0] + i * steps[0] + target * along]) * factor : 0;
        if (out) out[offsets[2] + i * steps[2]] = loss;
        sum.losses += double(loss), sum.factors += double(factor);
      }
    });
    sums.data()[begin / nll_slices] = sum;
  });
  bad.check(classes);
  Sum total{0, 0};
  for (int64_t first = 0; first < slices.count(); first += nll_slices) {
    total.losses += sums.data()[first / nll_slices].losses;
    total.factors += sums.data()[first / nll_slices].factors;
  }
  return total;
}

template <class T> void nll_of(const NllLossBlock &block, const Operands &operands) {
  using C = Compute<T>;
  const Slices<3> slices = block.slices;
  const T *x = operands.inputs<T>(0, slices.offsets[0], slices.extent(0));
  const C *factors = block.has_factors ? operands.inputs<C>(2, block.factors_offset, Extent(slices.length)) : nullptr;
  C *out = operands.results<C>(3, slices.offsets[2], block.is_summed ? Extent(1) : slices.nest.extent(2));
  with_indices(operands, 1, block.index_dtype, slices.offsets[1], slices.nest.extent(1), [&](auto *targets) {
    const Sum sum = losses_of(block, slices, x, targets, factors, block.is_summed ? nullptr : out);
    if (block.is_summed) *out = C(block.is_mean ? sum.losses / sum.factors : sum.losses);
  });
}

void nll_loss(const NllLossBlock &block, Operands operands) {
  switch (DType(block.dtype)) {
  case DType::float64: return nll_of<double>(block, operands);
  case DType::float32: return nll_of<float>(block, operands);
  case DType::float16: return nll_of<Float16>(block, operands);
  case DType::bfloat16: return nll_of<BFloat16>(block, operands);
  default: fail(ORCHARD_CPU_UNSUPPORTED, "expected log probabilities to be floats");
  }
}

ORCHARD_FUNCTION("nllLoss", nll_loss, NllLossBlock, 4)

} // namespace
