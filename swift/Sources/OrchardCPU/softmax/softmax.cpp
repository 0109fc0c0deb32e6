#include "softmax.h"

#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"

#include <algorithm>

using namespace orchard;

namespace {

constexpr int64_t task_elements = 1 << 14;
constexpr int64_t batch_elements = 1 << 19; // of adjacent lines: what is copied stays in the second-level cache, and rows are long
constexpr int64_t long_line = 1 << 17;      // a line of this length and more is divided among threads
constexpr int64_t part_elements = 1 << 15;

struct Call {
  Softmax code;
  DType dtype;
  const SoftmaxKernel &kernel;
  const char *x, *y;
  char *out;
  SoftmaxBatch whole; // what batches share
  int64_t rank, shape[softmax_max_rank], strides[3][softmax_max_rank];

  bool has_adjacent_elements() const { return whole.along[0] == 1 && whole.along[1] == 1 && whole.along[2] == 1; }
  bool has_adjacent_lines() const { return whole.across[0] == 1 && whole.across[1] == 1 && whole.across[2] == 1; }

  // Lines along the last of the other axes, from `first` of the row of lines with this number.
  SoftmaxBatch batch_at(int64_t row, int64_t first, int64_t lines) const {
    SoftmaxBatch batch = whole;
    int64_t places[3];
    for (int operand = 0; operand < 3; operand++) places[operand] = first * whole.across[operand];
    for (int64_t axis = rank - 2; axis >= 0; axis--) {
      for (int operand = 0; operand < 3; operand++) places[operand] += row % shape[axis] * strides[operand][axis];
      row /= shape[axis];
    }
    batch.lines = lines;
    batch.x = element(x, dtype, places[0]);
    batch.y = element(y, dtype, places[1]);
    batch.out = element(out, dtype, places[2]);
    return batch;
  }
};

Call read_call(const double *block, const void *x, const void *y, void *out) {
  BlockReader reader(block);
  int64_t code = reader.whole();
  if (code < 0 || code >= softmax_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no softmax with the code " + std::to_string(code));
  DType dtype = reader.dtype();
  if (dtype > DType::bfloat16) fail(ORCHARD_CPU_UNSUPPORTED, std::string("softmax is for floats, not ") + dtype_names[static_cast<int>(dtype)]);
  Call call{Softmax(code), dtype, softmaxes().kernels[static_cast<int>(dtype)], nullptr, nullptr, nullptr, {}, 0, {}, {}};
  call.x = element(x, dtype, reader.whole());
  call.y = element(y, dtype, reader.whole());
  call.out = element(out, dtype, reader.whole());
  call.whole.length = reader.whole();
  for (int64_t &stride : call.whole.along) stride = reader.whole();
  call.rank = reader.whole();
  if (call.rank < 1 || call.rank > softmax_max_rank)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "lines over " + std::to_string(call.rank) + " axes came, 1 to 8 are possible");
  for (int64_t axis = 0; axis < call.rank; axis++) call.shape[axis] = reader.whole();
  for (auto &own : call.strides)
    for (int64_t axis = 0; axis < call.rank; axis++) own[axis] = reader.whole();
  for (int operand = 0; operand < 3; operand++) call.whole.across[operand] = call.strides[operand][call.rank - 1];
  return call;
}

// Lines that one thread takes from end to end, adjacent ones together.
void run_lines(const Call &call, int64_t rows, int64_t lines) {
  int64_t length = call.whole.length;
  int64_t together = call.has_adjacent_lines() ? std::clamp<int64_t>(batch_elements / std::max<int64_t>(length, 1), 8, softmax_lines) : 1;
  int64_t width = std::min(lines, together), batches = width > 0 ? (lines - 1) / width + 1 : 0, tasks = rows * batches;
  int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, width * length));
  bool in_place = call.dtype <= DType::float32 && width == 1 && call.has_adjacent_elements();
  int64_t number_bytes = call.dtype == DType::float64 ? sizeof(double) : sizeof(float);
  ScratchSlots<char> slots((tasks + grain - 1) / grain, in_place ? 0 : 2 * width * length * number_bytes);
  parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](char *scratch) {
      for (int64_t task = begin; task < end; task++) {
        int64_t first = task % batches * width;
        SoftmaxBatch batch = call.batch_at(task / batches, first, std::min(width, lines - first));
        batch.scratch = scratch;
        call.kernel.lines(call.code, batch);
      }
    });
  });
}

// A line whose parts are looked at twice, by any thread: which parts there are depends on its length only.
void run_long_line(const Call &call, const SoftmaxBatch &line) {
  int64_t parts = (line.length - 1) / part_elements + 1;
  Scratch<SoftmaxState> states(static_cast<size_t>(parts));
  auto for_each_part = [&](auto use) {
    parallel_for(line.length, part_elements, [&](int64_t begin, int64_t end) {
      const char *x = element(line.x, call.dtype, begin), *y = element(line.y, call.dtype, begin);
      use(begin, x, y, end - begin);
    });
  };
  for_each_part([&](int64_t begin, const char *x, const char *y, int64_t count) {
    states.data()[begin / part_elements] = call.kernel.state(call.code, x, y, count);
  });
  SoftmaxState whole = states.data()[0];
  for (int64_t part = 1; part < parts; part++) whole = call.kernel.merge(call.code, whole, states.data()[part]);
  for_each_part([&](int64_t begin, const char *x, const char *y, int64_t count) {
    call.kernel.results(call.code, x, y, element(line.out, call.dtype, begin), count, whole);
  });
}

} // namespace

int32_t orchard_cpu_softmax(const double *block, const void *x, const void *y, void *out) {
  return guarded([&] {
    Call call = read_call(block, x, y, out);
    int64_t lines = call.shape[call.rank - 1], rows = 1;
    for (int64_t axis = 0; axis + 1 < call.rank; axis++) rows *= call.shape[axis];
    if (call.whole.length < long_line || !call.has_adjacent_elements()) return run_lines(call, rows, lines);
    for (int64_t row = 0; row < rows; row++)
      for (int64_t line = 0; line < lines; line++) run_long_line(call, call.batch_at(row, line, 1));
  });
}
