#include "cholesky.h"

#include "batches.h"
#include "lapack.h"
#include "tuning.h"

using namespace orchard;

namespace {

using namespace tuning::cholesky;

// LAPACK is used if the BLAS computes products: if it was selected explicitly, and on macOS, where Accelerate uses a
// matrix unit that other code cannot reach. On one thread of an EPYC with AVX-512, float32 matrices of 256, 512 and
// 1024 rows took 88, 575 and 6900 µs with OpenBLAS, and 45, 208 and 1180 µs with this code.
bool is_for_lapack() {
#if defined(__APPLE__)
  return products_by() != ProductsBy::own;
#else
  return products_by() == ProductsBy::blas;
#endif
}

// Row-major matrices. L of A = L Lᵀ is computed from the lower triangles, or U of A = Uᵀ U from the upper ones.
template <class T> struct Problem {
  const T *from;
  T *to;
  int32_t *codes;
  int64_t batch, n;
  bool upper;

  int64_t operations() const { return n * n * n / 3; }
};

// Zeros everything outside the factor: the other triangle, and all rows and columns from the first leading minor that
// is not positive.
template <class T> void keep_factor(T *factor, const Problem<T> &problem, int64_t failed) {
  const int64_t n = problem.n, known = failed == 0 ? n : failed - 1;
  for (int64_t row = 0; row < n; row++) {
    T *elements = factor + row * n;
    if (problem.upper) {
      std::fill(elements, elements + std::min(row, known), T(0));
      std::fill(elements + (row < known ? known : 0), elements + n, T(0));
    } else {
      std::fill(elements + (row < known ? row + 1 : 0), elements + n, T(0));
    }
  }
}

// Copies the triangle that is read, and zeros the other one. Groups of 16 rows have the same copy lengths, so that the
// processor predicts the branches of copies and fills.
template <class T> void copy_triangle(const T *from, T *to, int64_t n, bool upper) {
  constexpr int64_t tile = 16;
  pass_over_rows((n + tile - 1) / tile, n * tile, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * tile; row < std::min(n, end * tile); row++) {
      const int64_t corner = row / tile * tile, after = std::min(n, corner + tile);
      const int64_t first = upper ? corner : 0, last = upper ? n : after;
      const T *source = from + row * n;
      T *target = to + row * n;
      std::fill_n(target, first, T(0));
      std::copy(source + first, source + last, target + first);
      std::fill_n(target + last, n - last, T(0));
      for (int64_t j = corner; j < after; j++) target[j] = (upper ? j >= row : j <= row) ? source[j] : T(0);
    }
  });
}

// LAPACK sees the matrix as its transpose, so its upper factor is the lower factor here. Some versions continue after
// NaN, so the diagonal is checked.
template <class T> int64_t factorize(const Lapack<T> &library, T *a, const Problem<T> &problem) {
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
  // A group of 16 float32 matrices takes about as long as four single ones.
  for_each_group<T>(problem.batch, kernel.lanes, 4 * problem.operations(), square,
                    [&](int64_t first, int64_t count, T *scratch) {
                      kernel.factorize_group({problem.from + first * square, square, count},
                                             {problem.to + first * square, square, count}, problem.codes + first, n,
                                             problem.upper, scratch);
                    });
}

// Returns the number of rows of a panel. With a deeper panel the rest of the matrix is read and written less often, but
// only one thread factors its diagonal block.
int64_t depth_of(int64_t n) { return n <= shallow_size ? most_depth / 2 : most_depth; }

int64_t strips_of(int64_t columns) { return (columns + strip_columns - 1) / strip_columns; }

// Returns the number of elements of the largest panel, which is the first one.
int64_t panel_elements(int64_t n) {
  const int64_t columns = strips_of(n) * strip_columns;
  return scratch_product({columns, std::min(depth_of(n), columns)});
}

// Continues after the diagonal block: solves for the rest of the panel, then subtracts the panel's products from the
// rest of the matrix.
template <class T> void go_on(const CholeskyPanel<T> &panel) {
  const CholeskyKernel<T> &kernel = cholesky_kernels().of<T>();
  const int64_t depth = panel.depth, diagonal_strips = depth / strip_columns,
                strips = strips_of(panel.n - panel.first - depth);
  const int64_t strip = depth * depth * strip_columns, square = 2 * depth * strip_columns * strip_columns;
  parallel_for(strips, std::max<int64_t>(1, operations_of_task / strip), [&](int64_t begin, int64_t end) {
    kernel.solve(panel, diagonal_strips + begin, diagonal_strips + end);
  });
  parallel_for(strips * (strips + 1) / 2, std::max<int64_t>(1, operations_of_task / square),
               [&](int64_t begin, int64_t end) { kernel.subtract(panel, begin, end); });
}

template <class T> void factorize_panels(const Problem<T> &problem, int64_t matrix, T *scratch) {
  const int64_t n = problem.n;
  const T *from = problem.from + matrix * n * n;
  T *to = problem.to + matrix * n * n, *inverse = scratch + panel_elements(n);
  int64_t failed = 0;
  for (int64_t first = 0; first < n && failed == 0; first += depth_of(n)) {
    const int64_t depth = std::min(depth_of(n), n - first);
    const CholeskyPanel<T> panel{first == 0 ? from : to, to, n, first, depth, problem.upper, scratch, inverse};
    const int64_t minor = cholesky_kernels().of<T>().factorize(panel);
    if (minor != 0) failed = first + minor;
    else if (first + depth < n) go_on(panel);
  }
  problem.codes[matrix] = static_cast<int32_t>(failed);
  if (failed != 0) keep_factor(to, problem, failed);
}

template <class T> void by_panels(const Problem<T> &problem) {
  const int64_t elements = panel_elements(problem.n) + most_depth;
  if (problem.batch > 1 && (problem.batch >= thread_count() || problem.n < shared_size))
    return for_each_matrix<T>(problem.batch, problem.operations(), elements,
                              [&](int64_t matrix, T *scratch) { factorize_panels(problem, matrix, scratch); });
  Scratch<T> scratch(elements);
  for (int64_t matrix = 0; matrix < problem.batch; matrix++) factorize_panels(problem, matrix, scratch.data());
}

template <class T> void run(const Problem<T> &problem) {
  const int64_t n = problem.n, square = n * n;
  const CholeskyKernel<T> &kernel = cholesky_kernels().of<T>();
  if (n <= lanes_size && problem.batch * least_part_of_lanes >= kernel.lanes) return by_lanes(problem, kernel);
  const Lapack<T> *library = n >= lapack_size && is_for_lapack() ? lapack<T>() : nullptr;
  if (library) {
    lapack_int(n); // checked here, where throwing is allowed
    return with_lapack<T>(
        *library, {problem.batch, problem.operations(), 0, n <= one_thread_size},
        [&](int64_t matrix, T *) {
          copy_triangle(problem.from + matrix * square, problem.to + matrix * square, n, problem.upper);
          return true;
        },
        [&](int64_t matrix, T *) {
          problem.codes[matrix] = static_cast<int32_t>(factorize(*library, problem.to + matrix * square, problem));
        });
  }
  by_panels(problem);
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
