#include "scan.h"

#include "../parallel.h"

#include <algorithm>

using namespace orchard;

namespace {

constexpr int64_t task_elements = 1 << 14;

// A batch is adjacent lines where these are adjacent in memory; else a few, whose chains of operations overlap.
int64_t batch_lines(const int64_t (&across)[3]) { return across[0] == 1 && across[2] == 1 ? scan_lines : 8; }

} // namespace

int32_t orchard_cpu_scan(const double *block, const void *x, const void *a, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t code = reader.whole();
    if (code < 0 || code >= scan_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no scan with the code " + std::to_string(code));
    DType from = reader.dtype(), to = reader.dtype();
    const DType dtypes[3] = {from, from, to};
    const char *x_start = element(x, from, reader.whole()), *a_start = element(a, from, reader.whole());
    char *out_start = element(out, to, reader.whole());
    ScanBatch whole{};
    whole.length = reader.whole();
    for (int64_t &stride : whole.along) stride = reader.whole();
    int64_t rank = reader.whole(), shape[scan_max_rank], strides[3][scan_max_rank];
    if (rank < 1 || rank > scan_max_rank) fail(ORCHARD_CPU_INVALID_ARGUMENT, "lines over " + std::to_string(rank) + " axes came, 1 to 8 are possible");
    for (int64_t axis = 0; axis < rank; axis++) shape[axis] = reader.whole();
    for (auto &own : strides)
      for (int64_t axis = 0; axis < rank; axis++) own[axis] = reader.whole();
    for (int operand = 0; operand < 3; operand++) whole.across[operand] = strides[operand][rank - 1];
    int64_t lines = shape[rank - 1], width = std::min(lines, batch_lines(whole.across)), batches = width > 0 ? (lines - 1) / width + 1 : 0;
    int64_t tasks = batches;
    for (int64_t axis = 0; axis + 1 < rank; axis++) tasks *= shape[axis];
    ScanKernel kernel = scans().kernels[code][static_cast<int>(from)];
    if (!kernel) fail(ORCHARD_CPU_UNSUPPORTED, std::string("this scan is not for ") + dtype_names[static_cast<int>(from)]);
    int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, width * whole.length));
    parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        ScanBatch batch = whole;
        int64_t first = task % batches * width, rest = task / batches, places[3];
        for (int operand = 0; operand < 3; operand++) places[operand] = first * whole.across[operand];
        for (int64_t axis = rank - 2; axis >= 0; axis--) {
          for (int operand = 0; operand < 3; operand++) places[operand] += rest % shape[axis] * strides[operand][axis];
          rest /= shape[axis];
        }
        batch.lines = std::min(width, lines - first);
        batch.x = element(x_start, dtypes[0], places[0]);
        batch.a = element(a_start, dtypes[1], places[1]);
        batch.out = element(out_start, dtypes[2], places[2]);
        kernel(batch);
      }
    });
  });
}
