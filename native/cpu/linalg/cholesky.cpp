#include "cholesky.h"

#include "batches.h"
#include "lapack.h"

using namespace orchard;

namespace {

// From this size on LAPACK's blocked form is faster than ours.
constexpr int64_t lapack_size = 8;

// Zeros what is no part of the factor: the upper triangle, and everything from a leading minor that is not positive.
template <class T> void keep_factor(T *factor, int64_t n, int64_t failed) {
  const int64_t rows = failed == 0 ? n : failed - 1;
  for (int64_t row = 0; row < rows; row++) std::fill(factor + row * n + row + 1, factor + (row + 1) * n, T(0));
  std::fill(factor + rows * n, factor + n * n, T(0));
}

// LAPACK's upper factor of the transpose. Some of its versions go on with NaN.
template <class T> int64_t factorise(const Lapack<T> &library, T *a, int64_t n) {
  const int size = lapack_int(n);
  int64_t failed = library.potrf('U', size, a, size);
  const int64_t known = failed == 0 ? n : failed - 1;
  for (int64_t row = 0; row < known; row++)
    if (!(a[row * n + row] > 0)) {
      failed = row + 1;
      break;
    }
  keep_factor(a, n, failed);
  return failed;
}

template <class T> struct Problem {
  const T *from;
  T *to;
  int32_t *codes;
  int64_t batch, n;

  template <class Factorise> void run(int64_t matrix, Factorise &&factorise_own) const {
    T *own = to + matrix * n * n;
    std::copy_n(from + matrix * n * n, n * n, own);
    codes[matrix] = static_cast<int32_t>(factorise_own(own));
  }
};

template <class T> void run(const Problem<T> &problem) {
  const auto [batch, n] = std::pair(problem.batch, problem.n);
  const int64_t operations = n * n * n / 3;
  const Lapack<T> *library = n < lapack_size ? nullptr : lapack<T>();
  if (library) {
    lapack_int(n); // here, where it may throw
    return with_lapack(*library, batch, operations, 0, [&](int64_t matrix, T *) {
      problem.run(matrix, [&](T *own) { return factorise(*library, own, n); });
    });
  }
  for_each_matrix<T>(batch, operations, 0, [&](int64_t matrix, T *) {
    problem.run(matrix, [&](T *own) { return cholesky_kernels().of<T>().factorise(own, n); });
  });
}

void cholesky(const CholeskyBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, n = block.size;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(batch, n, n);
    const T *from = operands.inputs<T>(0, 0, all);
    T *to = operands.results<T>(1, 0, all);
    int32_t *codes = operands.results<int32_t>(2, 0, Extent(batch));
    if (batch > 0) run<T>({from, to, codes, batch, n});
  });
}

ORCHARD_FUNCTION("cholesky", cholesky, CholeskyBlock, 3)

} // namespace
