// The function "update".
#include "update.h"

#include "../functions.h"
#include "../parallel.h"

using namespace orchard;

namespace {

ORCHARD_EXPORT_NAMES(UpdateRule)

constexpr int64_t chunk = 1 << 14; // elements that one thread takes

// Where the operands of each parameter begin.
enum Operand : int {
  state_before,
  state_after,
  first_before,
  first_gradient = first_before + max_update_parameters,
  first_after = first_gradient + max_update_parameters,
  operand_count = first_after + max_update_parameters,
};

struct Call {
  int64_t parameters = 0;
  UpdateElements each[max_update_parameters];
  int64_t first_chunk[max_update_parameters + 1] = {};
};

DType checked_float(DType dtype) {
  if (dtype <= DType::bfloat16) return dtype;
  fail(ORCHARD_CPU_UNSUPPORTED,
       std::string("expected floats to optimize, got ") + dtype_names[static_cast<int>(dtype)]);
}

DType state_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

UpdateCoefficients coefficients_of(const UpdateBlock &block, int64_t at) {
  return {block.sign[at],
          block.l2[at],
          block.decoupled_decay[at],
          block.step_size[at],
          block.momentum[at],
          block.one_minus_beta1[at],
          block.one_minus_beta2[at],
          block.bias_correction[at],
          block.eps[at]};
}

UpdateElements read_parameter(const UpdateBlock &block, Operands operands, int at) {
  UpdateElements own{};
  own.rule = block.rule;
  own.has_master = block.has_master;
  own.dtype = checked_float(block.dtype);
  own.gradient_dtype = checked_float(block.gradient_dtype);
  if ((own.dtype == DType::float64) != (own.gradient_dtype == DType::float64))
    fail(ORCHARD_CPU_UNSUPPORTED, "expected float64 gradients of float64 parameters, and of no others");
  const DType state = state_dtype(own.dtype);
  const int64_t start = block.starts[at];
  own.coefficients = coefficients_of(block, at);
  own.plane = block.plane;
  own.count = block.sizes[at];
  const Extent elements(own.count),
      planes = Extent(own.count).along(update_planes(own.rule) + own.has_master, own.plane);
  own.state_before = operands.input(state_before, state, block.state_before_offset + start, planes);
  own.state_after = operands.result(state_after, state, block.state_after_offset + start, planes);
  own.before = operands.input(first_before + at, own.dtype, block.before_offsets[at], elements);
  own.gradient = operands.input(first_gradient + at, own.gradient_dtype, block.gradient_offsets[at], elements);
  own.after = operands.result(first_after + at, own.dtype, block.after_offsets[at], elements);
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

void run(const Call &call) {
  const Updates &table = updates();
  auto kernel = call.each[0].dtype == DType::float64 ? table.wide : table.narrow;
  parallel_for(call.first_chunk[call.parameters], 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin, own = 0; at < end; at++) {
      while (at >= call.first_chunk[own + 1]) own++;
      const UpdateElements &whole = call.each[own];
      int64_t from = (at - call.first_chunk[own]) * chunk;
      kernel(part(whole, from, std::min(whole.count, from + chunk)));
    }
  });
}

// A step over dense parameters of a dtype. The state, float32 (float64 of float64 parameters), is a row-major [planes,
// elements]: the state of the rule, then the master weights where there are any. What is before may be what is after.
void update(const UpdateBlock &block, Operands operands) {
  Call call;
  call.parameters = block.parameters;
  if (call.parameters < 1 || call.parameters > max_update_parameters)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected 1 to 9 parameters, got " + std::to_string(call.parameters));
  for (int at = 0; at < call.parameters; at++) {
    call.each[at] = read_parameter(block, operands, at);
    call.first_chunk[at + 1] = call.first_chunk[at] + (call.each[at].count + chunk - 1) / chunk;
  }
  run(call);
}

ORCHARD_FUNCTION("update", update, UpdateBlock, operand_count)

} // namespace
