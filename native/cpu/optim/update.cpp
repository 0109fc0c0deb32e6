// orchard_cpu_update of orchard_cpu.h.
#include "update.h"

#include "../parallel.h"

using namespace orchard;

namespace {

constexpr int max_parameters = 9;
constexpr int64_t chunk = 1 << 14; // elements that one thread takes

struct Call {
  int64_t parameters = 0;
  UpdateElements each[max_parameters];
  int64_t first_chunk[max_parameters + 1] = {};
};

UpdateRule read_rule(BlockReader &reader) {
  int64_t code = reader.whole();
  if (code < 0 || code >= update_rule_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no rule with the code " + std::to_string(code));
  return static_cast<UpdateRule>(code);
}

DType read_float(BlockReader &reader) {
  DType dtype = reader.dtype();
  if (dtype <= DType::bfloat16) return dtype;
  fail(ORCHARD_CPU_UNSUPPORTED, std::string("only floats are optimized, not ") + dtype_names[static_cast<int>(dtype)]);
}

UpdateElements read_common(BlockReader &reader, const void *state_before, void *state_after) {
  UpdateElements common{};
  common.rule = read_rule(reader);
  common.has_master = reader.whole() != 0;
  common.dtype = read_float(reader);
  common.gradient_dtype = read_float(reader);
  if ((common.dtype == DType::float64) != (common.gradient_dtype == DType::float64))
    fail(ORCHARD_CPU_UNSUPPORTED, "a float64 parameter has float64 gradients, and no other parameter has");
  DType state = common.dtype == DType::float64 ? DType::float64 : DType::float32;
  common.plane = reader.whole();
  common.state_before = element(state_before, state, reader.whole());
  common.state_after = element(state_after, state, reader.whole());
  return common;
}

// One parameter: how many elements, where they begin in a plane, offsets before, of the gradient and after, coefficients.
UpdateElements read_parameter(BlockReader &reader, const UpdateElements &common, const void *before, const void *gradient, void *after) {
  UpdateElements own = common;
  DType state = common.dtype == DType::float64 ? DType::float64 : DType::float32;
  own.count = reader.whole();
  int64_t start = reader.whole();
  own.state_before = element(common.state_before, state, start);
  own.state_after = element(common.state_after, state, start);
  own.before = element(before, common.dtype, reader.whole());
  own.gradient = element(gradient, common.gradient_dtype, reader.whole());
  own.after = element(after, common.dtype, reader.whole());
  UpdateCoefficients &k = own.coefficients;
  for (double *next : {&k.sign, &k.l2, &k.shrink, &k.step_size, &k.keep, &k.take1, &k.take2, &k.root, &k.eps}) *next = reader.real();
  return own;
}

// Elements [from, to) of these.
UpdateElements part(const UpdateElements &whole, int64_t from, int64_t to) {
  UpdateElements own = whole;
  DType state = whole.dtype == DType::float64 ? DType::float64 : DType::float32;
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

} // namespace

int32_t orchard_cpu_update(const double *block, const void *state_before, void *state_after, const void *before0, const void *before1,
                           const void *before2, const void *before3, const void *before4, const void *before5, const void *before6,
                           const void *before7, const void *before8, const void *gradient0, const void *gradient1, const void *gradient2,
                           const void *gradient3, const void *gradient4, const void *gradient5, const void *gradient6,
                           const void *gradient7, const void *gradient8, void *after0, void *after1, void *after2, void *after3,
                           void *after4, void *after5, void *after6, void *after7, void *after8) {
  return guarded([&] {
    const void *before[] = {before0, before1, before2, before3, before4, before5, before6, before7, before8};
    const void *gradient[] = {gradient0, gradient1, gradient2, gradient3, gradient4, gradient5, gradient6, gradient7, gradient8};
    void *after[] = {after0, after1, after2, after3, after4, after5, after6, after7, after8};
    BlockReader reader(block);
    Call call;
    UpdateElements common = read_common(reader, state_before, state_after);
    call.parameters = reader.whole();
    if (call.parameters < 1 || call.parameters > max_parameters)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "1 to 9 parameters are updated at once, not " + std::to_string(call.parameters));
    for (int64_t at = 0; at < call.parameters; at++) {
      call.each[at] = read_parameter(reader, common, before[at], gradient[at], after[at]);
      call.first_chunk[at + 1] = call.first_chunk[at] + (call.each[at].count + chunk - 1) / chunk;
    }
    run(call);
  });
}
