// The function "choleskyInverse".
#include "cholesky_inverse.h"

#include "batches.h"

using namespace orchard;

namespace {

// out = (L Lᵀ)⁻¹; info = the first row whose diagonal element is 0, counted from 1, or 0.
void cholesky_inverse(const CholeskyInverseBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, n = block.size, row = block.transposed ? 1 : n, column = block.transposed ? n : 1;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(batch, n, n);
    const T *factors = operands.inputs<T>(0, 0, all);
    T *inverses = operands.results<T>(1, 0, all);
    int32_t *info = operands.results<int32_t>(2, 0, Extent(batch));
    if (all.is_empty()) return;
    const auto &kernel = cholesky_inverse_kernels().of<T>();
    const int64_t scratch_elements = scratch_product({scratch_rows(n), n});
    for_each_matrix<T>(batch, n * n * n, scratch_elements, [&](int64_t matrix, T *scratch) {
      const T *l = factors + matrix * n * n;
      int64_t zero = 0;
      for (int64_t i = n; i > 0; i--)
        if (l[(i - 1) * (n + 1)] == 0) zero = i;
      info[matrix] = static_cast<int32_t>(zero);
      kernel.invert(l, row, column, inverses + matrix * n * n, n, scratch);
    });
  });
}

ORCHARD_FUNCTION("choleskyInverse", cholesky_inverse, CholeskyInverseBlock, 3)

} // namespace
