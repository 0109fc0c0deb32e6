// The functions "swigluGradient" and "dropout".
#include "activation.h"

#include "../functions.h"

using namespace orchard;

namespace {

template <class Function> Function *checked(Function *function, DType dtype) {
  if (!function)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected a float for an activation, got ") + dtype_names[static_cast<int>(dtype)]);
  return function;
}

// gateGradient = gradient·up·silu'(gate) and upGradient = gradient·silu(gate). Both results are dense. The loop's block
// describes the first result; the second has the same layout and offsets.
void swiglu_gradient(const SwigluGradientBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  auto *row = checked(activations().swiglu_gradient[static_cast<int>(dtype)], dtype);
  const int64_t size = dtype_sizes[static_cast<int>(dtype)], sizes[] = {size, size, size, size};
  const Loop loop(block.loop, sizes, operands);
  char *second = operands.result(4, dtype, 0, Extent(loop.count()));
  loop.run_placed([&](const void *const *in, void *out, int64_t start, int64_t count) {
    row(in[0], in[1], in[2], out, element(second, dtype, start), count);
  });
}

// out[i] = x[i] · scale, or 0 if the random word of element i is at most `last_dropped`.
void dropout(const DropoutBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  Dropout dropout{};
  for (int i = 0; i < 2; i++) dropout.start.key[i] = block.key[i];
  for (int i = 0; i < 4; i++) dropout.start.counter[i] = block.counter[i];
  dropout.last_dropped = block.last_dropped;
  dropout.scale = block.scale;
  auto *row = checked(activations().dropout[static_cast<int>(dtype)], dtype);
  const int64_t size = dtype_sizes[static_cast<int>(dtype)], sizes[] = {size, size};
  Loop(block.loop, sizes, operands).run_placed([&](const void *const *in, void *out, int64_t start, int64_t count) {
    row(dropout, in[0], out, start, count);
  });
}

ORCHARD_FUNCTION("swigluGradient", swiglu_gradient, SwigluGradientBlock, 5)
ORCHARD_FUNCTION("dropout", dropout, DropoutBlock, 2)

} // namespace
