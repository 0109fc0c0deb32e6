#include "triangular.h"

#include "../parallel.h"

using namespace orchard;

namespace {

constexpr int64_t columns_of_task = 64;

void solve_triangular(const SolveTriangularBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, n = block.rows, columns = block.columns;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(batch, n, columns);
    const T *factors = operands.inputs<T>(0, 0, matrices(batch, n, n)), *right = operands.inputs<T>(1, 0, all);
    T *solution = operands.results<T>(2, 0, all);
    if (all.is_empty()) return;
    const int64_t parts = (columns + columns_of_task - 1) / columns_of_task;
    parallel_for(batch * parts, matrices_of_task(n * n * std::min(columns, columns_of_task)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t task = begin; task < end; task++) {
                     int64_t matrix = task / parts, first = task % parts * columns_of_task;
                     int64_t width = std::min(columns - first, columns_of_task), at = matrix * n * columns + first;
                     for (int64_t row = 0; row < n; row++)
                       std::copy_n(right + at + row * columns, width, solution + at + row * columns);
                     triangular_kernels().of<T>().solve({factors + matrix * n * n, solution + at, n, width, columns,
                                                         block.upper, block.unit_diagonal});
                   }
                 });
  });
}

ORCHARD_FUNCTION("solveTriangular", solve_triangular, SolveTriangularBlock, 3)

} // namespace
