#include "cholesky.h"

#include "../matmul/kernel.h"
#include "batches.h"
#include "lapack.h"
#include "triangular.h"

using namespace orchard;

namespace {

// From this size on LAPACK's blocked form is faster than ours.
constexpr int64_t lapack_size = 32;
// Up to this size one thread of OpenBLAS is as fast as two: of 128 rows 19 and 23 µs, of 256 rows 91 and 81 µs.
constexpr int64_t one_thread_size = 192;
// Up to this size, and for as many matrices as fill a part of a vector, those in its lanes are computed at once.
constexpr int64_t lanes_size = 32;
constexpr int64_t least_part_of_lanes = 2;

// From this size on a matrix without LAPACK is computed in blocks of so many columns, on all threads.
constexpr int64_t blocked_size = 128, block_columns = 64;

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

// The triangle that is read, and zeros in the other one; rows by sixteens of the same lengths, whose copies and fills a
// processor foresees.
template <class T> void copy_triangle(const T *from, T *to, int64_t n, bool upper) {
  constexpr int64_t tile = 16;
  pass_over_rows((n + tile - 1) / tile, n * tile, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * tile; row < std::min(n, end * tile); row++) {
      const int64_t corner = row / tile * tile, after = std::min(n, corner + tile);
      const int64_t first = upper ? corner : 0, last = upper ? n : after;
      const T *source = from + row * n;
      T *own = to + row * n;
      std::fill_n(own, first, T(0));
      std::copy(source + first, source + last, own + first);
      std::fill_n(own + last, n - last, T(0));
      for (int64_t j = corner; j < after; j++) own[j] = (upper ? j >= row : j <= row) ? source[j] : T(0);
    }
  });
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
  if (failed != 0) keep_factor(a, problem, failed);
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

// The upper factor of one matrix, block_columns rows after the other: the block on the diagonal, the columns to its
// right, and what remains less their products.
template <class T> class BlockedFactor {
public:
  BlockedFactor(T *a, int64_t n) : a_(a), n_(n) {}

  int64_t factorise() {
    for (int64_t first = 0; first < n_; first += block_columns) {
      const int64_t width = std::min(block_columns, n_ - first), next = first + width;
      T *diagonal = a_ + first * (n_ + 1);
      if (int64_t failed = cholesky_kernels().of<T>().factorise(diagonal, width, n_)) return first + failed;
      parallel_for(n_ - next, solved_columns, [&](int64_t begin, int64_t end) {
        // the lower triangle Uᵀ
        triangular_kernels().of<T>().solve(
            {diagonal, 1, n_, diagonal + width + begin, width, end - begin, n_, false, false});
      });
      for (int64_t row = next; row < n_; row += updated_rows) subtract_products(first, width, row);
    }
    return 0;
  }

private:
  static constexpr int64_t solved_columns = 128, updated_rows = 256;

  // Rows of the remainder: C -= Uᵀ U with the block's rows of U, from the diagonal on.
  void subtract_products(int64_t first, int64_t width, int64_t row) {
    auto matrix = [&](int64_t i, int64_t j) { return Matrix{reinterpret_cast<char *>(a_ + i * n_ + j), n_, 1}; };
    const DType dtype = sizeof(T) == 8 ? DType::float64 : DType::float32;
    const Matrix right = matrix(first, row), out = matrix(row, row);
    matmul_kernels().multiply[static_cast<int>(dtype)](
        {dtype, std::min(updated_rows, n_ - row), n_ - row, width, -1, 1, right.transposed(), right, out, out});
  }

  T *a_;
  int64_t n_;
};

// Our own forms take the upper triangle.
template <class T, class Factorise>
void run_upper(const Problem<T> &problem, int64_t matrix, Factorise &&factorise_own) {
  const int64_t n = problem.n;
  const T *from = problem.from + matrix * n * n;
  T *own = problem.to + matrix * n * n;
  if (problem.upper) std::copy_n(from, n * n, own);
  else transpose_matrix(from, n, n, own);
  const int64_t failed = factorise_own(own);
  problem.codes[matrix] = static_cast<int32_t>(failed);
  if (!problem.upper) transpose_in_place(own, n);
  keep_factor(own, problem, failed);
}

template <class T> void run(const Problem<T> &problem) {
  const int64_t n = problem.n, square = n * n;
  const CholeskyKernel<T> &kernel = cholesky_kernels().of<T>();
  if (n <= lanes_size && problem.batch * least_part_of_lanes >= kernel.lanes) return by_lanes(problem, kernel);
  const Lapack<T> *library = n < lapack_size ? nullptr : lapack<T>();
  if (library) {
    lapack_int(n); // here, where it may throw
    return with_lapack<T>(
        *library, {problem.batch, problem.operations(), 0, n <= one_thread_size},
        [&](int64_t matrix, T *) {
          copy_triangle(problem.from + matrix * square, problem.to + matrix * square, n, problem.upper);
          return true;
        },
        [&](int64_t matrix, T *) {
          problem.codes[matrix] = static_cast<int32_t>(factorise(*library, problem.to + matrix * square, problem));
        });
  }
  if (n >= blocked_size) {
    for (int64_t matrix = 0; matrix < problem.batch; matrix++)
      run_upper(problem, matrix, [&](T *own) { return BlockedFactor<T>(own, n).factorise(); });
    return;
  }
  for_each_matrix<T>(problem.batch, problem.operations(), 0, [&](int64_t matrix, T *) {
    run_upper(problem, matrix, [&](T *own) { return kernel.factorise(own, n, n); });
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
