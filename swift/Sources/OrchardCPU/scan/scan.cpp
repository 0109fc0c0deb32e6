#include "scan.h"

#include "../memory.h"
#include "../parallel.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

using namespace orchard;

namespace {

constexpr int64_t task_elements = 1 << 14;
constexpr int64_t long_line = 1 << 16; // lines of this length and more, where they are few, are divided among threads
constexpr int64_t few_lines = 4;
constexpr int64_t part_elements = 1 << 14; // they stay in the first-level cache for their second time

struct Call {
  const ScanKernel &kernel;
  DType dtypes[3]; // of x, a, out
  const char *x, *a;
  char *out;
  ScanBatch whole; // what batches share
  int64_t rank, shape[scan_max_rank], strides[3][scan_max_rank];

  // Lines along the last of the other axes, from `first` of the row of lines with this number.
  ScanBatch batch_at(int64_t row, int64_t first, int64_t lines) const {
    ScanBatch batch = whole;
    int64_t places[3];
    for (int operand = 0; operand < 3; operand++) places[operand] = first * whole.across[operand];
    for (int64_t axis = rank - 2; axis >= 0; axis--) {
      for (int operand = 0; operand < 3; operand++) places[operand] += row % shape[axis] * strides[operand][axis];
      row /= shape[axis];
    }
    batch.lines = lines;
    batch.x = element(x, dtypes[0], places[0]);
    batch.a = element(a, dtypes[1], places[1]);
    batch.out = element(out, dtypes[2], places[2]);
    return batch;
  }
};

Call read_call(const double *block, const void *x, const void *a, void *out) {
  BlockReader reader(block);
  int64_t code = reader.whole();
  if (code < 0 || code >= scan_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no scan with the code " + std::to_string(code));
  DType from = reader.dtype(), to = reader.dtype();
  Call call{scans().kernels[code][static_cast<int>(from)], {from, from, to}, nullptr, nullptr, nullptr, {}, 0, {}, {}};
  if (!call.kernel.lines) fail(ORCHARD_CPU_UNSUPPORTED, std::string("this scan is not for ") + dtype_names[static_cast<int>(from)]);
  call.x = element(x, from, reader.whole());
  call.a = element(a, from, reader.whole());
  call.out = element(out, to, reader.whole());
  call.whole.length = reader.whole();
  for (int64_t &stride : call.whole.along) stride = reader.whole();
  call.rank = reader.whole();
  if (call.rank < 1 || call.rank > scan_max_rank)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "lines over " + std::to_string(call.rank) + " axes came, 1 to 8 are possible");
  for (int64_t axis = 0; axis < call.rank; axis++) call.shape[axis] = reader.whole();
  for (auto &own : call.strides)
    for (int64_t axis = 0; axis < call.rank; axis++) own[axis] = reader.whole();
  for (int operand = 0; operand < 3; operand++) call.whole.across[operand] = call.strides[operand][call.rank - 1];
  return call;
}

void run_lines(const Call &call, int64_t rows, int64_t lines) {
  int64_t together = call.whole.across[0] == 1 && call.whole.across[2] == 1 ? scan_lines : scan_together;
  int64_t width = std::min(lines, together), batches = width > 0 ? (lines - 1) / width + 1 : 0;
  int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, width * call.whole.length));
  parallel_for(rows * batches, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      int64_t first = task % batches * width;
      call.kernel.lines(call.batch_at(task / batches, first, std::min(width, lines - first)));
    }
  });
}

// What comes before each part of a line, once the parts before it are known.
class Prefixes {
public:
  Prefixes(int64_t parts) : numbers_(static_cast<size_t>(parts)), known_(new std::atomic<bool>[static_cast<size_t>(parts)]()) {}

  void set(int64_t part, ScanNumber number) {
    numbers_.data()[part] = number;
    known_[static_cast<size_t>(part)].store(true, std::memory_order_release);
  }
  // Waits for the thread that has the part before, which has begun earlier.
  ScanNumber wait_for(int64_t part) {
    while (!known_[static_cast<size_t>(part)].load(std::memory_order_acquire)) std::this_thread::yield();
    return numbers_.data()[part];
  }

private:
  Scratch<ScanNumber> numbers_;
  std::unique_ptr<std::atomic<bool>[]> known_;
};

// A line of adjacent elements, read from memory once: a thread sums its part up, waits for what comes before it, tells the next one, and
// walks along its part while that is in its cache (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016).
// The parts depend on the length only, and so do the results.
void run_long_line(const Call &call, const ScanBatch &line) {
  int64_t step = line.along[0], parts = (line.length - 1) / part_elements + 1;
  Prefixes prefixes(parts);
  parallel_for(line.length, part_elements, [&](int64_t begin, int64_t end) {
    int64_t part = begin / part_elements, count = end - begin;
    const char *x = element(line.x, call.dtypes[0], begin * step);
    char *out = element(line.out, call.dtypes[2], begin * step);
    ScanNumber own = call.kernel.total(x, step, count), before = part > 0 ? prefixes.wait_for(part) : call.kernel.total(x, step, 0);
    if (part + 1 < parts) prefixes.set(part + 1, call.kernel.joined(before, own));
    call.kernel.part(x, out, step, count, before);
  });
}

} // namespace

int32_t orchard_cpu_scan(const double *block, const void *x, const void *a, void *out) {
  return guarded([&] {
    Call call = read_call(block, x, a, out);
    int64_t lines = call.shape[call.rank - 1], rows = 1;
    for (int64_t axis = 0; axis + 1 < call.rank; axis++) rows *= call.shape[axis];
    int64_t step = call.whole.along[0];
    bool has_parts = call.kernel.part && (step == 1 || step == -1) && call.whole.along[2] == step;
    if (!has_parts || call.whole.length < long_line || rows * lines >= few_lines) return run_lines(call, rows, lines);
    for (int64_t row = 0; row < rows; row++)
      for (int64_t own = 0; own < lines; own++) run_long_line(call, call.batch_at(row, own, 1));
  });
}
