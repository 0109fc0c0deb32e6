// The function "recurrentGradient".
//
// One product computes the sums of all steps again, from the states that "recurrent" wrote. The steps are then
// traversed backwards, with a product each.
#include "../isa.h"

#include "gradient.h"

#include "../matmul/product.h"
#include "../memory.h"

#include <algorithm>

using namespace orchard;

namespace {

enum Operand : int {
  products,
  weight,
  bias,
  hidden,
  cell,
  out,
  of_out,
  of_last_cell,
  of_products,
  of_sums,
  of_hidden,
  of_cell,
  operand_count
};

template <class T> class Backward {
public:
  Backward(const RecurrentGradientBlock &block, const Operands &operands, const RecurrentGradientKernel<T> &kernel)
      : kernel_(kernel), kind_(block.kind), dtype_(block.dtype), is_reversed_(block.is_reversed),
        has_bias_(block.has_bias), steps_(block.steps), batch_(block.batch), size_(block.size) {
    for (const int64_t size : {steps_, batch_, size_})
      if (size < 1) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected sizes of at least 1, got " + std::to_string(size));
    width_ = scratch_product({is_lstm() ? 4 : is_gru() ? 3 : 1, size_});
    const int64_t states = scratch_product({batch_, size_}), rows = scratch_product({steps_, batch_});
    const int64_t all_states = scratch_product({rows, size_}), all_gates = scratch_product({rows, width_});
    for (const Operand operand : {products, of_products}) find(block, operands, operand, all_gates);
    for (const Operand operand : {out, of_out}) find(block, operands, operand, all_states);
    for (const Operand operand : {hidden, of_hidden}) find(block, operands, operand, states);
    find(block, operands, weight, scratch_product({width_, size_}));
    if (is_gru()) find(block, operands, of_sums, all_gates);
    if (is_gru() && has_bias_) find(block, operands, bias, width_);
    if (!is_lstm()) return;
    for (const Operand operand : {cell, of_last_cell, of_cell}) find(block, operands, operand, states);
  }

  void run() {
    const int64_t states = batch_ * size_;
    Scratch<T> cells(is_lstm() ? scratch_product({steps_, states}) : 0), direct(is_gru() ? states : 0), later(states);
    find_sums();
    if (is_lstm()) {
      const T *before = data_[cell];
      for (int64_t count = 0; count < steps_; count++) {
        const int64_t step = step_at(count);
        kernel_.open_gates(batch_, size_, gates_at(step), before, cells.data() + step * states);
        before = cells.data() + step * states;
      }
      std::copy(data_[of_last_cell], data_[of_last_cell] + states, data_[of_cell]);
    }
    std::fill_n(later.data(), states, T(0));
    for (int64_t count = steps_ - 1; count >= 0; count--) {
      const int64_t step = step_at(count), previous = count > 0 ? step_at(count - 1) : -1;
      kernel_.step[static_cast<int>(kind_)](
          {batch_, size_, data_[products] + step * batch_ * width_, gates_at(step), is_gru() ? sums_at(step) : nullptr,
           previous < 0 ? data_[hidden] : data_[out] + previous * states, data_[out] + step * states,
           previous < 0 ? data_[cell] : cells.data() + previous * states, cells.data() + step * states,
           data_[of_out] + step * states, later.data(), data_[of_cell], direct.data()});
      multiply({dtype_, batch_, size_, width_, 1, is_gru() ? 1.0 : 0.0, matrix(sums_at(step), width_),
                matrix(data_[weight], size_), matrix(count > 0 ? later.data() : data_[of_hidden], size_),
                is_gru() ? matrix(direct.data(), size_) : Matrix{}});
    }
  }

private:
  bool is_lstm() const { return kind_ == RecurrentKind::lstm; }
  bool is_gru() const { return kind_ == RecurrentKind::gru; }
  int64_t step_at(int64_t count) const { return is_reversed_ ? steps_ - 1 - count : count; }
  T *gates_at(int64_t step) const { return data_[of_products] + step * batch_ * width_; }
  T *sums_at(int64_t step) const { return data_[is_gru() ? of_sums : of_products] + step * batch_ * width_; }
  static Matrix matrix(const T *data, int64_t stride) {
    return {reinterpret_cast<char *>(const_cast<T *>(data)), stride, 1};
  }

  void find(const RecurrentGradientBlock &block, const Operands &operands, Operand operand, int64_t count) {
    const int64_t offset = block.offsets[operand];
    data_[operand] = operand >= of_products ? operands.results<T>(operand, offset, Extent(count))
                                            : const_cast<T *>(operands.inputs<T>(operand, offset, Extent(count)));
  }

  // Computes the sums of all steps of an LSTM or a GRU. All but the first step have the states of their neighbors.
  void find_sums() const {
    if (!is_lstm() && !is_gru()) return;
    const int64_t others = (steps_ - 1) * batch_;
    add_sums(step_at(0), batch_, data_[hidden]);
    if (others > 0) add_sums(is_reversed_ ? 0 : 1, others, data_[out] + (is_reversed_ ? batch_ * size_ : 0));
  }
  void add_sums(int64_t step, int64_t rows, const T *states) const {
    const bool is_added = is_lstm() || has_bias_;
    const Matrix added = is_lstm() ? matrix(data_[products] + step * batch_ * width_, width_) : matrix(data_[bias], 0);
    multiply({dtype_,
              rows,
              width_,
              size_,
              1,
              is_added ? 1.0 : 0.0,
              matrix(states, size_),
              {reinterpret_cast<char *>(data_[weight]), 1, size_},
              matrix(sums_at(step), width_),
              is_added ? added : Matrix{}});
  }

  const RecurrentGradientKernel<T> &kernel_;
  const RecurrentKind kind_;
  const DType dtype_;
  const bool is_reversed_, has_bias_;
  const int64_t steps_, batch_, size_;
  int64_t width_ = 0;
  T *data_[operand_count] = {};
};

void recurrent_gradient(const RecurrentGradientBlock &block, Operands operands) {
  switch (DType(block.dtype)) {
  case DType::float64: return Backward<double>(block, operands, recurrent_gradient_kernels().float64).run();
  case DType::float32: return Backward<float>(block, operands, recurrent_gradient_kernels().float32).run();
  default:
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("there is no gradient of a recurrent layer of ") +
                                      dtype_names[static_cast<int>(DType(block.dtype))]);
  }
}

ORCHARD_FUNCTION("recurrentGradient", recurrent_gradient, RecurrentGradientBlock, operand_count)

} // namespace
