#include "cholesky.h"

#include "../parallel.h"

using namespace orchard;

namespace {

void cholesky(const CholeskyBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, n = block.size;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(batch, n, n);
    const T *from = operands.inputs<T>(0, 0, all);
    T *to = operands.results<T>(1, 0, all);
    int32_t *codes = operands.results<int32_t>(2, 0, Extent(batch));
    if (batch == 0) return;
    parallel_for(batch, matrices_of_task(n * n * n / 3), [&](int64_t begin, int64_t end) {
      for (int64_t matrix = begin; matrix < end; matrix++) {
        T *own = to + matrix * n * n;
        std::copy_n(from + matrix * n * n, n * n, own);
        codes[matrix] = static_cast<int32_t>(cholesky_kernels().of<T>().factorise(own, n));
      }
    });
  });
}

ORCHARD_FUNCTION("cholesky", cholesky, CholeskyBlock, 3)

} // namespace
