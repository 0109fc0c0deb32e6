#include "multiply.h"

#include "../matmul/product.h"
#include "../memory.h"
#include "../parallel.h"
#include "packed_rows.h"
#include "tuning.h"

#include <algorithm>
#include <optional>

using namespace orchard;

namespace {

using namespace tuning::quant;

// Returns the number of rows of weights that are unpacked at a time.
int64_t unpacked_rows(int64_t rows, int64_t columns) {
  return std::min(rows, std::max<int64_t>(64, unpacked_floats / std::max<int64_t>(columns, 1) / 16 * 16));
}

// Returns the rows of weights per task, in whole tiles, if each row takes `products` multiplications.
int64_t weight_rows(int64_t products) {
  return std::max<int64_t>(8, task_products / std::max<int64_t>(products, 1) / 8 * 8);
}

// Returns the kernel for byte products with `count` rows of x, or null if there is none.
ManyRowsProduct product_of_bytes(int64_t count, const Weights &weights) {
  return count >= many_rows && weights.columns > 0 && has_levels(weights) ? many_rows_product() : nullptr;
}

struct Product {
  const Weights &weights;
  WideRows x;
  int64_t count;
  float *out;

  // Computes x Wᵀ, or x W, one block of rows of weights at a time. For x W, the blocks' products are added.
  void unpacked(bool is_transposed) const {
    const int64_t columns = weights.columns, rows = weights.rows;
    const int64_t block = unpacked_rows(rows, columns);
    Scratch<float> values(scratch_product({block, columns}));
    for (int64_t first = 0; first < rows; first += block) {
      const int64_t block_rows = std::min(block, rows - first);
      parallel_for(block_rows, value_rows(columns), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row++)
          quant_kernels().unpack(weights, first + row, 0, columns, values.data() + row * columns);
      });
      multiply(is_transposed ? part_of_transposed(first, block_rows, values.data())
                             : part(first, block_rows, values.data()));
    }
  }

  // out[:, first …] = x valuesᵀ
  MatrixProduct part(int64_t first, int64_t rows, float *values) const {
    const int64_t columns = weights.columns;
    const Matrix right = {address(values), 1, columns}, part_of_out = {address(out + first), weights.rows, 1};
    return {DType::float32, count, rows, columns, 1, 0, x.from_column(0), right, part_of_out, {}};
  }

  // out += x[:, first …] values
  MatrixProduct part_of_transposed(int64_t first, int64_t rows, float *values) const {
    const int64_t columns = weights.columns;
    const Matrix right = {address(values), columns, 1}, sums = {address(out), columns, 1};
    return {DType::float32, count, columns, rows, 1, first > 0 ? 1.0 : 0.0, x.from_column(first), right, sums, sums};
  }

  // Divides the rows of weights into tasks of whole tiles.
  template <class Body> void for_rows(Body body) const {
    parallel_for(weights.rows, weight_rows(count * weights.columns), body);
  }

  void forward() const {
    for_rows([&](int64_t begin, int64_t end) { quant_kernels().multiply(weights, x.values, count, begin, end, out); });
  }

  // Multiplies x quantized to 8 bits: as bytes, or as the floats that the levels represent.
  void fast() const {
    const FastKernels &kernels = fast_kernels();
    const int64_t columns = weights.columns;
    if (const ManyRowsProduct multiply = product_of_bytes(count, weights))
      return blocks(multiply, PackedBlocks(x, count, columns).blocks());
    if (count >= many_rows || !kernels.multiply) {
      Scratch<float> values(scratch_product({count, columns}));
      parallel_for(count, value_rows(columns), [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at++) kernels.round(x.row(at), columns, values.data() + at * columns);
      });
      return Product{weights, {values.data(), columns, 1}, count, out}.exact();
    }
    const PackedRows packed(x, count, columns);
    for_rows([&](int64_t begin, int64_t end) { packed.multiply(weights, begin, end, out); });
  }

  // Each task has at least two blocks of rows of weights.
  void blocks(ManyRowsProduct multiply, const ByteBlocks &packed) const {
    const int64_t both = 2 * rows_of_block, tasks = weight_rows(count * weights.columns) / both;
    parallel_for(weights.rows, std::max<int64_t>(1, tasks) * both,
                 [&](int64_t begin, int64_t end) { multiply(weights, packed, count, begin, end, out); });
  }

  void exact() const {
    if (count >= many_rows && weights.columns > 0) unpacked(false);
    else forward();
  }

  void run(bool is_fast) const {
    if (is_fast && has_levels(weights)) fast();
    else exact();
  }

  void transposed() const {
    if (count >= many_rows && weights.rows > 0) return unpacked(true);
    const int64_t tasks = (weights.columns + transposed_columns - 1) / transposed_columns;
    parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        const int64_t first = task * transposed_columns;
        quant_kernels().multiply_transposed(weights, x.values, count, first,
                                            std::min(first + transposed_columns, weights.columns), out);
      }
    });
  }
};

// The rows of x in a call: used in place, or copied to dense float32.
class GivenRows {
public:
  // Each row has `width` values. If `needs_dense`, strided rows are copied.
  GivenRows(const ProductRows &block, const Operands &operands, int operand, int64_t width, bool needs_dense)
      : GivenRows(Strided(block, operands, operand, width), width, needs_dense) {}
  const WideRows &rows() const { return rows_; }

private:
  struct Strided {
    const char *x;
    DType dtype;
    int64_t batches, batch_rows, strides[3];

    Strided(const ProductRows &block, const Operands &operands, int operand, int64_t width)
        : dtype(block.dtype), batch_rows(block.batch_rows) {
      const int64_t count = block.count;
      if (batch_rows < 1 || count % batch_rows != 0)
        fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected whole batches of rows");
      batches = count / batch_rows;
      for (int axis = 0; axis < 3; axis++) strides[axis] = block.x_strides[axis];
      const Extent all = Extent().along(batches, strides[0]).along(batch_rows, strides[1]).along(width, strides[2]);
      x = operands.input(operand, dtype, block.x_offset, all);
    }
    bool has_one_row_stride() const { return batches <= 1 || strides[0] == batch_rows * strides[1]; }
    bool is_dense(int64_t width) const {
      return (strides[2] == 1 || width <= 1) && (strides[1] == width || batches * batch_rows <= 1);
    }
    void widen(int64_t width, float *out) const {
      const int64_t stretch = strides[2] == 1 ? width : 1; // number of contiguous elements
      for (int64_t batch = 0; batch < batches; batch++)
        for (int64_t row = 0; row < batch_rows; row++)
          for (int64_t column = 0; column < width; column += stretch, out += stretch) {
            const int64_t at = batch * strides[0] + row * strides[1] + column * strides[2];
            quant_kernels().widen(element(x, dtype, at), dtype, out, stretch);
          }
    }
  };

  GivenRows(const Strided &given, int64_t width, bool needs_dense)
      : wide_(is_read_here(given, width, needs_dense) ? 0 : scratch_product({given.batches, given.batch_rows, width})) {
    if (is_read_here(given, width, needs_dense)) {
      const bool is_dense = given.is_dense(width);
      rows_ = {reinterpret_cast<const float *>(given.x), is_dense ? width : given.strides[1],
               is_dense ? 1 : given.strides[2]};
      return;
    }
    given.widen(width, wide_.data());
    rows_ = {wide_.data(), width, 1};
  }
  static bool is_read_here(const Strided &given, int64_t width, bool needs_dense) {
    return given.dtype == DType::float32 && given.has_one_row_stride() && (!needs_dense || given.is_dense(width));
  }

  Scratch<float> wide_;
  WideRows rows_;
};

// out[i, n] += bias[n]
void add_bias(float *out, int64_t count, int64_t width, const float *bias) {
  parallel_for(count, std::max<int64_t>(1, (1 << 15) / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++)
      for (int64_t column = 0; column < width; column++) out[row * width + column] += bias[column];
  });
}

// A result [count, width] that is computed in float32, and its optional bias.
class Result {
public:
  Result(const Operands &operands, int operand, DType dtype, int64_t count, int64_t width, const char *bias)
      : dtype_(dtype), count_(count), width_(width), bias_(bias),
        out_(operands.result(operand, dtype, 0, Extent(width).along(count, width))),
        wide_(dtype == DType::float32 ? 0 : scratch_product({count, width})) {}
  bool is_empty() const { return count_ == 0 || width_ == 0; }
  float *sums() { return dtype_ == DType::float32 ? reinterpret_cast<float *>(out_) : wide_.data(); }

  // Rounds the sums to the dtype, before and after adding the bias.
  void settle() {
    if (is_empty()) return;
    const QuantKernels &kernels = quant_kernels();
    const int64_t size = count_ * width_;
    const bool is_wide = dtype_ == DType::float32;
    if (!is_wide) kernels.narrow(sums(), dtype_, out_, size);
    if (!bias_) return;
    if (is_wide) return add_bias(sums(), count_, width_, reinterpret_cast<const float *>(bias_));
    Scratch<float> wide_bias(width_);
    kernels.widen(bias_, dtype_, wide_bias.data(), width_);
    kernels.widen(out_, dtype_, sums(), size);
    add_bias(sums(), count_, width_, wide_bias.data());
    kernels.narrow(sums(), dtype_, out_, size);
  }

private:
  DType dtype_;
  int64_t count_, width_;
  const char *bias_;
  char *out_;
  Scratch<float> wide_;
};

// out [count, rows] = x Wᵀ for x [count, columns], or out [count, columns] = x W for x [count, rows]. Sums are in
// float32, in an order that depends on sizes only. They are rounded to the dtype of x, and again after a bias is added.
void quantized_matmul(const QuantizedMatmulBlock &block, Operands operands) {
  const Weights weights = weights_of(block, operands, 0);
  const DType dtype = block.dtype;
  const int64_t count = block.count;
  const bool is_transposed = block.is_transposed;
  check_narrow_float(dtype);
  const int64_t width = is_transposed ? weights.rows : weights.columns;
  const int64_t out_width = is_transposed ? weights.columns : weights.rows;
  const GivenRows x(block, operands, 3, width, count < many_rows || (block.is_fast && !is_transposed));
  const char *bias = block.has_bias ? operands.input(4, dtype, block.bias_offset, Extent(out_width)) : nullptr;
  Result result(operands, 5, dtype, count, out_width, bias);
  if (result.is_empty()) return;
  const Product product = {weights, x.rows(), count, result.sums()};
  if (is_transposed) product.transposed();
  else product.run(block.is_fast);
  result.settle();
}

// Several products with the same rows of x, which are packed to bytes once. If there are few rows, all products share
// one set of tasks. Each product has the same bits as if it were computed alone.
struct Projections {
  const Product (&all)[3];
  int64_t columns, count;

  // Calls multiply(product, begin, end) for rows of the weights, one product after the other.
  template <class Multiply> void for_rows(Multiply multiply) const {
    int64_t starts[4] = {};
    for (int which = 0; which < 3; which++) starts[which + 1] = starts[which] + all[which].weights.rows;
    parallel_for(starts[3], weight_rows(count * columns), [&](int64_t begin, int64_t end) {
      for (int which = 0; which < 3; which++) {
        const int64_t first = std::max(begin, starts[which]), last = std::min(end, starts[which + 1]);
        if (first < last) multiply(all[which], first - starts[which], last - starts[which]);
      }
    });
  }

  bool have_levels() const {
    return std::all_of(all, all + 3, [](const Product &product) { return has_levels(product.weights); });
  }

  void run(bool is_fast) const {
    const bool by_bytes = is_fast && have_levels() && columns > 0;
    if (by_bytes && count >= many_rows && many_rows_product()) {
      const PackedBlocks packed(all[0].x, count, columns);
      for (const Product &product : all) product.blocks(many_rows_product(), packed.blocks());
    } else if (by_bytes && count < many_rows && fast_kernels().multiply) {
      const PackedRows packed(all[0].x, count, columns);
      for_rows([&](const Product &product, int64_t begin, int64_t end) {
        packed.multiply(product.weights, begin, end, product.out);
      });
    } else if (!is_fast && count < many_rows) {
      for_rows([&](const Product &product, int64_t begin, int64_t end) {
        quant_kernels().multiply(product.weights, product.x.values, count, begin, end, product.out);
      });
    } else {
      for (const Product &product : all) product.run(is_fast);
    }
  }
};

// Three results [count, rows] = x Wᵀ + bias, each computed as in `quantized_matmul`.
void quantized_projections(const QuantizedProjectionsBlock &block, Operands operands) {
  const Weights weights[3] = {weights_of(block.first, operands, 0), weights_of(block.second, operands, 3),
                              weights_of(block.third, operands, 6)};
  const DType dtype = block.dtype;
  const int64_t count = block.count, columns = weights[0].columns;
  check_narrow_float(dtype);
  if (weights[1].columns != columns || weights[2].columns != columns)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected weights of as many columns");
  const GivenRows x(block, operands, 9, columns, count < many_rows || block.is_fast);
  const auto bias = [&](int which) -> const char * {
    if (!block.has_bias[which]) return nullptr;
    return operands.input(10 + which, dtype, block.bias_offsets[which], Extent(weights[which].rows));
  };
  Result first(operands, 13, dtype, count, weights[0].rows, bias(0));
  Result second(operands, 14, dtype, count, weights[1].rows, bias(1));
  Result third(operands, 15, dtype, count, weights[2].rows, bias(2));
  const Product all[3] = {{weights[0], x.rows(), count, first.sums()},
                          {weights[1], x.rows(), count, second.sums()},
                          {weights[2], x.rows(), count, third.sums()}};
  if (count > 0) Projections{all, columns, count}.run(block.is_fast);
  for (Result *result : {&first, &second, &third}) result->settle();
}

// activation(x gateᵀ + bias) · (x upᵀ + bias), for some rows of both weights at a time, so that only a tile of the
// products is stored.
struct GatedProduct {
  const Weights &gate, &up;
  GateActivation activation;
  WideRows x;
  int64_t count;
  DType dtype;           // of x, the biases and the result
  const char *biases[2]; // null if absent
  char *out;

  static constexpr int64_t tile_values = 64 * (many_rows - 1); // size of a tile of a product, if x has few rows

  // Four tasks per thread, or fewer if a task would be too small. Reading long runs of rows of one matrix is faster
  // than alternating between short runs of two. The sums of a row do not depend on the task.
  int64_t rows_of_task() const {
    return std::max(weight_rows(2 * count * gate.columns), gate.rows / (4 * thread_count()) / 8 * 8);
  }

  // Calls multiply(weights, out) on the calling thread.
  template <class Multiply> void few(Multiply multiply) const {
    const int64_t tile_rows = tile_values / count / 8 * 8;
    parallel_for(gate.rows, rows_of_task(), [&](int64_t begin, int64_t end) {
      float products[2][tile_values];
      for (int64_t first = begin; first < end; first += tile_rows) {
        const int64_t rows = std::min(tile_rows, end - first);
        multiply(gate.part(first, rows), products[0]);
        multiply(up.part(first, rows), products[1]);
        for (int64_t at = 0; at < count; at++)
          finish(at, first, rows, products[0] + at * rows, products[1] + at * rows);
      }
    });
  }

  void many(bool is_fast) const {
    const int64_t block = unpacked_rows(gate.rows, gate.columns);
    Scratch<float> products(scratch_product({2, count, block}));
    const ManyRowsProduct by_bytes = is_fast ? product_of_bytes(count, gate) : nullptr;
    std::optional<PackedBlocks> packed; // packed once for all blocks
    if (by_bytes) packed.emplace(x, count, gate.columns);
    const auto multiply = [&](const Product &product) {
      if (by_bytes) product.blocks(by_bytes, packed->blocks());
      else product.run(is_fast);
    };
    for (int64_t first = 0; first < gate.rows; first += block) {
      const int64_t rows = std::min(block, gate.rows - first);
      float *of_gate = products.data(), *of_up = of_gate + count * rows;
      const Weights gate_part = gate.part(first, rows), up_part = up.part(first, rows);
      multiply({gate_part, x, count, of_gate});
      multiply({up_part, x, count, of_up});
      parallel_for(count, value_rows(2 * rows), [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at++) finish(at, first, rows, of_gate + at * rows, of_up + at * rows);
      });
    }
  }

  // Runs the epilogue for row `at` of the result, columns `first` to `first + width - 1`.
  void finish(int64_t at, int64_t first, int64_t width, float *of_gate, float *of_up) const {
    const GateKernels &kernels = gate_kernels();
    kernels.settle(of_gate, dtype, bias_from(0, first), width);
    kernels.settle(of_up, dtype, bias_from(1, first), width);
    kernels.apply(activation, of_gate, of_up, dtype, element(out, dtype, at * gate.rows + first), width);
  }
  const char *bias_from(int which, int64_t first) const {
    return biases[which] ? element(biases[which], dtype, first) : nullptr;
  }

  void run(bool is_fast) const {
    const bool has_bytes = is_fast && has_levels(gate);
    if (count >= many_rows || (has_bytes && !fast_kernels().multiply)) return many(is_fast);
    if (!has_bytes)
      return few([&](const Weights &part, float *tile) {
        quant_kernels().multiply(part, x.values, count, 0, part.rows, tile);
      });
    const PackedRows packed(x, count, gate.columns);
    few([&](const Weights &part, float *tile) { packed.multiply(part, 0, part.rows, tile); });
  }
};

// out [count, rows] = activation(x gateᵀ + bias) · (x upᵀ + bias) for x [count, columns]. The bits equal the results of
// two products and the operations after them, each rounded to the dtype of x.
void quantized_swiglu(const QuantizedSwigluBlock &block, Operands operands) {
  const Weights gate = weights_of(block, operands, 0);
  WeightHead up_head = block;
  std::copy_n(block.up_offsets, 3, up_head.offsets);
  const Weights up = weights_of(up_head, operands, 3);
  const DType dtype = block.dtype;
  const int64_t count = block.count;
  check_narrow_float(dtype);
  const GivenRows x(block, operands, 6, gate.columns, count < many_rows || block.is_fast);
  const auto bias = [&](bool is_there, int which) -> const char * {
    return is_there ? operands.input(7 + which, dtype, block.bias_offsets[which], Extent(gate.rows)) : nullptr;
  };
  const char *gate_bias = bias(block.has_gate_bias, 0), *up_bias = bias(block.has_up_bias, 1);
  const Extent out_extent = Extent(gate.rows).along(count, gate.rows);
  char *out = operands.result(9, dtype, 0, out_extent);
  if (out_extent.is_empty()) return;
  GatedProduct{gate, up, block.activation, x.rows(), count, dtype, {gate_bias, up_bias}, out}.run(block.is_fast);
}

ORCHARD_FUNCTION("quantizedMatmul", quantized_matmul, QuantizedMatmulBlock, 6)
ORCHARD_FUNCTION("quantizedProjections", quantized_projections, QuantizedProjectionsBlock, 16)
ORCHARD_FUNCTION("quantizedSwiglu", quantized_swiglu, QuantizedSwigluBlock, 10)

} // namespace

ORCHARD_EXPORT_NAMES(GateActivation)
