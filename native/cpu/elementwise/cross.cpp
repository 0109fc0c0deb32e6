// The function "cross".
#include "cross.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

using namespace orchard;

namespace {

using tuning::elementwise::cross_grain;

// out = a₁b₂ - a₂b₁, a₂b₀ - a₀b₂, a₀b₁ - a₁b₀
template <class T> void cross_products(const CrossBlock &block, const Operands &operands) {
  const Nest<3> nest(block.nest);
  const int64_t along[] = {block.strides[0], block.strides[1], block.strides[2]};
  const T *a = operands.inputs<T>(0, block.offsets[0], nest.extent(0).along(3, along[0]));
  const T *b = operands.inputs<T>(1, block.offsets[1], nest.extent(1).along(3, along[1]));
  T *out = operands.results<T>(2, block.offsets[2], nest.extent(2).along(3, along[2]));
  if (nest.count() == 0) return;
  const int64_t next[] = {nest.run_stride(0), nest.run_stride(1), nest.run_stride(2)};
  parallel_for(nest.count(), cross_grain, [&](int64_t begin, int64_t end) {
    for_each_run(nest, begin, end, [&](const int64_t (&offsets)[3], int64_t, int64_t length) {
      const T *u = a + offsets[0], *v = b + offsets[1];
      T *w = out + offsets[2];
      for (int64_t i = 0; i < length; i++, u += next[0], v += next[1], w += next[2]) {
        const T u0 = u[0], u1 = u[along[0]], u2 = u[2 * along[0]];
        const T v0 = v[0], v1 = v[along[1]], v2 = v[2 * along[1]];
        w[0] = u1 * v2 - u2 * v1;
        w[along[2]] = u2 * v0 - u0 * v2;
        w[2 * along[2]] = u0 * v1 - u1 * v0;
      }
    });
  });
}

void cross(const CrossBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  if (dtype == DType::float32) cross_products<float>(block, operands);
  else if (dtype == DType::float64) cross_products<double>(block, operands);
  else fail(ORCHARD_CPU_UNSUPPORTED, "expected float32 or float64");
}

ORCHARD_FUNCTION("cross", cross, CrossBlock, 3)

} // namespace
