// The function "recurrent": runs a recurrent layer in one direction over a sequence.
#include "../isa.h"

#include "recurrent.h"

#include "../matmul/product.h"
#include "../memory.h"
#include "../tuning.h"

#include <cstring>

using namespace orchard;

namespace {

using tuning::recurrent::least_steps_turned;
using tuning::recurrent::most_rows_in_place;

enum Operand : int { inputs, weight, bias, hidden, cell, out, last_cell, operand_count };

class RecurrentCall {
public:
  RecurrentCall(const RecurrentBlock &block, const Operands &operands)
      : block_(block), kind_(block.kind), dtype_(block.dtype), steps_(block.steps), batch_(block.batch),
        size_(block.size) {
    if (dtype_ != DType::float64 && dtype_ != DType::float32)
      fail(ORCHARD_CPU_UNSUPPORTED,
           std::string("there is no recurrent layer of ") + dtype_names[static_cast<int>(dtype_)]);
    for (const int64_t size : {steps_, batch_, size_})
      if (size < 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected sizes of at least 0, got " + std::to_string(size));
    const int64_t width = scratch_product({gates(), size_});
    find(operands, inputs, steps_, batch_, width);
    find(operands, weight, 1, width, size_);
    if (has_bias()) find(operands, bias, 1, 1, width);
    find(operands, hidden, 1, batch_, size_);
    if (has_cell()) find(operands, cell, 1, batch_, size_), find(operands, last_cell, 1, batch_, size_);
    find(operands, out, steps_, batch_, size_);
  }

  void run() {
    if (steps_ == 0 || batch_ == 0 || size_ == 0) return;
    const int64_t width = gates() * size_, bytes = element_bytes();
    Scratch<char> sums(scratch_product({batch_, width, bytes}));
    Scratch<char> turned(is_turned() ? scratch_product({width, size_, bytes}) : 0);
    Matrix factor{data_[weight], 1, stride(block_.row_strides, weight)};
    if (is_turned()) {
      recurrent_kernels().transpose[kernel()](data_[weight], stride(block_.row_strides, weight), width, size_,
                                              turned.data());
      factor = {turned.data(), width, 1};
    }
    const char *state = data_[hidden], *cells = data_[cell];
    int64_t state_stride = stride(block_.row_strides, hidden), cell_stride = stride(block_.row_strides, cell);
    for (int64_t count = 0; count < steps_; count++) {
      const int64_t step = block_.is_reversed ? steps_ - 1 - count : count;
      const Matrix before{const_cast<char *>(state), state_stride, 1};
      multiply({dtype_,
                batch_,
                width,
                size_,
                1,
                double(added(step).data != nullptr),
                before,
                factor,
                {sums.data(), width, 1},
                added(step)});
      char *next = at(out, step);
      const int64_t next_stride = stride(block_.row_strides, out),
                    last_stride = has_cell() ? stride(block_.row_strides, last_cell) : 0;
      recurrent_kernels().activate[static_cast<int>(kind_)][kernel()](
          {batch_, size_, at(inputs, step), sums.data(), state, cells, stride(block_.row_strides, inputs), width,
           state_stride, cell_stride, next, data_[last_cell], next_stride, last_stride});
      state = next, state_stride = next_stride, cells = data_[last_cell], cell_stride = last_stride;
    }
  }

private:
  int64_t gates() const { return kind_ == RecurrentKind::lstm ? 4 : kind_ == RecurrentKind::gru ? 3 : 1; }
  bool has_cell() const { return kind_ == RecurrentKind::lstm; }
  bool has_bias() const { return block_.has_bias; }
  int kernel() const { return static_cast<int>(dtype_); }
  int64_t element_bytes() const { return dtype_sizes[static_cast<int>(dtype_)]; }
  // A product of few rows reads adjacent columns in place, so the weights are transposed once for all steps. Products
  // of more rows pack them anyway.
  bool is_turned() const { return batch_ > 1 && batch_ <= most_rows_in_place && steps_ >= least_steps_turned; }
  static int64_t stride(const Whole *strides, int operand) { return strides[operand]; }

  void find(const Operands &operands, Operand operand, int64_t steps, int64_t rows, int64_t columns) {
    Extent extent;
    extent.along(steps, block_.step_strides[operand]).along(rows, block_.row_strides[operand]).along(columns, 1);
    const int64_t offset = block_.offsets[operand];
    data_[operand] = operand >= out ? operands.result(operand, dtype_, offset, extent)
                                    : const_cast<char *>(operands.input(operand, dtype_, offset, extent));
  }

  char *at(Operand operand, int64_t step) const {
    return data_[operand] + step * stride(block_.step_strides, operand) * element_bytes();
  }

  // The addend of the product: the inputs, or a GRU's bias, since its products are scaled before inputs are added.
  Matrix added(int64_t step) const {
    if (kind_ != RecurrentKind::gru) return {at(inputs, step), stride(block_.row_strides, inputs), 1};
    return has_bias() ? Matrix{data_[bias], 0, 1} : Matrix{};
  }

  const RecurrentBlock &block_;
  const RecurrentKind kind_;
  const DType dtype_;
  const int64_t steps_, batch_, size_;
  char *data_[operand_count] = {};
};

// Elements of results that an Elman network or a GRU does not use are not written.
void recurrent(const RecurrentBlock &block, Operands operands) { RecurrentCall(block, operands).run(); }

ORCHARD_FUNCTION("recurrent", recurrent, RecurrentBlock, operand_count)
ORCHARD_EXPORT_NAMES(RecurrentKind)

} // namespace
