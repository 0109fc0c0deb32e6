#include "gate.h"

#include "../elementwise/gated.h"
#include "tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::quant::gate_chunk;

// Calls use(Type<T>{}) with the type of float16 or bfloat16.
template <class Use> void with_short_floats(DType dtype, Use &&use) {
  if (dtype == DType::float16) return use(Type<Float16>{});
  use(Type<BFloat16>{});
}

void add(float *__restrict values, const float *__restrict bias, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i] += bias[i];
}

template <class T> void round_to(float *values, int64_t count) {
  T rounded[gate_chunk];
  narrow(values, rounded, count);
  widen(rounded, values, count);
}

template <class T> void settle_as(float *product, const T *bias, int64_t count) {
  float wide_bias[gate_chunk];
  for (int64_t first = 0; first < count; first += gate_chunk) {
    const int64_t length = std::min(gate_chunk, count - first);
    round_to<T>(product + first, length);
    if (!bias) continue;
    widen(bias + first, wide_bias, length);
    add(product + first, wide_bias, length);
    round_to<T>(product + first, length);
  }
}

void settle(float *product, DType dtype, const void *bias, int64_t count) {
  if (dtype != DType::float32)
    return with_short_floats(
        dtype, [&](auto type) { settle_as(product, static_cast<const typename decltype(type)::type *>(bias), count); });
  if (bias) add(product, static_cast<const float *>(bias), count);
}

template <class Share>
void multiply_as(const float *__restrict gate, const float *__restrict up, float *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = gated<Share>(gate[i]) * up[i];
}

void multiply(GateActivation activation, const float *gate, const float *up, float *out, int64_t count) {
  switch (activation) {
  case GateActivation::silu: return multiply_as<LogisticShare>(gate, up, out, count);
  case GateActivation::gelu: return multiply_as<NormalShare>(gate, up, out, count);
  case GateActivation::geluTanh: return multiply_as<TanhShare>(gate, up, out, count);
  case GateActivation::count: break;
  }
}

void apply(GateActivation activation, const float *gate, const float *up, DType dtype, void *out, int64_t count) {
  if (dtype == DType::float32) return multiply(activation, gate, up, static_cast<float *>(out), count);
  with_short_floats(dtype, [&](auto type) {
    float products[gate_chunk];
    for (int64_t first = 0; first < count; first += gate_chunk) {
      const int64_t length = std::min(gate_chunk, count - first);
      multiply(activation, gate + first, up + first, products, length);
      narrow(products, static_cast<typename decltype(type)::type *>(out) + first, length);
    }
  });
}

} // namespace

extern const GateKernels gate_kernels = {settle, apply};

} // namespace orchard::ORCHARD_ISA
