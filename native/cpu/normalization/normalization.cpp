// The functions "normalize" and "normalizeGradient".
#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"
#include "rows.h"
#include "tuning.h"

using namespace orchard;

namespace {

using namespace tuning::normalization;

int64_t rounded_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// Divides a thread's scratch memory into whole cache lines.
class Pieces {
public:
  explicit Pieces(char *memory) : next_(memory) {}
  char *take(int64_t bytes) {
    char *piece = next_;
    next_ += rounded_up(bytes, stream_line);
    return piece;
  }

private:
  char *next_;
};

// The operand index of a vector, whether it is present, and its layout.
struct VectorOperand {
  int operand;
  bool is_present;
  int64_t offset, stride;
};

// A weight or bias in the compute type.
class Vector {
public:
  Vector(const NormalizationCall &call, const Operands &operands, const VectorOperand &vector)
      : memory_(scratch_product({call.length, 8})) {
    if (!vector.is_present) return;
    const char *first =
        operands.input(vector.operand, call.vector_dtype, vector.offset, Extent().along(call.length, vector.stride));
    call.vector_kernel().widen(first, vector.stride, call.length, memory_.data());
    values_ = memory_.data();
  }
  const void *values() const { return values_; }

private:
  Scratch<char> memory_;
  const void *values_ = nullptr;
};

void write_statistic(const NormalizationCall &call, void *statistics, int64_t row, double value) {
  if (!statistics) return;
  if (call.dtype == DType::float64) static_cast<double *>(statistics)[row] = value;
  else static_cast<float *>(statistics)[row] = float(value);
}

double read_statistic(const NormalizationCall &call, const void *statistics, int64_t row) {
  if (!statistics) return 0;
  if (call.dtype == DType::float64) return static_cast<const double *>(statistics)[row];
  return static_cast<const float *>(statistics)[row];
}

// Calls use(number, index) for the rows [begin, end); `index` is the row's index among those that `reader` read last.
template <class Use> void for_each_row(RowReader &reader, int64_t begin, int64_t end, Use &&use) {
  for (int64_t first = begin; first < end; first += rows_together) {
    int64_t count = std::min(rows_together, end - first);
    reader.read(first, count);
    for (int64_t index = 0; index < count; index++) use(first + index, index);
  }
}

// ---------------------------------------------------------------- short rows

bool has_short_rows(const NormalizationCall &call) { return call.length <= most_short_row && call.rows >= short_unit; }

// Calls use(first row, rows) for the blocks of short rows that make up the rows [begin, end).
template <class Use> void for_each_block(const NormalizationCall &call, int64_t begin, int64_t end, Use &&use) {
  const int64_t width = short_slices(call.length);
  for (int64_t first = begin; first < end; first += width) use(first, std::min(width, end - first));
}

// Sets the fields common to both passes. `starts` is memory for the offsets of rows.
void set_rows(const NormalizationCall &call, int64_t first, int64_t count, ShortRowsBlock &block,
              int64_t (&starts)[NormalizationCall::operands][most_short_slices]) {
  find_starts(call.slices.nest, first, count, starts);
  for (int operand = 0; operand < NormalizationCall::operands; operand++) {
    block.operands[operand] = call.first[operand];
    block.slices[operand] = {call.length, count, call.slices.along[operand], starts[operand]};
  }
  block.is_centered = call.is_centered;
  block.is_streamed = is_streamed(call.rows * call.length * call.size());
}

// ---------------------------------------------------------------- both passes

struct Normalize {
  NormalizationCall call;
  const void *weight, *bias;
  void *out, *sum, *mean, *scale;

  int64_t slot_bytes() const {
    int64_t computed = normalize_scratch * call.length * call.compute_size();
    return reader_bytes(call) + 2 * call.length * call.size() + computed + 4 * stream_line;
  }

  void run() const {
    if (has_short_rows(call)) return run_short();
    // Dense rows are read where they are, so a few long ones are divided among the threads too.
    const int64_t unit = reader_bytes(call) == 0 ? 1 : rows_together;
    const int64_t grain = rounded_up(std::max<int64_t>(1, row_task_elements / call.length), unit);
    ScratchSlots<char> slots((call.rows + grain - 1) / grain, slot_bytes());
    parallel_for(call.rows, grain,
                 [&](int64_t begin, int64_t end) { slots.with([&](char *memory) { run_rows(begin, end, memory); }); });
  }

  void run_short() const {
    const auto kernel = short_normalizations().normalize[static_cast<int>(call.dtype)];
    const int64_t width = short_slices(call.length);
    const int64_t grain = rounded_up(std::max<int64_t>(1, row_task_elements / call.length), width);
    parallel_for(call.rows, grain, [&](int64_t begin, int64_t end) {
      int64_t starts[NormalizationCall::operands][most_short_slices];
      ShortNormalize block;
      block.weight = weight, block.bias = bias, block.eps = call.eps;
      for_each_block(call, begin, end, [&](int64_t first, int64_t count) {
        set_rows(call, first, count, block, starts);
        block.out = row_of(out, first), block.sum = row_of(sum, first);
        kernel(block);
        for (int64_t row = 0; row < count; row++) {
          write_statistic(call, mean, first + row, block.means[row]);
          write_statistic(call, scale, first + row, block.scales[row]);
        }
      });
      if (block.is_streamed) streams().finish();
    });
  }

  char *row_of(void *result, int64_t number) const {
    return result ? element(result, call.dtype, number * call.length) : nullptr;
  }

  void run_rows(int64_t begin, int64_t end, char *memory) const {
    Pieces pieces(memory);
    RowReader reader(call, pieces.take(reader_bytes(call)));
    int64_t row_bytes = call.length * call.size();
    RowWriter outs(call, out, pieces.take(row_bytes)), sums(call, sum, pieces.take(row_bytes));
    NormalizeRow row{};
    row.length = call.length, row.is_centered = call.is_centered, row.eps = call.eps;
    row.weight = weight, row.bias = bias;
    row.scratch = pieces.take(normalize_scratch * call.length * call.compute_size());
    for_each_row(reader, begin, end, [&](int64_t number, int64_t index) {
      row.x = reader.row(0, index), row.residual = reader.row(1, index);
      row.out = outs.row(number), row.sum = sums.row(number);
      RowStatistics statistics = call.kernel().normalize(row);
      outs.finish_row(number), sums.finish_row(number);
      write_statistic(call, mean, number, statistics.mean);
      write_statistic(call, scale, number, statistics.scale);
    });
    outs.finish();
  }
};

struct Gradient {
  NormalizationCall call;
  const void *weight, *mean, *scale;
  void *grad_x, *grad_weight, *grad_bias;

  // Depends on sizes only.
  int64_t chunk_rows() const {
    return rounded_up(std::max({call.rows / most_chunks, row_task_elements / call.length, int64_t(1)}), float_rows);
  }
  int64_t chunks() const { return (call.rows + chunk_rows() - 1) / chunk_rows(); }
  int64_t sums_of_chunk() const { return (grad_weight != nullptr) + (grad_bias != nullptr); }

  int64_t slot_bytes() const {
    int64_t computed = (gradient_scratch + 2) * call.length * call.compute_size();
    return reader_bytes(call) + call.length * call.size() + computed + 5 * stream_line;
  }

  void run() const {
    int64_t each = sums_of_chunk() * call.length;
    Scratch<double> parts(scratch_product({chunks(), each}));
    if (has_short_rows(call)) run_short(parts.data());
    else run_long(parts.data());
    const double *bias_parts = parts.data() + (grad_weight ? call.length : 0);
    if (grad_weight) add_chunks(parts.data(), each, grad_weight);
    if (grad_bias) add_chunks(bias_parts, each, grad_bias);
  }

  void run_long(double *parts) const {
    int64_t each = sums_of_chunk() * call.length;
    ScratchSlots<char> slots(chunks(), slot_bytes());
    parallel_for(call.rows, chunk_rows(), [&](int64_t begin, int64_t end) {
      slots.with([&](char *memory) { run_chunk(begin, end, memory, parts + begin / chunk_rows() * each); });
    });
  }

  void run_short(double *parts) const {
    int64_t each = sums_of_chunk() * call.length;
    parallel_for(call.rows, chunk_rows(),
                 [&](int64_t begin, int64_t end) { run_short_chunk(begin, end, parts + begin / chunk_rows() * each); });
  }

  void run_short_chunk(int64_t begin, int64_t end, double *totals) const {
    const auto kernel = short_normalizations().gradient[static_cast<int>(call.dtype)];
    std::fill_n(totals, sums_of_chunk() * call.length, 0.0);
    int64_t starts[NormalizationCall::operands][most_short_slices];
    ShortGradient block;
    block.weight = weight;
    block.weight_sums = grad_weight ? totals : nullptr;
    block.bias_sums = grad_bias ? totals + (grad_weight ? call.length : 0) : nullptr;
    for_each_block(call, begin, end, [&](int64_t first, int64_t count) {
      set_rows(call, first, count, block, starts);
      block.grad_x = grad_x ? element(grad_x, call.dtype, first * call.length) : nullptr;
      for (int64_t row = 0; row < most_short_slices; row++) {
        block.means[row] = row < count ? read_statistic(call, mean, first + row) : 0;
        block.scales[row] = row < count ? read_statistic(call, scale, first + row) : 0;
      }
      kernel(block);
    });
    if (block.is_streamed) streams().finish();
  }

  void run_chunk(int64_t begin, int64_t end, char *memory, double *totals) const {
    Pieces pieces(memory);
    RowReader reader(call, pieces.take(reader_bytes(call)));
    RowWriter writer(call, grad_x, pieces.take(call.length * call.size()));
    int64_t wide_bytes = call.length * call.compute_size(), count = sums_of_chunk() * call.length;
    char *scratch = pieces.take(gradient_scratch * wide_bytes), *sums = pieces.take(2 * wide_bytes);
    std::fill_n(sums, 2 * wide_bytes, 0);
    std::fill_n(totals, count, 0.0);
    GradientRow row{};
    row.length = call.length, row.is_centered = call.is_centered, row.weight = weight, row.scratch = scratch;
    row.weight_sums = grad_weight ? sums : nullptr;
    row.bias_sums = grad_bias ? sums + (grad_weight ? wide_bytes : 0) : nullptr;
    for (int64_t first = begin; first < end; first += float_rows) {
      for_each_row(reader, first, std::min(end, first + float_rows), [&](int64_t number, int64_t index) {
        row.statistics = {read_statistic(call, mean, number), read_statistic(call, scale, number)};
        row.x = reader.row(0, index), row.grad_out = reader.row(1, index), row.grad_sum = reader.row(2, index);
        row.grad_x = writer.row(number);
        call.kernel().gradient(row);
        writer.finish_row(number);
      });
      call.kernel().collect(sums, count, totals);
    }
    writer.finish();
  }

  void add_chunks(const double *parts, int64_t step, void *out) const {
    int64_t grain = std::max<int64_t>(1, row_task_elements / std::max<int64_t>(1, chunks()));
    parallel_for(call.length, grain, [&](int64_t begin, int64_t end) {
      call.vector_kernel().total(parts + begin, step, chunks(), end - begin, element(out, call.vector_dtype, begin));
    });
  }
};

// Computes out and scale from x and residual, and sum and mean if their operands are present. Results and statistics
// are row-major.
void normalize(const NormalizeBlock &block, Operands operands) {
  const NormalizationCall call(block, operands, {0, 1, -1}, 1);
  Vector weight(call, operands, {2, block.has_weight, block.weight_offset, block.weight_stride});
  Vector bias(call, operands, {3, block.has_bias, block.bias_offset, block.bias_stride});
  const DType statistic = call.statistic_dtype();
  void *out = operands.result(4, call.dtype, 0, call.extent());
  void *sum = block.has_sum ? operands.result(5, call.dtype, 0, call.extent()) : nullptr;
  void *mean = block.has_mean ? operands.result(6, statistic, 0, Extent(call.rows)) : nullptr;
  void *scale = operands.result(7, statistic, 0, Extent(call.rows));
  if (call.first[1] && !sum)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a result for the sum of x and a residual, got none");
  Normalize{call, weight.values(), bias.values(), out, sum, mean, scale}.run();
}

// Computes the gradients whose operands are present from x, gradOut and gradSum, row-major. The mean is read if rows
// are centered.
void normalize_gradient(const NormalizeGradientBlock &block, Operands operands) {
  const NormalizationCall call(block, operands, {0, 1, 2}, 2);
  Vector weight(call, operands, {3, block.has_weight, block.weight_offset, block.weight_stride});
  const DType statistic = call.statistic_dtype();
  const void *mean = call.is_centered ? operands.input(4, statistic, 0, Extent(call.rows)) : nullptr;
  const void *scale = operands.input(5, statistic, 0, Extent(call.rows));
  Gradient gradient{call, weight.values(), mean, scale, nullptr, nullptr, nullptr};
  if (block.has_grad_x) gradient.grad_x = operands.result(6, call.dtype, 0, call.extent());
  if (block.has_grad_weight) gradient.grad_weight = operands.result(7, call.vector_dtype, 0, Extent(call.length));
  if (block.has_grad_bias) gradient.grad_bias = operands.result(8, call.vector_dtype, 0, Extent(call.length));
  gradient.run();
}

ORCHARD_FUNCTION("normalize", normalize, NormalizeBlock, 8)
ORCHARD_FUNCTION("normalizeGradient", normalize_gradient, NormalizeGradientBlock, 9)

} // namespace
