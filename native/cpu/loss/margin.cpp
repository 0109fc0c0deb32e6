// The functions "marginLoss", "marginLossGradient" and "nllLossGradient".
#include "margin.h"
#include "label_rows.h"

#include "../few_lanes.h"
#include "../functions.h"
#include "../indexing/indices.h"
#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::loss::class_elements;

ORCHARD_EXPORT_NAMES(MarginLoss)

template <class T> struct Margin {
  int64_t rows, classes;
  bool is_square;
  double margin;
  const T *scores, *factors; // factors are null without class weights
};

template <class T> double factor_of(const Margin<T> &call, int64_t target) {
  return (call.factors ? double(call.factors[target]) : 1) / double(call.classes);
}

// Returns the loss of some scores, and with `gradient` their slope, whose terms times `scale` are written there.
template <bool is_square, class T>
double violations(const T *x, int64_t count, double least, double scale, T *gradient) {
  const auto shortfall = [=](int64_t j) {
    const double short_by = least + double(x[j]);
    return short_by <= 0 ? 0 : short_by; // keeps NaN
  };
  const auto slope = [=](int64_t j) { return is_square ? 2 * shortfall(j) : shortfall(j) > 0 ? 1.0 : 0.0; };
  if (!gradient)
    return few_summed(count, [=](int64_t j) { return is_square ? shortfall(j) * shortfall(j) : shortfall(j); });
  for (int64_t j = 0; j < count; j++) gradient[j] = T(scale * slope(j));
  return few_summed(count, slope);
}

// Returns the loss of a row; or with `gradient`, writes the row's gradient times `scale` there.
template <bool is_square, class T>
double single_target(const Margin<T> &call, const T *x, int64_t target, double scale, T *gradient) {
  const double least = call.margin - double(x[target]), factor = factor_of(call, target);
  const int64_t next = target + 1;
  T *rest = gradient ? gradient + next : nullptr;
  const double sum = violations<is_square>(x, target, least, scale * factor, gradient) +
                     violations<is_square>(x + next, call.classes - next, least, scale * factor, rest);
  if (gradient) gradient[target] = T(-scale * factor * sum);
  return sum * factor;
}

bool has_one_target(MarginLoss loss) {
  switch (loss) {
  case MarginLoss::multiMargin: return true;
  case MarginLoss::multilabelMargin:
  case MarginLoss::count: break;
  }
  return false;
}

// Reads the targets of a row before the first negative one, once, since other threads may change them. Returns their
// number, or -1 if one is out of range.
template <class Index> int64_t read_targets(const Index *targets, int64_t classes, int64_t *named, BadIndex &bad) {
  for (int64_t count = 0; count < classes; count++) {
    const int64_t target = targets[count];
    if (target < 0) return count;
    if (target >= classes) {
      bad.set(target);
      return -1;
    }
    named[count] = target;
  }
  return classes;
}

// Computes the losses if `scales` is null, otherwise the gradients.
template <class T, class Index>
void rows_of(MarginLoss loss, const Margin<T> &call, const Index *targets, const T *scales, T *out) {
  const int64_t classes = call.classes;
  const bool is_single = has_one_target(loss);
  const int64_t work = is_single ? classes : scratch_product({classes, std::min<int64_t>(classes, 4)});
  const int64_t grain = std::max<int64_t>(1, class_elements / work);
  const int64_t tasks = (call.rows + grain - 1) / grain;
  ScratchSlots<double> slots(tasks, is_single ? 1 : scratch_product({label_row_arrays, label_row_length(classes)}));
  BadIndex bad;
  parallel_for(call.rows, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](double *space) {
      int64_t *named = reinterpret_cast<int64_t *>(space);
      const LabelRows &kernels = orchard::label_rows();
      const auto several_targets = std::is_same_v<T, double> ? kernels.float64 : kernels.float32;
      for (int64_t row = begin; row < end; row++) {
        const T *x = call.scores + row * classes;
        const double scale = scales ? double(scales[row]) : 0;
        T *gradient = scales ? out + row * classes : nullptr;
        double value = 0;
        if (is_single) {
          const int64_t target = targets[row];
          if (is_in_range(target, classes))
            value = call.is_square ? single_target<true>(call, x, target, scale, gradient)
                                   : single_target<false>(call, x, target, scale, gradient);
          else bad.set(target);
        } else {
          const int64_t count = read_targets(targets + row * classes, classes, named, bad);
          if (count >= 0) value = several_targets({x, named, classes, count, scale, gradient, space});
        }
        if (!scales) out[row] = T(value);
      }
    });
  });
  bad.check(classes);
}

template <class T, class Block> void margin_loss_of(const Block &block, const Operands &operands, bool is_gradient) {
  const int64_t rows = block.rows, classes = block.classes;
  const MarginLoss loss = block.loss;
  const double power = block.power;
  if (rows < 0 || classes < 1 || (power != 1 && power != 2))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected rows of at least one class, and a power of 1 or 2");
  const Extent scores = Extent(classes).along(rows, classes), losses(rows);
  const Margin<T> call{rows,
                       classes,
                       power == 2,
                       block.margin,
                       operands.inputs<T>(0, block.offsets[0], scores),
                       block.has_factors ? operands.inputs<T>(2, block.offsets[2], Extent(classes)) : nullptr};
  const T *scales = is_gradient ? operands.inputs<T>(3, block.offsets[3], losses) : nullptr;
  T *out = operands.results<T>(4, block.offsets[4], is_gradient ? scores : losses);
  const Extent named = has_one_target(loss) ? losses : scores;
  with_indices(operands, 1, block.index_dtype, block.offsets[1], named,
               [&](auto *targets) { rows_of(loss, call, targets, scales, out); });
}

template <class Block> void compute_margin_loss(const Block &block, const Operands &operands, bool is_gradient) {
  switch (DType(block.dtype)) {
  case DType::float64: return margin_loss_of<double>(block, operands, is_gradient);
  case DType::float32: return margin_loss_of<float>(block, operands, is_gradient);
  default: fail(ORCHARD_CPU_UNSUPPORTED, "expected scores of float32 or float64");
  }
}

void margin_loss(const MarginLossBlock &block, Operands operands) { compute_margin_loss(block, operands, false); }
void margin_loss_gradient(const MarginLossGradientBlock &block, Operands operands) {
  compute_margin_loss(block, operands, true);
}

template <class T> void nll_gradient_of(const NllLossGradientBlock &block, const Operands &operands) {
  using C = Compute<T>;
  const int64_t outer = block.outer, classes = block.classes, inner = block.inner, ignored = block.ignore_index;
  if (outer < 0 || classes < 1 || inner < 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected slices of classes");
  const int64_t steps[] = {block.scale_steps[0], block.scale_steps[1]};
  const Extent all = Extent(inner).along(classes, inner).along(outer, classes * inner);
  const C *factors = block.has_factors ? operands.inputs<C>(1, block.offsets[1], Extent(classes)) : nullptr;
  const C *scales = operands.inputs<C>(2, block.offsets[2], Extent().along(inner, steps[1]).along(outer, steps[0]));
  T *out = operands.results<T>(3, block.offsets[3], all);
  with_indices(operands, 0, block.index_dtype, block.offsets[0], Extent(inner).along(outer, inner), [&](auto *targets) {
    const int64_t length = classes * inner;
    double divisor = block.is_mean ? 0 : 1;
    for (int64_t i = 0; block.is_mean && i < outer * inner; i++) {
      const int64_t target = targets[i];
      if (target != ignored && is_in_range(target, classes)) divisor += factors ? double(factors[target]) : 1;
    }
    parallel_for(outer, std::max<int64_t>(1, class_elements / std::max<int64_t>(1, length)),
                 [&](int64_t begin, int64_t end) {
                   std::fill(out + begin * length, out + end * length, store<T>(C(0)));
                   for (int64_t row = begin; row < end; row++)
                     for (int64_t i = 0; i < inner; i++) {
                       const int64_t target = targets[row * inner + i];
                       if (target == ignored || !is_in_range(target, classes)) continue;
                       const C scale = scales[row * steps[0] + i * steps[1]] / C(divisor);
                       out[row * length + target * inner + i] = store<T>(factors ? -scale * factors[target] : -scale);
                     }
                 });
  });
}

void nll_loss_gradient(const NllLossGradientBlock &block, Operands operands) {
  switch (DType(block.dtype)) {
  case DType::float64: return nll_gradient_of<double>(block, operands);
  case DType::float32: return nll_gradient_of<float>(block, operands);
  case DType::float16: return nll_gradient_of<Float16>(block, operands);
  case DType::bfloat16: return nll_gradient_of<BFloat16>(block, operands);
  default: fail(ORCHARD_CPU_UNSUPPORTED, "expected log probabilities to be floats");
  }
}

ORCHARD_FUNCTION("marginLoss", margin_loss, MarginLossBlock, 5)
ORCHARD_FUNCTION("marginLossGradient", margin_loss_gradient, MarginLossGradientBlock, 5)
ORCHARD_FUNCTION("nllLossGradient", nll_loss_gradient, NllLossGradientBlock, 4)

} // namespace
