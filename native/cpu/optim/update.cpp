// The function "update".
#include "update.h"

#include "../functions.h"
#include "../parallel.h"

#include <algorithm>
#include <vector>

using namespace orchard;

namespace {

ORCHARD_EXPORT_NAMES(UpdateRule)

// Elements that one thread takes, of however many parameters, and where each parameter begins among those of all.
constexpr int64_t piece = 1 << 14, alignment = 64;

enum Operand : int { state_before, state_after, before, gradient, after, operand_count };

DType checked_float(DType dtype) {
  if (dtype <= DType::bfloat16) return dtype;
  fail(ORCHARD_CPU_UNSUPPORTED,
       std::string("expected floats to optimize, got ") + dtype_names[static_cast<int>(dtype)]);
}

DType state_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

UpdateCoefficients coefficients_of(const UpdateBlock &block) {
  return {block.sign,
          block.l2,
          block.decoupled_decay,
          block.step_size,
          block.momentum,
          block.one_minus_beta1,
          block.one_minus_beta2,
          block.bias_correction,
          block.eps};
}

UpdateElements read_parameter(const UpdateBlock &block, const Operands &operands) {
  UpdateElements own{};
  own.rule = block.rule;
  own.has_master = block.has_master;
  own.dtype = checked_float(block.dtype);
  own.gradient_dtype = checked_float(block.gradient_dtype);
  if ((own.dtype == DType::float64) != (own.gradient_dtype == DType::float64))
    fail(ORCHARD_CPU_UNSUPPORTED, "expected float64 gradients of float64 parameters, and of no others");
  const DType state = state_dtype(own.dtype);
  const int64_t start = block.start;
  own.coefficients = coefficients_of(block);
  own.plane = block.plane;
  own.count = block.size;
  const Extent elements(own.count),
      planes = Extent(own.count).along(update_planes(own.rule) + own.has_master, own.plane);
  own.state_before = operands.input(state_before, state, block.state_before_offset + start, planes);
  own.state_after = operands.result(state_after, state, block.state_after_offset + start, planes);
  own.before = operands.input(before, own.dtype, block.before_offset, elements);
  own.gradient = operands.input(gradient, own.gradient_dtype, block.gradient_offset, elements);
  own.after = operands.result(after, own.dtype, block.after_offset, elements);
  return own;
}

// Elements [from, to) of these.
UpdateElements part(const UpdateElements &whole, int64_t from, int64_t to) {
  UpdateElements own = whole;
  const DType state = state_dtype(whole.dtype);
  own.state_before = element(whole.state_before, state, from);
  own.state_after = element(whole.state_after, state, from);
  own.before = element(whole.before, whole.dtype, from);
  own.gradient = element(whole.gradient, whole.gradient_dtype, from);
  own.after = element(whole.after, whole.dtype, from);
  own.count = to - from;
  return own;
}

void update_part(const UpdateElements &whole, int64_t from, int64_t to) {
  const Updates &table = updates();
  (whole.dtype == DType::float64 ? table.wide : table.narrow)(part(whole, from, to));
}

// The parameters lie one behind the other, and threads take pieces of them all.
void run(const std::vector<UpdateElements> &each) {
  std::vector<int64_t> starts{0};
  for (const UpdateElements &own : each)
    starts.push_back(starts.back() + (own.count + alignment - 1) / alignment * alignment);
  parallel_for((starts.back() + piece - 1) / piece, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * piece, last = std::min(end * piece, starts.back());
    auto at = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), first) - starts.begin()) - 1;
    for (; at < each.size() && starts[at] < last; at++) {
      const int64_t from = std::max(first - starts[at], int64_t(0)), to = std::min(last - starts[at], each[at].count);
      if (from < to) update_part(each[at], from, to);
    }
  });
}

// A step over dense parameters. The state, float32 (float64 of float64 parameters), is a row-major [planes, elements]:
// the state of the rule, then the master weights where there are any. What is before may be what is after.
void update(const Rows<UpdateBlock> &rows) {
  std::vector<UpdateElements> each;
  each.reserve(static_cast<size_t>(rows.count()));
  for_each_row(rows, [&](const UpdateBlock &block, const Operands &operands) {
    each.push_back(read_parameter(block, operands));
  });
  run(each);
}

ORCHARD_ROWS_FUNCTION("update", update, UpdateBlock, operand_count)

} // namespace
