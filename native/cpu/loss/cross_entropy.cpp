#include "cross_entropy.h"

#include "../indexing/indices.h"
#include "../indexing/nest.h"
#include "../parallel.h"
#include "../streamed.h"

using namespace orchard;

namespace {

constexpr int64_t task_elements = 1 << 14;
enum Operand { of_logits, of_targets, of_rows, of_scale, of_gradient }; // rows: what is one number a line, without gaps

// What both passes are given.
struct Call {
  DType dtype, index_dtype;
  int64_t ignored;
  ClassBatch whole{}; // what batches share
  const void *targets;
  int64_t targets_offset;
};

Call read_call(BlockReader &reader, const void *logits, const void *targets, const void *factors) {
  Call call{};
  call.dtype = reader.dtype();
  if (call.dtype > DType::bfloat16) fail(ORCHARD_CPU_UNSUPPORTED, "logits are floats");
  call.index_dtype = reader.dtype();
  call.whole.classes = reader.whole();
  call.ignored = reader.whole();
  call.whole.smoothing = reader.real();
  call.whole.x = element(logits, call.dtype, reader.whole());
  call.whole.along_x = reader.whole();
  call.targets = targets;
  call.targets_offset = reader.whole();
  bool has_factors = reader.whole() != 0;
  DType wide = call.dtype == DType::float64 ? DType::float64 : DType::float32;
  const char *first = element(factors, wide, reader.whole());
  call.whole.factors = has_factors ? first : nullptr;
  call.whole.factor_sum = reader.real();
  return call;
}

// Calls use(batch, places of its first line) for every few lines, on several threads.
template <int operands, class Use> void for_each_batch(const Call &call, const Nest<operands> &lines, Use &&use) {
  int64_t run = lines.run_length(), together = call.whole.along_x == 1 ? 1 : std::min(run, class_lines);
  int64_t batches = run == 0 ? 0 : (run - 1) / together + 1, tasks = run == 0 ? 0 : lines.count() / run * batches;
  int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, together * call.whole.classes));
  with_indices(call.index_dtype, call.targets, call.targets_offset, [&](auto *targets) {
    parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        int64_t first = task % batches * together, places[operands], own[class_lines];
        find_places(lines, task / batches * run + first, places);
        ClassBatch batch = call.whole;
        batch.x = element(batch.x, call.dtype, places[of_logits]);
        batch.lines = std::min(together, run - first);
        batch.across_x = lines.run_stride(of_logits);
        batch.targets = own;
        for (int64_t line = 0; line < batch.lines; line++) {
          int64_t target = targets[places[of_targets] + line * lines.run_stride(of_targets)];
          own[line] = target == call.ignored ? -1 : target;
        }
        use(batch, places);
      }
      if (call.whole.is_streamed) streams().finish();
    });
  });
}

// Calls use with the type in which numbers of a line are stored.
template <class Use> void with_wide(DType dtype, Use &&use) {
  if (dtype == DType::float64) use(double{});
  else use(float{});
}

} // namespace

int32_t orchard_cpu_cross_entropy(const double *block, const void *logits, const void *targets, const void *factors,
                                  void *losses, void *used, void *log_sums) {
  return guarded([&] {
    BlockReader reader(block);
    Call call = read_call(reader, logits, targets, factors);
    Nest<3> lines = read_nest<3>(reader);
    const CrossEntropyKernel &kernel = cross_entropies().kernels[static_cast<int>(call.dtype)];
    with_wide(call.dtype, [&](auto number) {
      using Wide = decltype(number);
      for_each_batch(call, lines, [&](const ClassBatch &batch, const int64_t (&places)[3]) {
        ClassLoss results[class_lines];
        kernel.losses(batch, results);
        for (int64_t line = 0; line < batch.lines; line++) {
          int64_t at = places[of_rows] + line * lines.run_stride(of_rows);
          static_cast<Wide *>(losses)[at] = Wide(results[line].loss);
          static_cast<Wide *>(used)[at] = Wide(results[line].factor);
          static_cast<Wide *>(log_sums)[at] = Wide(results[line].largest);
          static_cast<Wide *>(log_sums)[at + lines.count()] = Wide(results[line].logarithm);
        }
      });
    });
  });
}

int32_t orchard_cpu_cross_entropy_gradient(const double *block, const void *logits, const void *targets, const void *factors,
                                           const void *log_sums, const void *scales, void *gradient) {
  return guarded([&] {
    BlockReader reader(block);
    Call call = read_call(reader, logits, targets, factors);
    int64_t log_sums_offset = reader.whole(), scales_offset = reader.whole();
    call.whole.out = element(gradient, call.dtype, reader.whole());
    call.whole.along_out = reader.whole();
    Nest<5> lines = read_nest<5>(reader);
    call.whole.is_streamed = is_streamed(lines.count() * call.whole.classes * dtype_sizes[static_cast<int>(call.dtype)]);
    const CrossEntropyKernel &kernel = cross_entropies().kernels[static_cast<int>(call.dtype)];
    with_wide(call.dtype, [&](auto number) {
      using Wide = decltype(number);
      const Wide *log_sum = static_cast<const Wide *>(log_sums) + log_sums_offset;
      const Wide *scale = static_cast<const Wide *>(scales) + scales_offset;
      for_each_batch(call, lines, [&](ClassBatch batch, const int64_t (&places)[5]) {
        ClassSlope slopes[class_lines];
        for (int64_t line = 0; line < batch.lines; line++) {
          const Wide *own = log_sum + places[of_rows] + line * lines.run_stride(of_rows);
          slopes[line] = {own[0], own[lines.count()], scale[places[of_scale] + line * lines.run_stride(of_scale)]};
        }
        batch.out = element(batch.out, call.dtype, places[of_gradient]);
        batch.across_out = lines.run_stride(of_gradient);
        kernel.gradients(batch, slopes);
      });
    });
  });
}
