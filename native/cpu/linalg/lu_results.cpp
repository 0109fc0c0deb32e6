// The functions "luParts" and "luDeterminant".
#include "lu_results.h"

#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <cmath>
#include <numeric>

using namespace orchard;

namespace {

using tuning::passes::elements_of_pass;

int64_t matrices_of_pass(int64_t elements) {
  return std::max<int64_t>(1, elements_of_pass / std::max<int64_t>(1, elements));
}

// Writes a 1 into each row of P: row i of P L U is row order[i] of L U, after all swaps in reverse order.
template <class T> void write_permutation(const int32_t *pivots, int64_t count, int64_t rows, int64_t *order, T *p) {
  std::iota(order, order + rows, 0);
  for (int64_t k = count; k-- > 0;)
    if (const int64_t pivot = pivots[k] - int64_t(1); pivot >= 0 && pivot < rows) std::swap(order[k], order[pivot]);
  std::fill_n(p, rows * rows, T(0));
  for (int64_t i = 0; i < rows; i++) p[i * rows + order[i]] = 1;
}

template <class T> void write_triangles(const T *lu, int64_t rows, int64_t columns, T *l, T *u) {
  const int64_t k = std::min(rows, columns);
  for (int64_t i = 0; i < rows; i++) {
    const T *row = lu + i * columns;
    const int64_t below = std::min(i, k);
    std::copy_n(row, below, l + i * k);
    std::fill(l + i * k + below, l + (i + 1) * k, T(0));
    if (i >= k) continue;
    l[i * k + i] = 1;
    std::fill_n(u + i * columns, i, T(0));
    std::copy(row + i, row + columns, u + i * columns + i);
  }
}

void lu_parts(const LuPartsBlock &block, Operands operands) {
  const int64_t batch = block.batch, rows = block.rows, columns = block.columns, k = std::min(rows, columns);
  const bool has_pivots = block.pivot;
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(batch, rows, columns), squares = matrices(batch, rows, rows);
    const T *lu = operands.inputs<T>(0, 0, all);
    const int32_t *pivots = operands.inputs<int32_t>(1, 0, matrices(batch, 1, k));
    T *p = has_pivots ? operands.results<T>(2, 0, squares) : nullptr;
    T *l = operands.results<T>(3, 0, matrices(batch, rows, k));
    T *u = operands.results<T>(4, 0, matrices(batch, k, columns));
    if (batch == 0 || rows == 0 || (k == 0 && !p)) return;
    const int64_t grain = matrices_of_pass(rows * std::max(rows, columns));
    Scratch<int64_t> orders(has_pivots ? scratch_product({(batch - 1) / grain + 1, rows}) : 0);
    parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t matrix = begin; matrix < end; matrix++) {
        if (p)
          write_permutation(pivots + matrix * k, k, rows, orders.data() + begin / grain * rows,
                            p + matrix * rows * rows);
        write_triangles(lu + matrix * rows * columns, rows, columns, l + matrix * rows * k, u + matrix * k * columns);
      }
    });
  });
}

template <class T> void write_determinant(const T *lu, const int32_t *pivots, int64_t n, T &value, T *logarithm) {
  double sign = 1, product = 1, sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double pivot = double(lu[i * n + i]);
    if (pivots[i] != i + 1) sign = -sign;
    if (logarithm) {
      sum += std::log(std::fabs(pivot));
      sign = pivot > 0 ? sign : pivot < 0 ? -sign : pivot * sign; // 0 and NaN
    } else product *= pivot;
  }
  value = T(logarithm ? sign : sign * product);
  if (logarithm) *logarithm = T(sum);
}

// The product of the pivots, with a change of sign for each swap.
void lu_determinant(const LuDeterminantBlock &block, Operands operands) {
  const int64_t batch = block.batch, n = block.size;
  const bool is_logarithm = block.is_logarithm;
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const T *lu = operands.inputs<T>(0, 0, matrices(batch, n, n));
    const int32_t *pivots = operands.inputs<int32_t>(1, 0, matrices(batch, 1, n));
    T *values = operands.results<T>(2, 0, Extent(batch));
    T *logarithms = is_logarithm ? operands.results<T>(3, 0, Extent(batch)) : nullptr;
    parallel_for(batch, matrices_of_pass(16 * n), [&](int64_t begin, int64_t end) {
      for (int64_t matrix = begin; matrix < end; matrix++)
        write_determinant(lu + matrix * n * n, pivots + matrix * n, n, values[matrix],
                          logarithms ? logarithms + matrix : nullptr);
    });
  });
}

ORCHARD_FUNCTION("luParts", lu_parts, LuPartsBlock, 5)
ORCHARD_FUNCTION("luDeterminant", lu_determinant, LuDeterminantBlock, 4)

} // namespace
