// The functions "reductionDerivative" and "selectAt".
#include "derivatives.h"

#include "../functions.h"
#include "../parallel.h"

using namespace orchard;

namespace {

ORCHARD_EXPORT_NAMES(ReductionDerivative)

constexpr int64_t grain = 1 << 14;

const DerivativeKernels &kernels_for(DType dtype) {
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected floats for a gradient, got ") + dtype_names[static_cast<int>(dtype)]);
  return reduction_derivatives().kernels[static_cast<int>(dtype)];
}

// out = operation(x, y), of floats.
void reduction_derivative(const ReductionDerivativeBlock &block, Operands operands) {
  auto [x, y, out] = operands.first<3>();
  const DType dtype = block.dtype;
  const ReductionDerivative operation = block.operation;
  const double parameter = block.parameter;
  const char *a = element(x, dtype, block.offsets[0]), *b = element(y, dtype, block.offsets[1]);
  char *result = element(out, dtype, block.offsets[2]);
  const Nest<2> nest = block.nest;
  const DerivativeKernels &kernels = kernels_for(dtype);
  parallel_for(nest.count(), grain, [&](int64_t begin, int64_t end) {
    kernels.derivative(operation, parameter, nest, begin, end, a, b, result);
  });
}

// out = x where an element's index along an axis is the (int64) index there, else 0.
void select_at(const SelectAtBlock &block, Operands operands) {
  auto [x, indices, out] = operands.first<3>();
  const DType dtype = block.dtype;
  const int64_t size = block.size, inner = block.inner;
  const char *a = element(x, dtype, block.offsets[0]);
  const int64_t *index = static_cast<const int64_t *>(indices) + block.offsets[1];
  char *result = element(out, dtype, block.offsets[2]);
  const Nest<2> nest = block.nest;
  const DerivativeKernels &kernels = kernels_for(dtype);
  parallel_for(nest.count(), grain,
               [&](int64_t begin, int64_t end) { kernels.select_at(size, inner, nest, begin, end, a, index, result); });
}

ORCHARD_FUNCTION("reductionDerivative", reduction_derivative, ReductionDerivativeBlock, 3)
ORCHARD_FUNCTION("selectAt", select_at, SelectAtBlock, 3)

} // namespace
