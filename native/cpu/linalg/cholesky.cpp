#include "cholesky.h"

#include "batches.h"
#include "lapack.h"

using namespace orchard;

namespace {

// From this size on LAPACK's blocked form is faster than ours.
constexpr int64_t lapack_size = 8;
// Up to this size, and for as many matrices as fill a part of a vector, those in its lanes are computed at once.
constexpr int64_t lanes_size = 32;
constexpr int64_t least_part_of_lanes = 2;

// Row-major matrices, whose lower triangles are read and become L of L Lᵀ; or the upper ones U of Uᵀ U.
template <class T> struct Problem {
  const T *from;
  T *to;
  int32_t *codes;
  int64_t batch, n;
  bool upper;

  int64_t operations() const { return n * n * n / 3; }
};

// Zeros what is no part of the factor: the other triangle, and everything from a leading minor that is not positive.
template <class T> void keep_factor(T *factor, const Problem<T> &problem, int64_t failed) {
  const int64_t n = problem.n, known = failed == 0 ? n : failed - 1;
  for (int64_t row = 0; row < n; row++) {
    T *own = factor + row * n;
    if (problem.upper) {
      std::fill(own, own + std::min(row, known), T(0));
      std::fill(own + (row < known ? known : 0), own + n, T(0));
    } else {
      std::fill(own + (row < known ? row + 1 : 0), own + n, T(0));
    }
  }
}

// LAPACK's upper factor of the transpose is our lower one. Some of its versions go on with NaN.
template <class T> int64_t factorise(const Lapack<T> &library, T *a, const Problem<T> &problem) {
  const int64_t n = problem.n;
  const int size = static_cast<int>(n);
  int64_t failed = library.potrf(problem.upper ? 'L' : 'U', size, a, size);
  const int64_t known = failed == 0 ? n : failed - 1;
  for (int64_t row = 0; row < known; row++)
    if (!(a[row * n + row] > 0)) {
      failed = row + 1;
      break;
    }
  keep_factor(a, problem, failed);
  return failed;
}

template <class T> void by_lanes(const Problem<T> &problem, const CholeskyKernel<T> &kernel) {
  const int64_t n = problem.n, square = n * n;
  for_each_group<T>(problem.batch, kernel.lanes, problem.operations(), square,
                    [&](int64_t first, int64_t count, T *scratch) {
                      kernel.factorise_group({problem.from + first * square, square, count},
                                             {problem.to + first * square, square, count}, problem.codes + first, n,
                                             problem.upper, scratch);
                    });
}

template <class T> void run(const Problem<T> &problem) {
  const int64_t n = problem.n, square = n * n;
  const CholeskyKernel<T> &kernel = cholesky_kernels().of<T>();
  if (n <= lanes_size && problem.batch * least_part_of_lanes >= kernel.lanes) return by_lanes(problem, kernel);
  const Lapack<T> *library = n < lapack_size ? nullptr : lapack<T>();
  if (library) {
    lapack_int(n); // here, where it may throw
    return with_lapack(*library, problem.batch, problem.operations(), 0, [&](int64_t matrix, T *) {
      T *own = problem.to + matrix * square;
      std::copy_n(problem.from + matrix * square, square, own);
      problem.codes[matrix] = static_cast<int32_t>(factorise(*library, own, problem));
    });
  }
  for_each_matrix<T>(problem.batch, problem.operations(), 0, [&](int64_t matrix, T *) {
    const T *from = problem.from + matrix * square;
    T *own = problem.to + matrix * square;
    if (problem.upper) transpose_matrix(from, n, n, own);
    else std::copy_n(from, square, own);
    problem.codes[matrix] = static_cast<int32_t>(kernel.factorise(own, n));
    if (problem.upper) transpose_in_place(own, n);
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
    if (batch > 0) run<T>({from, to, codes, batch, n, block.upper});
  });
}

ORCHARD_FUNCTION("cholesky", cholesky, CholeskyBlock, 3)

} // namespace
