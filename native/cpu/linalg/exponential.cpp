// The function "matrixExp".
#include "exponential.h"

#include "batches.h"

using namespace orchard;

namespace {

template <int count> void read(const Real (&from)[count], double (&to)[count]) {
  for (int i = 0; i < count; i++) to[i] = from[i];
}

void matrix_exp(const MatrixExpBlock &block, Operands operands) {
  const int64_t batch = block.batch, n = block.size;
  if (n > most_exponential_rows) fail(ORCHARD_CPU_UNSUPPORTED, "expected matrices of at most 64 rows");
  ExponentialPlan plan;
  read(block.limits, plan.limits);
  read(block.coefficients8, plan.coefficients8);
  read(block.coefficients12, plan.coefficients12);
  read(block.coefficients18, plan.coefficients18);
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(batch, n, n);
    const T *a = operands.inputs<T>(0, 0, all);
    T *out = operands.results<T>(1, 0, all);
    if (all.is_empty()) return;
    const int64_t width = (n + exponential_unit - 1) / exponential_unit * exponential_unit;
    for_each_matrix<T>(batch, 12 * n * n * n, exponential_matrices * width * width, [&](int64_t matrix, T *scratch) {
      exponentials().of<T>().compute(a + matrix * n * n, out + matrix * n * n, n, plan, scratch);
    });
  });
}

ORCHARD_FUNCTION("matrixExp", matrix_exp, MatrixExpBlock, 2)

} // namespace
