#include "normalization.h"

#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"
#include "rows.h"

using namespace orchard;

namespace {

constexpr int64_t task_elements = 1 << 13; // some 5 µs: a small batch of rows is still shared evenly
constexpr int64_t most_chunks = 256; // of rows, each with sums of its own for weight and bias: more threads than a machine has
constexpr int64_t float_rows = 64;   // rows whose sums are float32 before they join those of the chunk, which are float64

int64_t rounded_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// Memory of a thread, handed out in cache lines.
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

// Weight or bias in the type that computes.
class Vector {
public:
  Vector(const NormalizationCall &call, BlockReader &reader, const void *base) : memory_(size_t(call.length * 8)) {
    bool is_there = reader.whole() != 0;
    int64_t offset = reader.whole(), stride = reader.whole();
    if (!is_there) return;
    call.vector_kernel().widen(element(base, call.vector_dtype, offset), stride, call.length, memory_.data());
    values_ = memory_.data();
  }
  const void *values() const { return values_; }

private:
  Scratch<char> memory_;
  const void *values_ = nullptr;
};

void *present(BlockReader &reader, void *base) { return reader.whole() != 0 ? base : nullptr; }

void write_statistic(const NormalizationCall &call, void *statistics, int64_t row, double value) {
  if (!statistics) return;
  if (call.dtype == DType::float64) static_cast<double *>(statistics)[row] = value;
  else static_cast<float *>(statistics)[row] = float(value);
}

double read_statistic(const NormalizationCall &call, const void *statistics, int64_t row) {
  if (!statistics) return 0;
  return call.dtype == DType::float64 ? static_cast<const double *>(statistics)[row] : static_cast<const float *>(statistics)[row];
}

// Calls use(number, index) for the rows [begin, end), `index` being the row's place among those that `reader` has read.
template <class Use> void for_each_row(RowReader &reader, int64_t begin, int64_t end, Use &&use) {
  for (int64_t first = begin; first < end; first += rows_together) {
    int64_t count = std::min(rows_together, end - first);
    reader.read(first, count);
    for (int64_t index = 0; index < count; index++) use(first + index, index);
  }
}

struct Normalize {
  NormalizationCall call;
  const void *weight, *bias;
  void *out, *sum, *mean, *scale;

  int64_t slot_bytes() const {
    return reader_bytes(call) + 2 * call.length * call.size() + normalize_scratch * call.length * call.compute_size() + 4 * stream_line;
  }

  void run() const {
    int64_t grain = rounded_up(std::max<int64_t>(1, task_elements / call.length), rows_together);
    ScratchSlots<char> slots((call.rows + grain - 1) / grain, slot_bytes());
    parallel_for(call.rows, grain, [&](int64_t begin, int64_t end) { slots.with([&](char *memory) { run_rows(begin, end, memory); }); });
  }

  void run_rows(int64_t begin, int64_t end, char *memory) const {
    Pieces pieces(memory);
    RowReader reader(call, pieces.take(reader_bytes(call)));
    int64_t row_bytes = call.length * call.size();
    RowWriter outs(call, out, pieces.take(row_bytes)), sums(call, sum, pieces.take(row_bytes));
    NormalizeRow row{call.length, call.is_centred, call.eps, nullptr, nullptr, weight, bias, nullptr, nullptr, nullptr};
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
  int64_t chunk_rows() const { return rounded_up(std::max({call.rows / most_chunks, task_elements / call.length, int64_t(1)}), float_rows); }
  int64_t chunks() const { return (call.rows + chunk_rows() - 1) / chunk_rows(); }
  int64_t sums_of_chunk() const { return (grad_weight != nullptr) + (grad_bias != nullptr); }

  int64_t slot_bytes() const {
    int64_t computed = (gradient_scratch + 2) * call.length * call.compute_size();
    return reader_bytes(call) + call.length * call.size() + computed + 5 * stream_line;
  }

  void run() const {
    int64_t each = sums_of_chunk() * call.length;
    Scratch<double> parts(size_t(chunks() * each));
    ScratchSlots<char> slots(chunks(), slot_bytes());
    parallel_for(call.rows, chunk_rows(), [&](int64_t begin, int64_t end) {
      slots.with([&](char *memory) { run_chunk(begin, end, memory, parts.data() + begin / chunk_rows() * each); });
    });
    const double *bias_parts = parts.data() + (grad_weight ? call.length : 0);
    if (grad_weight) add_chunks(parts.data(), each, grad_weight);
    if (grad_bias) add_chunks(bias_parts, each, grad_bias);
  }

  void run_chunk(int64_t begin, int64_t end, char *memory, double *totals) const {
    Pieces pieces(memory);
    RowReader reader(call, pieces.take(reader_bytes(call)));
    RowWriter writer(call, grad_x, pieces.take(call.length * call.size()));
    int64_t wide_bytes = call.length * call.compute_size(), count = sums_of_chunk() * call.length;
    char *scratch = pieces.take(gradient_scratch * wide_bytes), *sums = pieces.take(2 * wide_bytes);
    std::fill_n(sums, 2 * wide_bytes, 0);
    std::fill_n(totals, count, 0.0);
    GradientRow row{call.length, call.is_centred, {}, nullptr, nullptr, nullptr, weight, nullptr, nullptr, nullptr, scratch};
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
    int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, chunks()));
    parallel_for(call.length, grain, [&](int64_t begin, int64_t end) {
      call.vector_kernel().total(parts + begin, step, chunks(), end - begin, element(out, call.vector_dtype, begin));
    });
  }
};

} // namespace

int32_t orchard_cpu_normalize(const double *block, const void *x, const void *residual, const void *weight, const void *bias, void *out,
                              void *sum, void *mean, void *scale) {
  return guarded([&] {
    BlockReader reader(block);
    NormalizationCall call = read_normalization(reader, {x, residual, nullptr});
    Vector own_weight(call, reader, weight), own_bias(call, reader, bias);
    sum = present(reader, sum);
    mean = present(reader, mean);
    Normalize{call, own_weight.values(), own_bias.values(), out, sum, mean, scale}.run();
  });
}

int32_t orchard_cpu_normalize_gradient(const double *block, const void *x, const void *grad_out, const void *grad_sum, const void *weight,
                                       const void *mean, const void *scale, void *grad_x, void *grad_weight, void *grad_bias) {
  return guarded([&] {
    BlockReader reader(block);
    NormalizationCall call = read_normalization(reader, {x, grad_out, grad_sum});
    Vector own_weight(call, reader, weight);
    if (!call.is_centred) mean = nullptr;
    grad_x = present(reader, grad_x);
    grad_weight = present(reader, grad_weight);
    grad_bias = present(reader, grad_bias);
    Gradient{call, own_weight.values(), mean, scale, grad_x, grad_weight, grad_bias}.run();
  });
}
