// The functions "centerRows" and "finishCovariance", which precede and follow a product.
#include "covariance.h"

#include "../memory.h"
#include "../parallel.h"
#include "batches.h"

using namespace orchard;

namespace {

// out = x minus the mean of its row
void center_rows(const CenterRowsBlock &block, Operands operands) {
  const int64_t rows = block.rows, columns = block.columns;
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(1, rows, columns);
    const T *x = operands.inputs<T>(0, block.offset, all);
    T *out = operands.results<T>(1, 0, all);
    if (all.is_empty()) return;
    pass_over_rows(rows, columns, [&](int64_t begin, int64_t end) {
      covariances().of<T>().center(x + begin * columns, out + begin * columns, end - begin, columns);
    });
  });
}

void finish_covariance(const FinishCovarianceBlock &block, Operands operands) {
  const int64_t n = block.size;
  const double divisor = block.divisor;
  const bool is_correlation = block.is_correlation;
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(1, n, n);
    const T *c = operands.inputs<T>(0, block.offset, all);
    T *out = operands.results<T>(1, 0, all);
    if (all.is_empty()) return;
    Scratch<T> deviations(is_correlation ? n : 0);
    if (is_correlation)
      for (int64_t i = 0; i < n; i++) deviations.data()[i] = std::sqrt(c[i * n + i]);
    pass_over_rows(n, n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        covariances().of<T>().scale(c + i * n, out + i * n, n, is_correlation ? double(deviations.data()[i]) : divisor,
                                    is_correlation ? deviations.data() : nullptr);
    });
  });
}

ORCHARD_FUNCTION("centerRows", center_rows, CenterRowsBlock, 2)
ORCHARD_FUNCTION("finishCovariance", finish_covariance, FinishCovarianceBlock, 2)

} // namespace
