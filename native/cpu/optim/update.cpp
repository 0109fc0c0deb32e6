// The function "update".
#include "update.h"

#include "../functions.h"
#include "../parallel.h"
#include "../tuning.h"

#include <algorithm>
#include <vector>

using namespace orchard;

namespace {

using tuning::optim::alignment;
using tuning::optim::task_elements;

ORCHARD_EXPORT_NAMES(UpdateRule)

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
  UpdateElements parameter{};
  parameter.rule = block.rule;
  parameter.has_master = block.has_master;
  parameter.dtype = checked_float(block.dtype);
  parameter.gradient_dtype = checked_float(block.gradient_dtype);
  if ((parameter.dtype == DType::float64) != (parameter.gradient_dtype == DType::float64))
    fail(ORCHARD_CPU_UNSUPPORTED, "expected float64 gradients of float64 parameters, and of no others");
  const DType state = state_dtype(parameter.dtype);
  const int64_t start = block.start;
  parameter.coefficients = coefficients_of(block);
  parameter.plane = block.plane;
  parameter.count = block.size;
  const Extent elements(parameter.count),
      planes = Extent(parameter.count).along(update_planes(parameter.rule) + parameter.has_master, parameter.plane);
  parameter.state_before = operands.input(state_before, state, block.state_before_offset + start, planes);
  parameter.state_after = operands.result(state_after, state, block.state_after_offset + start, planes);
  parameter.before = operands.input(before, parameter.dtype, block.before_offset, elements);
  parameter.gradient = operands.input(gradient, parameter.gradient_dtype, block.gradient_offset, elements);
  parameter.after = operands.result(after, parameter.dtype, block.after_offset, elements);
  return parameter;
}

// Returns elements [from, to) of `whole`.
UpdateElements part(const UpdateElements &whole, int64_t from, int64_t to) {
  UpdateElements elements = whole;
  const DType state = state_dtype(whole.dtype);
  elements.state_before = element(whole.state_before, state, from);
  elements.state_after = element(whole.state_after, state, from);
  elements.before = element(whole.before, whole.dtype, from);
  elements.gradient = element(whole.gradient, whole.gradient_dtype, from);
  elements.after = element(whole.after, whole.dtype, from);
  elements.count = to - from;
  return elements;
}

void update_part(const UpdateElements &whole, int64_t from, int64_t to) {
  const Updates &table = updates();
  (whole.dtype == DType::float64 ? table.wide : table.narrow)(part(whole, from, to));
}

// Numbers the elements of all parameters consecutively, and divides them into pieces for the threads.
void run(const std::vector<UpdateElements> &each) {
  std::vector<int64_t> starts{0};
  for (const UpdateElements &parameter : each)
    starts.push_back(starts.back() + (parameter.count + alignment - 1) / alignment * alignment);
  parallel_for((starts.back() + task_elements - 1) / task_elements, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * task_elements, last = std::min(end * task_elements, starts.back());
    auto at = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), first) - starts.begin()) - 1;
    for (; at < each.size() && starts[at] < last; at++) {
      const int64_t from = std::max(first - starts[at], int64_t(0)), to = std::min(last - starts[at], each[at].count);
      if (from < to) update_part(each[at], from, to);
    }
  });
}

// One step for dense parameters. The state is a row-major [planes, elements] in float32 (float64 for float64
// parameters): the rule's planes, then the master weights, if any. Inputs and outputs may be the same memory.
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
