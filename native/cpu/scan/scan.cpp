// The function "scan".
#include "scan.h"

#include "../functions.h"
#include "../parallel.h"
#include "parts.h"
#include "tuning.h"

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

void run_long_slice(const Call &call, const SliceBatch &slice) {
  const int64_t step = slice.along[0];
  const auto at = [&](int64_t place) { return element(slice.x, call.slices.dtypes[0], place * step); };
  const auto total = [&](int64_t begin, int64_t count) { return call.kernel.total(at(begin), step, count); };
  run_parts<ScanNumber>(slice.length, total, call.kernel.joined, [&](int64_t begin, int64_t count, ScanNumber before) {
    char *out = element(slice.out, call.slices.dtypes[2], begin * step);
    // the part that this thread will most likely claim next
    const int64_t later = begin + thread_count() * part_elements;
    const char *next = later + part_elements <= slice.length ? at(later) : nullptr;
    call.kernel.part({at(begin), out, step, count, before, slice.is_streamed, next});
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
