// The function "runningExtremum".
#include "extremum.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::scan::task_elements;

enum Operand { of_x, of_values, of_indices };

// Writes the largest (or smallest) of the elements so far and its index, for each position along an axis.
void running_extremum(const RunningExtremumBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const Slices<3> slices = block.slices;
  const auto &functions = block.is_minimum ? running_extrema().minima : running_extrema().maxima;
  const auto run = functions[static_cast<int>(dtype)];
  if (!run)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("running extrema are not defined for ") + dtype_names[static_cast<int>(dtype)]);
  const char *x = operands.input(of_x, dtype, slices.offsets[of_x], slices.extent(of_x));
  char *values = operands.result(of_values, dtype, slices.offsets[of_values], slices.extent(of_values));
  int64_t *indices = operands.results<int64_t>(of_indices, slices.offsets[of_indices], slices.extent(of_indices));
  if (slices.is_empty()) return;
  ExtremumBatch whole{};
  whole.length = slices.length;
  for (int operand = 0; operand < 3; operand++) {
    whole.along[operand] = slices.along[operand];
    whole.across[operand] = slices.nest.run_stride(operand);
  }
  // Slices of a task; at least as many as a cache line has elements, since adjacent ones share cache lines.
  const int64_t grain = std::clamp<int64_t>(task_elements / slices.length, 16, max_extremum_slices);
  parallel_for(slices.count(), grain, [&](int64_t begin, int64_t end) {
    for_each_run(slices.nest, begin, end, [&](const int64_t (&offsets)[3], int64_t, int64_t count) {
      ExtremumBatch batch = whole;
      batch.slices = count;
      batch.x = element(x, dtype, offsets[of_x]);
      batch.values = element(values, dtype, offsets[of_values]);
      batch.indices = indices + offsets[of_indices];
      run(batch);
    });
  });
}

ORCHARD_FUNCTION("runningExtremum", running_extremum, RunningExtremumBlock, 3)

} // namespace
