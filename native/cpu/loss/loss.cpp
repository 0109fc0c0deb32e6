// The functions "loss" and "lossGradient".
#include "loss.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "../streamed.h"
#include "tuning.h"

using namespace orchard;

namespace {

using tuning::loss::chunk_elements;

ORCHARD_EXPORT_NAMES(Loss)

DType checked(DType dtype) {
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected a float for a loss, got ") + dtype_names[static_cast<int>(dtype)]);
  return dtype;
}

DType accumulation_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// The operands of a call in the order of the block's nest, as addresses of their first elements. Operands that are not
// used are null.
template <int operands> struct Call {
  LossOperand names[operands];
  DType dtypes[operands];
  double factor;
  double parameters[2];
  Nest<operands> nest;
  char *first[operands];

  void find_input(const Operands &bases, int at, int64_t offset) {
    first[at] = const_cast<char *>(bases.input(at, dtypes[at], offset, nest.extent(at)));
  }
  void find_result(const Operands &bases, int at, int64_t offset) {
    first[at] = bases.result(at, dtypes[at], offset, nest.extent(at));
  }
  void leave_out(int at) {
    first[at] = nullptr;
    nest.set_strides_of(at, 0);
  }

  // Finds the addresses of the first `count` operands; a loss has up to four.
  void find_inputs(const Operands &bases, int count, const Whole (&offsets)[operands]) {
    for (int at = 0; at < 4; at++)
      if (at < count) find_input(bases, at, offsets[at]);
      else leave_out(at);
  }

  // Calls use(run) for each run of the elements [begin, end).
  template <class Use> void for_each_part(int64_t begin, int64_t end, Use &&use) const {
    const bool is_large = is_streamed(nest.count() * dtype_sizes[static_cast<int>(dtypes[0])]);
    for_each_run(nest, begin, end, [&](const int64_t (&offsets)[operands], int64_t, int64_t length) {
      LossRun run{{}, {}, length, factor, {parameters[0], parameters[1]}, is_large};
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

// Computes the loss of each element, or the sum of the losses times the factor.
void loss(const LossBlock &block, Operands operands) {
  const Loss kind = block.loss;
  const DType dtype = checked(block.dtype), result = block.is_summed ? accumulation_dtype(dtype) : dtype;
  Call<5> call{{loss_x, loss_target, loss_third, loss_fourth, loss_out},
               {dtype, dtype, dtype, dtype, result},
               block.factor,
               {block.parameters[0], block.parameters[1]},
               block.nest,
               {}};
  const bool is_summed = block.is_summed;
  const LossKernel &kernel = losses().kernels[static_cast<int>(dtype)];
  call.find_inputs(operands, kernel.operands(kind), block.offsets);
  if (is_summed) call.nest.set_strides_of(4, 0);
  else call.find_result(operands, 4, block.offsets[4]);
  char *sum_of_all = is_summed ? operands.result(4, result, block.offsets[4], Extent()) : nullptr;
  const int64_t count = call.nest.count();
  Scratch<double> sums(is_summed ? (count + chunk_elements - 1) / chunk_elements : 0);
  parallel_for(count, chunk_elements, [&](int64_t begin, int64_t end) {
    double sum = 0;
    call.for_each_part(begin, end, [&](const LossRun &run) {
      if (is_summed) sum += kernel.sum(kind, run);
      else kernel.values(kind, run);
    });
    if (is_summed) sums.data()[begin / chunk_elements] = sum;
  });
  if (!is_summed) return;
  double total = 0;
  for (int64_t chunk = 0; chunk * chunk_elements < count; chunk++) total += sums.data()[chunk];
  store_sum(sum_of_all, result, total * call.factor);
}

// Computes the requested gradients of the first three operands: the derivative times the factor and the gradient of
// each loss.
void loss_gradient(const LossGradientBlock &block, Operands operands) {
  const Loss kind = block.loss;
  const DType dtype = checked(block.dtype);
  Call<8> call{{loss_x, loss_target, loss_third, loss_fourth, loss_scale, loss_out, loss_target_out, loss_third_out},
               {dtype, dtype, dtype, dtype, accumulation_dtype(dtype), dtype, dtype, dtype},
               block.factor,
               {block.parameters[0], block.parameters[1]},
               block.nest,
               {}};
  const LossKernel &kernel = losses().kernels[static_cast<int>(dtype)];
  call.find_inputs(operands, kernel.operands(kind), block.offsets);
  call.find_input(operands, 4, block.offsets[4]);
  for (int at = 0; at < 3; at++)
    if (block.needs[at]) call.find_result(operands, 5 + at, block.offsets[5 + at]);
    else call.leave_out(5 + at);
  parallel_for(call.nest.count(), chunk_elements, [&](int64_t begin, int64_t end) {
    call.for_each_part(begin, end, [&](const LossRun &run) { kernel.gradients(kind, run); });
  });
}

ORCHARD_FUNCTION("loss", loss, LossBlock, 5)
ORCHARD_FUNCTION("lossGradient", loss_gradient, LossGradientBlock, 8)

} // namespace
