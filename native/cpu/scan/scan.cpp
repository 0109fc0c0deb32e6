// The function "scan".
#include "scan.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

using namespace orchard;

namespace {

using namespace tuning::scan;

ORCHARD_EXPORT_NAMES(Scan)

struct Call {
  const ScanKernel &kernel;
  BatchedSlices slices;
};

const ScanKernel &find(Scan operation, DType dtype) {
  const ScanKernel &kernel = scans().kernels[static_cast<int>(operation)][static_cast<int>(dtype)];
  if (!kernel.slices)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("this scan is not defined for ") + dtype_names[static_cast<int>(dtype)]);
  return kernel;
}

void run_slices(const Call &call) {
  bool is_adjacent = call.slices.whole.across[0] == 1 && call.slices.whole.across[2] == 1;
  SliceTasks tasks = call.slices.tasks(is_adjacent ? max_adjacent_slices : slices_together, task_elements);
  parallel_for(tasks.count, tasks.grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) call.kernel.slices(call.slices.batch_of(tasks, task));
  });
}

// The carried values before each part of a slice, which become available once the previous parts are done.
class Prefixes {
public:
  Prefixes(int64_t parts) : numbers_(parts), known_(new std::atomic<bool>[static_cast<size_t>(parts)]()) {}

  void set(int64_t part, ScanNumber number) {
    numbers_.data()[part] = number;
    known_[static_cast<size_t>(part)].store(true, std::memory_order_release);
  }
  // Waits for the previous part, which another thread has already started.
  ScanNumber wait_for(int64_t part) {
    while (!known_[static_cast<size_t>(part)].load(std::memory_order_acquire)) std::this_thread::yield();
    return numbers_.data()[part];
  }

private:
  Scratch<ScanNumber> numbers_;
  std::unique_ptr<std::atomic<bool>[]> known_;
};

// Scans a slice of adjacent elements, reading memory once. A thread sums its part, waits for the prefix, passes the
// total on to the next part, and scans its part while that is still in its cache (Merrill and Garland, "Single-pass
// Parallel Prefix Scan with Decoupled Look-back", 2016). The parts depend on the length only, so the results do too.
void run_long_slice(const Call &call, const SliceBatch &slice) {
  int64_t step = slice.along[0], parts = (slice.length - 1) / part_elements + 1;
  Prefixes prefixes(parts);
  parallel_for(slice.length, part_elements, [&](int64_t begin, int64_t end) {
    int64_t part = begin / part_elements, count = end - begin;
    const char *x = element(slice.x, call.slices.dtypes[0], begin * step);
    char *out = element(slice.out, call.slices.dtypes[2], begin * step);
    ScanNumber total = call.kernel.total(x, step, count);
    ScanNumber before = part > 0 ? prefixes.wait_for(part) : call.kernel.total(x, step, 0);
    if (part + 1 < parts) prefixes.set(part + 1, call.kernel.joined(before, total));
    int64_t later = begin + thread_count() * part_elements; // the part that this thread will most likely claim next
    const char *next =
        later + part_elements <= slice.length ? element(slice.x, call.slices.dtypes[0], later * step) : nullptr;
    call.kernel.part({x, out, step, count, before, slice.is_streamed, next});
  });
}

// Scans along an axis. Only recurrences read `a`. out has the dtype of x, or int64 if x is not a float.
void scan(const ScanBlock &block, Operands operands) {
  const Scan operation = block.operation;
  const DType from = block.from, to = from <= DType::bfloat16 ? from : DType::int64;
  if (block.to != to)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, std::string("expected a result of ") + dtype_names[static_cast<int>(to)] +
                                           ", got one of " + dtype_names[static_cast<int>(DType(block.to))]);
  const bool has_coefficients = operation == Scan::recurrence || operation == Scan::shiftedRecurrence;
  const Slices<3> slices = block.slices;
  Call call{find(operation, from), {slices, from, to, operands, has_coefficients}};
  if (slices.is_empty()) return;
  const SliceBatch &whole = call.slices.whole;
  int64_t rows = call.slices.rows(), row_slices = call.slices.row_slices(), step = whole.along[0];
  bool has_parts = call.kernel.part && (step == 1 || step == -1) && whole.along[2] == step;
  if (!has_parts || whole.length < long_slice || rows * row_slices >= few_slices) return run_slices(call);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t slice = 0; slice < row_slices; slice++) run_long_slice(call, call.slices.batch_at(row, slice, 1));
}

ORCHARD_FUNCTION("scan", scan, ScanBlock, 3)

} // namespace
