#include "loss.h"

#include "../indexing/nest.h"
#include "../memory.h"
#include "../parallel.h"
#include "../streamed.h"

using namespace orchard;

namespace {

constexpr int64_t grain = 1 << 15; // elements: chunks depend on sizes only, and so do the sums over them

Loss read_loss(BlockReader &reader) {
  int64_t code = reader.whole();
  if (code < 0 || code >= loss_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no loss with the code " + std::to_string(code));
  return Loss(code);
}

DType read_float(BlockReader &reader) {
  DType dtype = reader.dtype();
  if (dtype > DType::bfloat16) fail(ORCHARD_CPU_UNSUPPORTED, "losses are for floats");
  return dtype;
}

DType wide_of(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// The operands of a call: where each begins, in the order of the block's nest.
template <int operands> struct Call {
  LossOperand names[operands];
  char *first[operands];
  DType dtypes[operands];
  double factor;
  Nest<operands> nest;

  // Calls use(run) for each run of the elements [begin, end).
  template <class Use> void for_each_part(int64_t begin, int64_t end, Use &&use) const {
    for_each_run(nest, begin, end, [&](const int64_t(&places)[operands], int64_t, int64_t length) {
      LossRun run{{}, {}, length, factor, is_streamed(nest.count() * dtype_sizes[static_cast<int>(dtypes[0])])};
      for (int at = 0; at < operands; at++) {
        if (!first[at]) continue;
        run.operands[names[at]] = element(first[at], dtypes[at], places[at]);
        run.strides[names[at]] = nest.run_stride(at);
      }
      use(run);
    });
  }
};

char *changeable(const void *memory) { return static_cast<char *>(const_cast<void *>(memory)); }

void store_wide(char *out, DType wide, double value) {
  if (wide == DType::float64) *reinterpret_cast<double *>(out) = value;
  else *reinterpret_cast<float *>(out) = static_cast<float>(value);
}

} // namespace

int32_t orchard_cpu_loss(const double *block, const void *x, const void *target, const void *weight, const void *pos_weight,
                         void *out) {
  return guarded([&] {
    BlockReader reader(block);
    Loss loss = read_loss(reader);
    DType dtype = read_float(reader);
    bool is_summed = reader.whole() != 0;
    Call<5> call{{loss_x, loss_target, loss_weight, loss_positive, loss_out}, {}, {dtype, dtype, dtype, dtype, dtype}, reader.real(), {}};
    const void *memories[] = {x, target, weight, pos_weight, out};
    if (is_summed) call.dtypes[4] = wide_of(dtype);
    for (int at = 0; at < 5; at++) call.first[at] = element(changeable(memories[at]), call.dtypes[at], reader.whole());
    call.nest = read_nest<5>(reader);
    int64_t count = call.nest.count();
    const LossKernel &kernel = losses().kernels[static_cast<int>(dtype)];
    Scratch<double> sums(is_summed ? (count + grain - 1) / grain : 0);
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      double sum = 0;
      call.for_each_part(begin, end, [&](const LossRun &run) {
        if (is_summed) sum += kernel.sum(loss, run);
        else kernel.values(loss, run);
      });
      if (is_summed) sums.data()[begin / grain] = sum;
    });
    if (!is_summed) return;
    double total = 0;
    for (int64_t chunk = 0; chunk * grain < count; chunk++) total += sums.data()[chunk];
    store_wide(call.first[4], call.dtypes[4], total * call.factor);
  });
}

int32_t orchard_cpu_loss_gradient(const double *block, const void *x, const void *target, const void *weight,
                                  const void *pos_weight, const void *scale, void *gradient, void *target_gradient) {
  return guarded([&] {
    BlockReader reader(block);
    Loss loss = read_loss(reader);
    DType dtype = read_float(reader);
    bool is_wanted[7] = {true, true, true, true, true, reader.whole() != 0, reader.whole() != 0};
    Call<7> call{{loss_x, loss_target, loss_weight, loss_positive, loss_scale, loss_out, loss_target_out},
                 {},
                 {dtype, dtype, dtype, dtype, wide_of(dtype), dtype, dtype},
                 reader.real(),
                 {}};
    const void *memories[] = {x, target, weight, pos_weight, scale, gradient, target_gradient};
    for (int at = 0; at < 7; at++) {
      char *first = element(changeable(memories[at]), call.dtypes[at], reader.whole());
      call.first[at] = is_wanted[at] ? first : nullptr;
    }
    call.nest = read_nest<7>(reader);
    const LossKernel &kernel = losses().kernels[static_cast<int>(dtype)];
    parallel_for(call.nest.count(), grain, [&](int64_t begin, int64_t end) {
      call.for_each_part(begin, end, [&](const LossRun &run) { kernel.slopes(loss, run); });
    });
  });
}
