#include "softmax.h"

#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"

#include <algorithm>

using namespace orchard;

namespace {

constexpr int64_t task_elements = 1 << 14;
constexpr int64_t batch_elements = 1 << 20; // of adjacent lines, whose rows should still be long enough for memory to bring them together
constexpr int64_t fewest_lines = 64;
constexpr int64_t long_line = 1 << 17;      // a line of this length and more is divided among threads
constexpr int64_t part_elements = 1 << 15;

struct Call {
  Softmax code;
  Lines lines;

  DType dtype() const { return lines.dtypes[0]; }
  const SoftmaxKernel &kernel() const { return softmaxes().kernels[static_cast<int>(dtype())]; }
  bool has_adjacent_lines() const { return std::all_of(lines.whole.across, lines.whole.across + 3, [](int64_t stride) { return stride == 1; }); }
};

Call read_call(const double *block, const void *x, const void *y, void *out) {
  BlockReader reader(block);
  int64_t code = reader.whole();
  if (code < 0 || code >= softmax_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no softmax with the code " + std::to_string(code));
  DType dtype = reader.dtype();
  if (dtype > DType::bfloat16) fail(ORCHARD_CPU_UNSUPPORTED, std::string("softmax is for floats, not ") + dtype_names[static_cast<int>(dtype)]);
  return {Softmax(code), Lines(reader, dtype, dtype, x, y, out)};
}

// Bytes that a batch needs beside its operands: two lines in the compute type, where it is one that is not computed in its place.
int64_t scratch_bytes(const Call &call, int64_t width) {
  const LineBatch &line = call.lines.whole;
  bool in_place = call.dtype() <= DType::float32 && line.has_adjacent_elements() && !line.is_streamed;
  return width > 1 || in_place ? 0 : 2 * line.length * (call.dtype() == DType::float64 ? sizeof(double) : sizeof(float));
}

// Lines that one thread takes from end to end, adjacent ones together.
void run_lines(const Call &call) {
  int64_t length = std::max<int64_t>(call.lines.whole.length, 1);
  LineTasks tasks = call.lines.tasks(call.has_adjacent_lines() ? std::clamp(batch_elements / length, fewest_lines, softmax_lines) : 1, task_elements);
  ScratchSlots<char> slots((tasks.count + tasks.grain - 1) / tasks.grain, scratch_bytes(call, tasks.width));
  parallel_for(tasks.count, tasks.grain, [&](int64_t begin, int64_t end) {
    slots.with([&](char *scratch) {
      for (int64_t task = begin; task < end; task++) call.kernel().lines(call.code, {call.lines.batch_of(tasks, task), scratch});
    });
  });
}

// A line whose parts are looked at twice, by any thread: which parts there are depends on its length only.
void run_long_line(const Call &call, const LineBatch &line) {
  int64_t parts = (line.length - 1) / part_elements + 1;
  Scratch<SoftmaxState> states(static_cast<size_t>(parts));
  auto for_each_part = [&](auto use) {
    parallel_for(line.length, part_elements, [&](int64_t begin, int64_t end) {
      const char *x = element(line.x, call.dtype(), begin), *y = element(line.second, call.dtype(), begin);
      use(begin, x, y, end - begin);
    });
  };
  for_each_part([&](int64_t begin, const char *x, const char *y, int64_t count) {
    states.data()[begin / part_elements] = call.kernel().state(call.code, x, y, count);
  });
  SoftmaxState whole = states.data()[0];
  for (int64_t part = 1; part < parts; part++) whole = call.kernel().merge(call.code, whole, states.data()[part]);
  for_each_part([&](int64_t begin, const char *x, const char *y, int64_t count) {
    call.kernel().results(call.code, x, y, element(line.out, call.dtype(), begin), count, whole, line.is_streamed);
  });
}

} // namespace

int32_t orchard_cpu_softmax(const double *block, const void *x, const void *y, void *out) {
  return guarded([&] {
    Call call = read_call(block, x, y, out);
    const LineBatch &line = call.lines.whole;
    if (line.length < long_line || !line.has_adjacent_elements()) return run_lines(call);
    for (int64_t row = 0; row < call.lines.rows(); row++)
      for (int64_t own = 0; own < call.lines.row_lines(); own++) run_long_line(call, call.lines.batch_at(row, own, 1));
  });
}
