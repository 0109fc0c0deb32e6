// The functions "loss" and "lossGradient".
#include "loss.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "../streamed.h"

using namespace orchard;

namespace {

ORCHARD_EXPORT_NAMES(Loss)

constexpr int64_t grain = 1 << 15; // elements: chunks depend on sizes only, and so do the sums over them

DType checked(DType dtype) {
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected a float for a loss, got ") + dtype_names[static_cast<int>(dtype)]);
  return dtype;
}

DType accumulation_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// The operands of a call: where each begins, in the order of the block's nest. Those that are not needed are null.
template <int operands> struct Call {
  LossOperand names[operands];
  DType dtypes[operands];
  double factor;
  Nest<operands> nest;
  char *first[operands];

  void find(Operands bases, const Whole (&offsets)[operands]) {
    for (int at = 0; at < operands; at++) first[at] = element(static_cast<char *>(bases[at]), dtypes[at], offsets[at]);
  }

  // Calls use(run) for each run of the elements [begin, end).
  template <class Use> void for_each_part(int64_t begin, int64_t end, Use &&use) const {
    const bool is_large = is_streamed(nest.count() * dtype_sizes[static_cast<int>(dtypes[0])]);
    for_each_run(nest, begin, end, [&](const int64_t (&offsets)[operands], int64_t, int64_t length) {
      LossRun run{{}, {}, length, factor, is_large};
      for (int at = 0; at < operands; at++) {
        if (!first[at]) continue;
        run.operands[names[at]] = element(first[at], dtypes[at], offsets[at]);
        run.strides[names[at]] = nest.run_stride(at);
      }
      use(run);
    });
  }
};

void store_sum(char *out, DType dtype, double value) {
  if (dtype == DType::float64) *reinterpret_cast<double *>(out) = value;
  else *reinterpret_cast<float *>(out) = static_cast<float>(value);
}

// The loss of each element, or the sum of them times the factor.
void loss(const LossBlock &block, Operands operands) {
  const Loss own = block.loss;
  const DType dtype = checked(block.dtype), result = block.is_summed ? accumulation_dtype(dtype) : dtype;
  Call<5> call{{loss_x, loss_target, loss_weight, loss_positive, loss_out},
               {dtype, dtype, dtype, dtype, result},
               block.factor,
               block.nest,
               {}};
  call.find(operands, block.offsets);
  const bool is_summed = block.is_summed;
  const int64_t count = call.nest.count();
  const LossKernel &kernel = losses().kernels[static_cast<int>(dtype)];
  Scratch<double> sums(is_summed ? (count + grain - 1) / grain : 0);
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    double sum = 0;
    call.for_each_part(begin, end, [&](const LossRun &run) {
      if (is_summed) sum += kernel.sum(own, run);
      else kernel.values(own, run);
    });
    if (is_summed) sums.data()[begin / grain] = sum;
  });
  if (!is_summed) return;
  double total = 0;
  for (int64_t chunk = 0; chunk * grain < count; chunk++) total += sums.data()[chunk];
  store_sum(call.first[4], result, total * call.factor);
}

// The gradients of x and of the target that are needed, times the factor and the gradient of each loss.
void loss_gradient(const LossGradientBlock &block, Operands operands) {
  const Loss own = block.loss;
  const DType dtype = checked(block.dtype);
  Call<7> call{{loss_x, loss_target, loss_weight, loss_positive, loss_scale, loss_out, loss_target_out},
               {dtype, dtype, dtype, dtype, accumulation_dtype(dtype), dtype, dtype},
               block.factor,
               block.nest,
               {}};
  call.find(operands, block.offsets);
  if (!block.needs[0]) call.first[5] = nullptr;
  if (!block.needs[1]) call.first[6] = nullptr;
  const LossKernel &kernel = losses().kernels[static_cast<int>(dtype)];
  parallel_for(call.nest.count(), grain, [&](int64_t begin, int64_t end) {
    call.for_each_part(begin, end, [&](const LossRun &run) { kernel.gradients(own, run); });
  });
}

ORCHARD_FUNCTION("loss", loss, LossBlock, 5)
ORCHARD_FUNCTION("lossGradient", loss_gradient, LossGradientBlock, 7)

} // namespace
