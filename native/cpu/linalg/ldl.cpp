#include "ldl.h"

#include "batches.h"

using namespace orchard;

namespace {

void ldl_factor(const LdlFactorBlock &block, Operands operands) {
  const int64_t batch = block.batch, n = block.size;
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(batch, n, n);
    const T *a = operands.inputs<T>(0, 0, all);
    T *ld = operands.results<T>(1, 0, all);
    int32_t *pivots = operands.results<int32_t>(2, 0, matrices(batch, 1, n));
    int32_t *info = operands.results<int32_t>(3, 0, Extent(batch));
    if (batch == 0) return;
    for_each_matrix<T>(batch, n * n * n / 3, 2 * n, [&](int64_t matrix, T *work) {
      T *factors = ld + matrix * n * n;
      std::copy_n(a + matrix * n * n, n * n, factors);
      info[matrix] = static_cast<int32_t>(ldl_kernels().of<T>().factorize(factors, n, pivots + matrix * n, work));
    });
  });
}

void ldl_solve(const LdlSolveBlock &block, Operands operands) {
  const int64_t batch = block.batch, n = block.size, columns = block.columns;
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const Extent sides = matrices(batch, n, columns);
    const T *ld = operands.inputs<T>(0, 0, matrices(batch, n, n));
    const int32_t *pivots = operands.inputs<int32_t>(1, 0, matrices(batch, 1, n));
    const T *b = operands.inputs<T>(2, 0, sides);
    T *x = operands.results<T>(3, 0, sides);
    if (sides.is_empty()) return;
    for_each_matrix<T>(batch, 2 * n * n * columns, 0, [&](int64_t matrix, T *) {
      T *solution = x + matrix * n * columns;
      std::copy_n(b + matrix * n * columns, n * columns, solution);
      ldl_kernels().of<T>().solve(ld + matrix * n * n, pivots + matrix * n, solution, n, columns);
    });
  });
}

ORCHARD_FUNCTION("ldlFactor", ldl_factor, LdlFactorBlock, 4)
ORCHARD_FUNCTION("ldlSolve", ldl_solve, LdlSolveBlock, 4)

} // namespace
