// The functions "crossEntropy", "crossEntropySum" and "crossEntropyGradient".
#include "cross_entropy.h"

#include "../functions.h"
#include "../indexing/indices.h"
#include "../lanes.h"
#include "../memory.h"
#include "../parallel.h"
#include "../streamed.h"
#include "tuning.h"

using namespace orchard;

namespace {

using tuning::loss::class_elements;

enum Operand { of_logits, of_targets, of_slices, of_scale, of_gradient }; // of_slices: one number per slice

// The arguments common to both passes.
struct Call {
  DType dtype, index_dtype;
  int64_t ignored;
  ClassBatch whole{}; // the fields that all batches share
  const char *logits;

  // The logits, targets and class weights are the first three operands.
  template <int slice_operands>
  Call(const ClassesHead &block, const Slices<slice_operands> &slices, const Operands &operands)
      : dtype(block.dtype), index_dtype(block.index_dtype), ignored(block.ignore_index) {
    if (dtype > DType::bfloat16)
      fail(ORCHARD_CPU_UNSUPPORTED,
           std::string("expected logits to be floats, got ") + dtype_names[static_cast<int>(dtype)]);
    const DType compute = dtype == DType::float64 ? DType::float64 : DType::float32;
    logits = operands.input(0, dtype, slices.offsets[of_logits], slices.extent(of_logits));
    whole.smoothing = block.label_smoothing;
    if (block.has_factors) whole.factors = operands.input(2, compute, block.factors_offset, Extent(slices.length));
    whole.factor_sum = block.factor_sum;
  }
};

// Calls use(batch, offsets of its first slice) for groups of slices, on several threads. If a target is out of range,
// throws Failure after the other slices are computed.
template <int operands, class Use>
void for_each_batch(const Call &call, const Slices<operands> &slices, const Operands &buffers, Use &&use) {
  const Nest<operands> &nest = slices.nest;
  int64_t run = nest.run_length(), together = slices.along[of_logits] == 1 ? 1 : std::min(run, batch_slices);
  int64_t batches = run == 0 ? 0 : (run - 1) / together + 1, tasks = run == 0 ? 0 : slices.count() / run * batches;
  int64_t grain = std::max<int64_t>(1, class_elements / std::max<int64_t>(1, together * slices.length));
  BadIndex bad;
  auto run_by = [&](auto *targets) {
    parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        int64_t first = task % batches * together, offsets[operands], slice_targets[batch_slices];
        slices.find_offsets(task / batches * run + first, offsets);
        ClassBatch batch = call.whole;
        batch.classes = slices.length;
        batch.x = element(call.logits, call.dtype, offsets[of_logits]);
        batch.along_x = slices.along[of_logits];
        batch.slices = std::min(together, run - first);
        batch.across_x = nest.run_stride(of_logits);
        batch.targets = slice_targets;
        for (int64_t slice = 0; slice < batch.slices; slice++) {
          const int64_t target = targets[offsets[of_targets] + slice * nest.run_stride(of_targets)];
          bool is_counted = target != call.ignored;
          if (is_counted && !is_in_range(target, slices.length)) bad.set(target), is_counted = false;
          slice_targets[slice] = is_counted ? target : -1;
        }
        use(batch, offsets);
      }
      if (call.whole.is_streamed) streams().finish();
    });
  };
  with_indices(buffers, 1, call.index_dtype, slices.offsets[of_targets], nest.extent(of_targets), run_by);
  bad.check(slices.length);
}

// ---------------------------------------------------------------- few classes

// The same as for_each_batch for slices of few classes; use(block, starts of its slices in each operand).
template <int operands, class Use>
void for_each_short_block(const Call &call, const Slices<operands> &slices, const Operands &buffers, Use &&use) {
  const int64_t count = slices.count(), width = short_slices(slices.length);
  const int64_t grain = std::max<int64_t>(1, class_elements / (width * slices.length));
  BadIndex bad;
  auto run_by = [&](auto *targets) {
    parallel_for((count - 1) / width + 1, grain, [&](int64_t begin, int64_t end) {
      int64_t starts[operands][most_short_slices], slice_targets[most_short_slices];
      for (int64_t number = begin; number < end; number++) {
        const int64_t in_block = std::min(width, count - number * width);
        find_starts(slices.nest, number * width, in_block, starts);
        for (int64_t slice = 0; slice < in_block; slice++) {
          const int64_t target = targets[starts[of_targets][slice]];
          bool is_counted = target != call.ignored;
          if (is_counted && !is_in_range(target, slices.length)) bad.set(target), is_counted = false;
          slice_targets[slice] = is_counted ? target : -1;
        }
        const ClassBatch &whole = call.whole;
        const ShortSlices logits{slices.length, in_block, slices.along[of_logits], starts[of_logits]};
        use(ShortClasses{call.logits, nullptr, logits, logits, slice_targets, whole.factors, whole.factor_sum,
                         whole.smoothing, whole.is_streamed},
            starts);
      }
      if (call.whole.is_streamed) streams().finish();
    });
  };
  with_indices(buffers, 1, call.index_dtype, slices.offsets[of_targets], slices.nest.extent(of_targets), run_by);
  bad.check(slices.length);
}

// ---------------------------------------------------------------- both passes

// Calls use(T{}) for the compute type of a dtype.
template <class Use> void with_compute_type(DType dtype, Use &&use) {
  if (dtype == DType::float64) use(double{});
  else use(float{});
}

// Calls use(offset of the slice's results, loss) for each slice, on several threads.
template <class Use>
void for_each_loss(const Call &call, const Slices<3> &slices, const Operands &operands, Use &&use) {
  if (are_short(slices.length, slices.count()))
    return for_each_short_block(call, slices, operands, [&](const ShortClasses &block, const auto &starts) {
      ClassLoss found[most_short_slices];
      short_cross_entropies().losses[static_cast<int>(call.dtype)](block, found);
      for (int64_t slice = 0; slice < block.logits.count; slice++) use(starts[of_slices][slice], found[slice]);
    });
  const CrossEntropyKernel &kernel = cross_entropies().kernels[static_cast<int>(call.dtype)];
  for_each_batch(call, slices, operands, [&](const ClassBatch &batch, const int64_t (&offsets)[3]) {
    ClassLoss found[batch_slices];
    kernel.losses(batch, found);
    for (int64_t slice = 0; slice < batch.slices; slice++)
      use(offsets[of_slices] + slice * slices.nest.run_stride(of_slices), found[slice]);
  });
}

// Writes two arrays in the compute type, with one number per slice: the losses, and the weights of the targets' classes
// (0 for an ignored target). Also writes log Σ exp(logits) as two planes: the largest logits, and the remaining
// logarithms.
void cross_entropy(const CrossEntropyBlock &block, Operands operands) {
  const Slices<3> slices = block.slices;
  const Call call(block, slices, operands);
  with_compute_type(call.dtype, [&](auto number) {
    using Number = decltype(number);
    const int64_t offset = slices.offsets[of_slices], count = slices.count();
    const Extent extent = slices.nest.extent(of_slices);
    Number *losses = operands.results<Number>(3, offset, extent);
    Number *used = operands.results<Number>(4, offset, extent);
    Number *log_sums = operands.results<Number>(5, offset, Extent(extent).along(2, count));
    for_each_loss(call, slices, operands, [&](int64_t at, const ClassLoss &found) {
      losses[at] = Number(found.loss);
      used[at] = Number(found.factor);
      log_sums[at] = Number(found.largest);
      log_sums[at + count] = Number(found.logarithm);
    });
  });
}

// Writes Σ losses, or with `is_mean` Σ losses / Σ weights of the targets' classes, in the compute type. The layout of
// the results is that of an array with a number per slice, which holds each loss until all are known.
void cross_entropy_sum(const CrossEntropySumBlock &block, Operands operands) {
  Slices<3> slices = block.slices;
  const Call call(block, slices, operands);
  const Extent extent = slices.nest.extent(of_slices);
  const int64_t count = slices.count();
  if (slices.offsets[of_slices] != 0 || extent.low() != 0 || extent.high() >= std::max<int64_t>(count, 1))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a dense layout of the losses");
  with_compute_type(call.dtype, [&](auto number) {
    using Number = decltype(number);
    Number *result = operands.results<Number>(3, 0, Extent());
    Scratch<Number> losses(count), used(count);
    Number *all = losses.data(), *weights = used.data();
    for_each_loss(call, slices, operands, [=](int64_t at, const ClassLoss &found) {
      all[at] = Number(found.loss);
      weights[at] = Number(found.factor);
    });
    const double total = ORCHARD_ISA::summed(count, [=](int64_t i) { return double(all[i]); });
    const double divisor =
        block.is_mean ? ORCHARD_ISA::summed(count, [=](int64_t i) { return double(weights[i]); }) : 1;
    *result = Number(total / divisor);
  });
}

// Computes the gradient of the logits, in their dtype, from the two planes of log Σ exp(logits) and the gradient of
// each loss.
void cross_entropy_gradient(const CrossEntropyGradientBlock &block, Operands operands) {
  const Slices<5> slices = block.slices;
  Call call(block, slices, operands);
  char *out = operands.result(5, call.dtype, slices.offsets[of_gradient], slices.extent(of_gradient));
  call.whole.along_out = slices.along[of_gradient];
  call.whole.is_streamed = is_streamed(slices.count() * slices.length * dtype_sizes[static_cast<int>(call.dtype)]);
  const CrossEntropyKernel &kernel = cross_entropies().kernels[static_cast<int>(call.dtype)];
  with_compute_type(call.dtype, [&](auto number) {
    using Number = decltype(number);
    const Extent planes = slices.nest.extent(of_slices).along(2, slices.count());
    const Number *log_sum = operands.inputs<Number>(3, slices.offsets[of_slices], planes);
    const Number *scale = operands.inputs<Number>(4, slices.offsets[of_scale], slices.nest.extent(of_scale));
    auto read = [&, count = slices.count()](int64_t sums_at, int64_t scale_at) {
      return ClassScale{log_sum[sums_at], log_sum[sums_at + count], scale[scale_at]};
    };
    if (are_short(slices.length, slices.count()))
      return for_each_short_block(call, slices, operands, [&](ShortClasses block, const auto &starts) {
        ClassScale given[most_short_slices];
        for (int64_t slice = 0; slice < block.logits.count; slice++)
          given[slice] = read(starts[of_slices][slice], starts[of_scale][slice]);
        block.out = out;
        block.gradients = {slices.length, block.logits.count, slices.along[of_gradient], starts[of_gradient]};
        short_cross_entropies().gradients[static_cast<int>(call.dtype)](block, given);
      });
    for_each_batch(call, slices, operands, [&](ClassBatch batch, const int64_t (&offsets)[5]) {
      ClassScale given[batch_slices];
      for (int64_t slice = 0; slice < batch.slices; slice++)
        given[slice] = read(offsets[of_slices] + slice * slices.nest.run_stride(of_slices),
                            offsets[of_scale] + slice * slices.nest.run_stride(of_scale));
      batch.out = element(out, call.dtype, offsets[of_gradient]);
      batch.across_out = slices.nest.run_stride(of_gradient);
      kernel.gradients(batch, given);
    });
  });
}

ORCHARD_FUNCTION("crossEntropy", cross_entropy, CrossEntropyBlock, 6)
ORCHARD_FUNCTION("crossEntropySum", cross_entropy_sum, CrossEntropySumBlock, 4)
ORCHARD_FUNCTION("crossEntropyGradient", cross_entropy_gradient, CrossEntropyGradientBlock, 6)

} // namespace
