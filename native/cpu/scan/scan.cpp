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
constexpr int64_t part_elements = 1 << 14; // they stay in the second-level cache for their second time

struct Call {
  const ScanKernel &kernel;
  Lines lines;
};

Call read_call(const double *block, const void *x, const void *a, void *out) {
  BlockReader reader(block);
  int64_t code = reader.whole();
  if (code < 0 || code >= scan_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no scan with the code " + std::to_string(code));
  DType from = reader.dtype(), to = reader.dtype();
  const ScanKernel &kernel = scans().kernels[code][static_cast<int>(from)];
  if (!kernel.lines) fail(ORCHARD_CPU_UNSUPPORTED, std::string("this scan is not for ") + dtype_names[static_cast<int>(from)]);
  return {kernel, Lines(reader, from, to, x, a, out)};
}

void run_lines(const Call &call) {
  bool is_adjacent = call.lines.whole.across[0] == 1 && call.lines.whole.across[2] == 1;
  LineTasks tasks = call.lines.tasks(is_adjacent ? scan_lines : scan_together, task_elements);
  parallel_for(tasks.count, tasks.grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) call.kernel.lines(call.lines.batch_of(tasks, task));
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
void run_long_line(const Call &call, const LineBatch &line) {
  int64_t step = line.along[0], parts = (line.length - 1) / part_elements + 1;
  Prefixes prefixes(parts);
  parallel_for(line.length, part_elements, [&](int64_t begin, int64_t end) {
    int64_t part = begin / part_elements, count = end - begin;
    const char *x = element(line.x, call.lines.dtypes[0], begin * step);
    char *out = element(line.out, call.lines.dtypes[2], begin * step);
    ScanNumber own = call.kernel.total(x, step, count), before = part > 0 ? prefixes.wait_for(part) : call.kernel.total(x, step, 0);
    if (part + 1 < parts) prefixes.set(part + 1, call.kernel.joined(before, own));
    int64_t later = begin + thread_count() * part_elements; // where this thread most likely goes on
    const char *next = later + part_elements <= line.length ? element(line.x, call.lines.dtypes[0], later * step) : nullptr;
    call.kernel.part({x, out, step, count, before, line.is_streamed, next});
  });
}

} // namespace

int32_t orchard_cpu_scan(const double *block, const void *x, const void *a, void *out) {
  return guarded([&] {
    Call call = read_call(block, x, a, out);
    const LineBatch &line = call.lines.whole;
    int64_t rows = call.lines.rows(), lines = call.lines.row_lines(), step = line.along[0];
    bool has_parts = call.kernel.part && (step == 1 || step == -1) && line.along[2] == step;
    if (!has_parts || line.length < long_line || rows * lines >= few_lines) return run_lines(call);
    for (int64_t row = 0; row < rows; row++)
      for (int64_t own = 0; own < lines; own++) run_long_line(call, call.lines.batch_at(row, own, 1));
  });
}
