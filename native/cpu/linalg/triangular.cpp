#include "triangular.h"

#include "batches.h"
#include "lapack.h"
#include "tuning.h"

using namespace orchard;

namespace {

using namespace tuning::triangular;

template <class T> struct Problem {
  const T *factors, *sides;
  T *solutions;
  int64_t batch;
  TriangularShape shape;

  int64_t square() const { return shape.n * shape.n; }
  int64_t side() const { return shape.n * shape.columns; }
  int64_t operations() const { return square() * shape.columns; }
};

template <class T> void by_lanes(const Problem<T> &problem, const TriangularKernel<T> &kernel) {
  const int64_t square = problem.square(), side = problem.side();
  for_each_group<T>(problem.batch, kernel.lanes, problem.operations(), square + side,
                    [&](int64_t first, int64_t count, T *scratch) {
                      kernel.solve_group({problem.factors + first * square, square, count},
                                         {problem.sides + first * side, side, count},
                                         {problem.solutions + first * side, side, count}, problem.shape, scratch);
                    });
}

// A BLAS sees a row-major matrix as its transpose: A X = B is Xᵀ Aᵀ = Bᵀ.
template <class T> void by_lapack(const Problem<T> &problem, const Lapack<T> &library) {
  const TriangularShape &shape = problem.shape;
  const bool is_right = !shape.transposed_b;
  const int n = lapack_int(shape.n), columns = lapack_int(shape.columns);
  const int rows = is_right ? columns : n, others = is_right ? n : columns;
  // Read in column-major order, the memory holds A if it is transposed, else Aᵀ.
  const char uplo = shape.upper == shape.transposed_a ? 'U' : 'L';
  const char trans = is_right == shape.transposed_a ? 'T' : 'N';
  const char diagonal = shape.unit_diagonal ? 'U' : 'N';
  const int64_t square = problem.square(), side = problem.side();
  with_lapack<T>(
      library, {problem.batch, problem.operations(), 0},
      [&](int64_t system, T *) {
        copy_elements(problem.sides + system * side, problem.solutions + system * side, side);
        return true;
      },
      [&](int64_t system, T *) {
        library.trsm(is_right ? 'R' : 'L', uplo, trans, diagonal, rows, others, T(1), problem.factors + system * square,
                     n, problem.solutions + system * side, rows);
      });
}

// Each task solves some columns of one system. If B is stored transposed, they are transposed into the scratch memory
// and back.
template <class T> void by_rows(const Problem<T> &problem, const TriangularKernel<T> &kernel) {
  const TriangularShape &shape = problem.shape;
  const int64_t n = shape.n, parts = (shape.columns + columns_of_task - 1) / columns_of_task;
  const int64_t task_columns = std::min(shape.columns, columns_of_task);
  const int64_t scratch_elements = shape.transposed_b ? scratch_product({n, task_columns}) : 0;
  for_each_matrix<T>(scratch_product({problem.batch, parts}), problem.square() * task_columns, scratch_elements,
                     [&](int64_t task, T *scratch) {
                       const int64_t system = task / parts, first = task % parts * columns_of_task;
                       const int64_t width = std::min(shape.columns - first, columns_of_task);
                       const int64_t at = system * problem.side() + first * (shape.transposed_b ? n : 1);
                       T *b = shape.transposed_b ? scratch : problem.solutions + at;
                       const int64_t stride = shape.transposed_b ? width : shape.columns;
                       const T *from = problem.sides + at;
                       if (shape.transposed_b) transpose_matrix(from, width, n, b);
                       else
                         for (int64_t row = 0; row < n; row++)
                           std::copy_n(from + row * stride, width, b + row * stride);
                       const bool is_turned = shape.transposed_a;
                       kernel.solve({problem.factors + system * problem.square(), is_turned ? 1 : n, is_turned ? n : 1,
                                     b, n, width, stride, shape.upper, shape.unit_diagonal});
                       if (shape.transposed_b) transpose_matrix(b, n, width, problem.solutions + at);
                     });
}

template <class T> void run(const Problem<T> &problem) {
  const TriangularKernel<T> &kernel = triangular_kernels().of<T>();
  const TriangularShape &shape = problem.shape;
  if (shape.n <= lanes_size && shape.columns <= lanes_columns && problem.batch * 2 >= kernel.lanes)
    return by_lanes(problem, kernel);
  const Lapack<T> *library = problem.operations() < lapack_operations ? nullptr : lapack<T>();
  if (library) return by_lapack(problem, *library);
  by_rows(problem, kernel);
}

void solve_triangular(const SolveTriangularBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, n = block.rows, columns = block.columns;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(batch, n, columns);
    const T *factors = operands.inputs<T>(0, 0, matrices(batch, n, n)), *right = operands.inputs<T>(1, 0, all);
    T *solution = operands.results<T>(2, 0, all);
    if (all.is_empty()) return;
    const TriangularShape shape{n, columns, block.upper, block.unit_diagonal, block.transposed_a, block.transposed_b};
    run<T>({factors, right, solution, batch, shape});
  });
}

ORCHARD_FUNCTION("solveTriangular", solve_triangular, SolveTriangularBlock, 3)

} // namespace
