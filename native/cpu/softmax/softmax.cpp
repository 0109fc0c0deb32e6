// The function "softmax".
#include "softmax.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using namespace tuning::softmax;

ORCHARD_EXPORT_NAMES(Softmax)

struct Call {
  Softmax operation;
  BatchedSlices slices;

  DType dtype() const { return slices.dtypes[0]; }
  const SoftmaxKernel &kernel() const { return softmaxes().kernels[static_cast<int>(dtype())]; }
  bool has_adjacent_slices() const {
    return std::all_of(slices.whole.across, slices.whole.across + 3, [](int64_t stride) { return stride == 1; });
  }
};

// Returns the scratch bytes of a batch: two slices in the compute type if the batch is one slice that can't be computed
// in place, else 0.
int64_t scratch_bytes(const Call &call, int64_t width) {
  const SliceBatch &slice = call.slices.whole;
  bool in_place = call.dtype() <= DType::float32 && slice.has_adjacent_elements() && !slice.is_streamed;
  return width > 1 || in_place ? 0
                               : 2 * slice.length * (call.dtype() == DType::float64 ? sizeof(double) : sizeof(float));
}

// Each thread computes whole slices, adjacent ones together.
void run_slices(const Call &call) {
  int64_t length = std::max<int64_t>(call.slices.whole.length, 1);
  int64_t adjacent = std::clamp(batch_elements / length, fewest_slices, max_softmax_slices);
  SliceTasks tasks = call.slices.tasks(call.has_adjacent_slices() ? adjacent : 1, task_elements);
  ScratchSlots<char> slots((tasks.count + tasks.grain - 1) / tasks.grain, scratch_bytes(call, tasks.width));
  parallel_for(tasks.count, tasks.grain, [&](int64_t begin, int64_t end) {
    slots.with([&](char *scratch) {
      for (int64_t task = begin; task < end; task++)
        call.kernel().slices(call.operation, {call.slices.batch_of(tasks, task), scratch});
    });
  });
}

// Few slices, or slices that are side by side in memory, are not copied.
bool has_short_slices(const Call &call) {
  const int64_t together = call.has_adjacent_slices() ? call.slices.row_slices() : 1;
  return are_short(call.slices.whole.length, call.slices.count()) && together < 2 * short_unit;
}

// Computes blocks of short slices, whatever their strides are.
void run_short_slices(const Call &call) {
  const SliceBatch &whole = call.slices.whole;
  const int64_t count = call.slices.count(), width = short_slices(whole.length);
  const int64_t grain = std::max<int64_t>(1, task_elements / (width * whole.length));
  const auto run = short_softmaxes().blocks[static_cast<int>(call.dtype())];
  parallel_for((count - 1) / width + 1, grain, [&](int64_t begin, int64_t end) {
    int64_t starts[3][most_short_slices];
    for (int64_t block = begin; block < end; block++) {
      const int64_t first = block * width, slices = std::min(width, count - first);
      find_starts(call.slices.nest(), first, slices, starts);
      auto slices_of = [&](int operand) {
        return ShortSlices{whole.length, slices, whole.along[operand], starts[operand]};
      };
      run(call.operation,
          {whole.x, whole.second, whole.out, {slices_of(0), slices_of(1), slices_of(2)}, whole.is_streamed});
    }
    if (whole.is_streamed) streams().finish();
  });
}

// Computes a long slice in parts, each of which is read twice, possibly by different threads. The parts depend on the
// slice's length only.
void run_long_slice(const Call &call, const SliceBatch &slice) {
  int64_t parts = (slice.length - 1) / part_elements + 1;
  Scratch<SoftmaxState> states(parts);
  auto for_each_part = [&](auto use) {
    parallel_for(slice.length, part_elements, [&](int64_t begin, int64_t end) {
      const char *x = element(slice.x, call.dtype(), begin), *y = element(slice.second, call.dtype(), begin);
      use(begin, x, y, end - begin);
    });
  };
  for_each_part([&](int64_t begin, const char *x, const char *y, int64_t count) {
    states.data()[begin / part_elements] = call.kernel().state(call.operation, x, y, count);
  });
  SoftmaxState whole = states.data()[0];
  for (int64_t part = 1; part < parts; part++) whole = call.kernel().merge(call.operation, whole, states.data()[part]);
  for_each_part([&](int64_t begin, const char *x, const char *y, int64_t count) {
    char *out = element(slice.out, call.dtype(), begin);
    call.kernel().results(call.operation, x, y, out, count, whole, slice.is_streamed);
  });
}

// Computes softmax along an axis or its gradients, for float dtypes. Only gradients read y.
void softmax(const SoftmaxBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected a float for softmax, got ") + dtype_names[static_cast<int>(dtype)]);
  const Softmax operation = block.operation;
  const Slices<3> slices = block.slices;
  Call call{operation, {slices, dtype, dtype, operands, is_gradient(operation)}};
  if (slices.is_empty()) return;
  if (has_short_slices(call)) return run_short_slices(call);
  const SliceBatch &whole = call.slices.whole;
  if (whole.length < long_slice || !whole.has_adjacent_elements()) return run_slices(call);
  for (int64_t row = 0; row < call.slices.rows(); row++)
    for (int64_t slice = 0; slice < call.slices.row_slices(); slice++)
      run_long_slice(call, call.slices.batch_at(row, slice, 1));
}

ORCHARD_FUNCTION("softmax", softmax, SoftmaxBlock, 3)

} // namespace
