// The functions "reductionDerivative" and "selectAt".
#include "derivatives.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

using namespace orchard;

namespace {

using tuning::reduction::gradient_grain;

ORCHARD_EXPORT_NAMES(ReductionDerivative)

const DerivativeKernels &kernels_for(DType dtype) {
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected floats for a gradient, got ") + dtype_names[static_cast<int>(dtype)]);
  return reduction_derivatives().kernels[static_cast<int>(dtype)];
}

// out = operation(x, y), for float dtypes.
void reduction_derivative(const ReductionDerivativeBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const ReductionDerivative operation = block.operation;
  const double parameter = block.parameter;
  const Nest<2> nest = block.nest;
  const char *a = operands.input(0, dtype, block.offsets[0], nest.extent(0));
  const char *b = operands.input(1, dtype, block.offsets[1], nest.extent(1));
  char *result = operands.result(2, dtype, block.offsets[2], Extent(nest.count()));
  const DerivativeKernels &kernels = kernels_for(dtype);
  parallel_for(nest.count(), gradient_grain, [&](int64_t begin, int64_t end) {
    kernels.derivative(operation, parameter, nest, begin, end, a, b, result);
  });
}

// out = x where an element's index along an axis equals the index (int64) given for its slice, else 0.
void select_at(const SelectAtBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t size = block.size, inner = block.inner;
  const Nest<2> nest = block.nest;
  if (nest.count() > 0 && (size < 1 || inner < 1))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected an axis of at least 1 index, got " + std::to_string(size) + " of " +
                                           std::to_string(inner) + " elements");
  const char *a = operands.input(0, dtype, block.offsets[0], nest.extent(0));
  const int64_t *index = operands.inputs<int64_t>(1, block.offsets[1], nest.extent(1));
  char *result = operands.result(2, dtype, block.offsets[2], Extent(nest.count()));
  const DerivativeKernels &kernels = kernels_for(dtype);
  parallel_for(nest.count(), gradient_grain,
               [&](int64_t begin, int64_t end) { kernels.select_at(size, inner, nest, begin, end, a, index, result); });
}

ORCHARD_FUNCTION("reductionDerivative", reduction_derivative, ReductionDerivativeBlock, 3)
ORCHARD_FUNCTION("selectAt", select_at, SelectAtBlock, 3)

} // namespace
