// The epilogue of the two products of a gated layer: activation(gate) · up.
#pragma once

#include "../../.build/generated/gate_activation.h"

#include "../block.h"
#include "../functions.h"

namespace orchard {

struct GateKernels {
  // Rounds a product to the dtype, and again after adding its bias; `bias` may be null.
  void (*settle)(float *product, DType dtype, const void *bias, int64_t count);
  // out = activation(gate) · up, rounded once.
  void (*apply)(GateActivation activation, const float *gate, const float *up, DType dtype, void *out, int64_t count);
};

} // namespace orchard

ORCHARD_ISA_TABLE(GateKernels, gate_kernels)
