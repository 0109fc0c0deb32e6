// The function "resample". Sums are in float64 and rounded once, so results do not depend on the number of threads.
#include "resample.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <cstring>

using namespace orchard;

namespace {

using namespace tuning::pooling;

// An axis with a checked copy of its table, since another thread may change the table.
class AxisTable {
public:
  // Moves `table` past the axis's part, and subtracts that part from `left`.
  AxisTable(int64_t input, int64_t output, int64_t weights, const double *&table, int64_t &left)
      : whole_(scratch_product({3, count(output)})),
        real_(take(scratch_product({3, count(output)}) + count(input) + count(weights), left)) {
    const double *end = table + 3 * output + input + weights;
    std::copy(table, end, real_.data());
    table = end;
    const double *given = real_.data();
    int64_t *starts = whole_.data(), *lengths = starts + output, *weights_at = lengths + output, total = 0;
    bool is_alike = output > 0;
    for (int64_t i = 0; i < output; i++) {
      if (!(given[i] >= 0 && given[output + i] >= 0 && given[i] + given[output + i] <= double(input)))
        fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected windows inside the input");
      starts[i] = int64_t(given[i]);
      lengths[i] = int64_t(given[output + i]);
      weights_at[i] = total;
      total += weights > 0 ? lengths[i] : 0;
      is_alike = is_alike && lengths[i] == lengths[0];
    }
    if (total != weights) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a weight for each element of each window");
    const double *divisors = given + 2 * output, *factors = divisors + output;
    axis_ = {input,
             output,
             starts,
             lengths,
             weights_at,
             weights > 0 ? factors + input : nullptr,
             unless_ones(divisors, output),
             unless_ones(factors, input),
             is_alike ? lengths[0] : -1,
             step_of(starts, output),
             output == 0 ? 0 : *std::max_element(lengths, lengths + output)};
  }

  const ResampleAxis &axis() const { return axis_; }

private:
  static int64_t count(int64_t given) {
    if (given < 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected sizes of at least 0");
    return given;
  }
  static int64_t take(int64_t needed, int64_t &left) {
    if (needed > left) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a table of all windows");
    left -= needed;
    return needed;
  }
  static const double *unless_ones(const double *values, int64_t count) {
    return std::all_of(values, values + count, [](double value) { return value == 1; }) ? nullptr : values;
  }
  static int64_t step_of(const int64_t *starts, int64_t count) {
    if (count < 2) return 1;
    const int64_t step = starts[1] - starts[0];
    for (int64_t i = 2; i < count; i++)
      if (starts[i] - starts[i - 1] != step) return -1;
    return step;
  }

  Scratch<int64_t> whole_;
  Scratch<double> real_;
  ResampleAxis axis_;
};

Extent dense(int64_t planes, const Whole (&sizes)[resample_axes]) {
  Extent all(sizes[2]);
  for (int64_t size : {int64_t(sizes[1]), int64_t(sizes[0]), planes}) all.along(size, all.count());
  return all;
}

// Returns the approximate number of additions for a line of results.
int64_t steps_of(const Resampling &resampling) {
  const auto &[deep, high, wide] = resampling.axes;
  const double rows = double(deep.longest) * double(high.longest) * double(wide.input);
  return int64_t(std::min(1e15, rows + double(wide.output) * double(wide.longest + 1))) + 1;
}

// Whether lanes are planes instead of elements of a line: lines are short, or their windows are weighted or differ.
bool has_small_planes(const Resampling &resampling, int64_t planes) {
  const auto &[deep, high, wide] = resampling.axes;
  const bool is_even = !wide.weights && (wide.step == 1 || wide.step == 2) && wide.length > 0;
  const int64_t most = is_even && planes < many_planes ? small_plane : medium_plane;
  const int64_t least = !is_even || wide.output < medium_line ? least_planes : resamplings().together;
  return planes >= least && (is_even ? wide.output < long_line : wide.longest < long_uneven_window) &&
         deep.input * high.input * wide.input <= most && deep.output * high.output * wide.output <= most;
}

void resample_small_planes(const Resampling &resampling, int64_t planes, DType dtype, const char *x, char *out) {
  const auto &[deep, high, wide] = resampling.axes;
  const int64_t together = resamplings().together, blocks = (planes + together - 1) / together;
  const int64_t pixels = deep.input * high.input * wide.input, lines = deep.output * high.output;
  const int64_t results = lines * wide.output;
  const int64_t steps = together * (pixels + results) + lines * steps_of(resampling);
  const int64_t grain = std::max<int64_t>(1, plane_steps / steps);
  const int64_t room = together * (wide.input + pixels + results + 2 * together);
  const ResamplePlanes compute = resamplings().planes[static_cast<int>(dtype)];
  ScratchSlots<double> slots((blocks + grain - 1) / grain, room);
  parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](double *scratch) {
      for (int64_t plane = begin * together; plane < std::min(end * together, planes); plane += together)
        compute(resampling, element(x, dtype, plane * pixels), std::min(together, planes - plane),
                element(out, dtype, plane * results), scratch);
    });
  });
}

// out [planes, …output]: each element is the sum of a window of x [planes, …input], with the products of the axes'
// factors and weights, divided by the product of the axes' divisors.
void resample(const ResampleBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("expected floats, got ") + dtype_names[static_cast<int>(dtype)]);
  int64_t left = block.table_size;
  const int64_t planes = block.planes;
  const double *table = operands.inputs<double>(2, 0, Extent(left));
  const Extent from = dense(planes, block.input), to = dense(planes, block.output);
  const char *x = operands.input(0, dtype, block.offsets[0], from);
  char *out = operands.result(1, dtype, block.offsets[1], to);
  if (to.is_empty()) return;
  const AxisTable deep(block.input[0], block.output[0], block.weights[0], table, left),
      high(block.input[1], block.output[1], block.weights[1], table, left),
      wide(block.input[2], block.output[2], block.weights[2], table, left);
  const Resampling resampling = {{deep.axis(), high.axis(), wide.axis()}};
  if (has_small_planes(resampling, planes)) return resample_small_planes(resampling, planes, dtype, x, out);
  const int64_t width = wide.axis().output, lines = deep.axis().output * high.axis().output;
  const int64_t pixels = deep.axis().input * high.axis().input * wide.axis().input;
  const int64_t grain = std::max<int64_t>(1, resample_steps / steps_of(resampling));
  const int64_t line_bytes = width * dtype_sizes[static_cast<int>(dtype)];
  const ResampleLine compute = resamplings().lines[static_cast<int>(dtype)];
  ScratchSlots<double> slots((planes * lines + grain - 1) / grain, wide.axis().input + width);
  parallel_for(planes * lines, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](double *scratch) {
      for (int64_t line = begin; line < end; line++) {
        const int64_t high_lines = high.axis().output, place = line % lines;
        char *to_line = element(out, dtype, line * width);
        if (line > begin && repeats(high.axis(), place % high_lines))
          std::memcpy(to_line, to_line - line_bytes, static_cast<size_t>(line_bytes));
        else if (line - high_lines >= begin && repeats(deep.axis(), place / high_lines))
          std::memcpy(to_line, to_line - high_lines * line_bytes, static_cast<size_t>(line_bytes));
        else compute(resampling, element(x, dtype, line / lines * pixels), place, to_line, scratch);
      }
    });
  });
}

ORCHARD_FUNCTION("resample", resample, ResampleBlock, 3)

} // namespace
