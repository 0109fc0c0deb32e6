#include "lu.h"

#include "batches.h"
#include "lu_blocked.h"
#include "tuning.h"

#include <numeric>
#include <optional>

using namespace orchard;

namespace {

using namespace tuning::lu;

// Matrices to factor and systems to solve. If `b` is null, B is the identity matrix. Results whose pointers are null
// are not stored.
template <class T> struct LuProblem {
  int64_t batch, rows, columns, right;
  bool pivot;
  const T *a, *b;
  T *lu, *x;
  int32_t *pivots, *info;

  int64_t steps() const { return std::min(rows, columns); }
  int64_t operations() const { return steps() * rows * (columns + 2 * right); }
  // Returns the problem without the matrices before `first`.
  LuProblem from(int64_t first) const {
    LuProblem rest = *this;
    rest.batch = batch - first;
    rest.a += first * rows * columns;
    if (b) rest.b += first * rows * right;
    if (lu) rest.lu += first * rows * columns;
    if (x) rest.x += first * rows * right;
    if (pivots) rest.pivots += first * steps();
    rest.info += first;
    return rest;
  }
};

// Calls body(begin, end, scratch) for ranges of a batch, on all threads. If a call failed, throws Failure after all
// have finished.
template <class T, class Body> void for_parts(int64_t batch, int64_t grain, int64_t elements, Body &&body) {
  const int64_t blocks = (batch + grain - 1) / grain;
  std::optional<ScratchParts<T>> scratch;
  if (elements > 0) scratch.emplace(std::max<int64_t>(1, std::min<int64_t>(thread_count(), blocks)), elements);
  std::mutex mutex;
  std::optional<Failure> failure;
  parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
    try {
      if (!scratch) return body(begin, end, nullptr);
      typename ScratchParts<T>::Part part(*scratch);
      body(begin, end, part.data());
    } catch (const Failure &problem) {
      std::lock_guard lock(mutex);
      failure = problem;
    }
  });
  if (failure) throw *failure;
}

template <class T> void run_lanes(const LuProblem<T> &all) {
  const int64_t lanes = lu_kernels().of<T>().vector_lanes;
  const int64_t elements = scratch_product({all.columns + all.right, all.rows, lanes});
  const int64_t groups = (all.batch + lanes - 1) / lanes;
  for_parts<T>(groups, matrices_of_task(all.operations() * 2), elements, [&](int64_t begin, int64_t end, T *work) {
    for (int64_t group = begin; group < end; group++) {
      const LuProblem<T> problem = all.from(group * lanes);
      lu_kernels().of<T>().lanes({std::min(lanes, problem.batch), problem.rows, problem.columns, problem.right,
                                  problem.pivot, problem.a, problem.b, problem.lu, problem.x, problem.pivots,
                                  problem.info, work});
    }
  });
}

template <class T>
void copy_rows(const T *from, int64_t from_stride, T *to, int64_t to_stride, int64_t rows, int64_t columns) {
  if (from_stride == columns && to_stride == columns) {
    std::copy_n(from, rows * columns, to);
    return;
  }
  for (int64_t i = 0; i < rows; i++) std::copy_n(from + i * from_stride, columns, to + i * to_stride);
}

template <class T> void copy_right(const LuProblem<T> &problem, T *to, int64_t stride) {
  if (problem.b) return copy_rows(problem.b, problem.right, to, stride, problem.rows, problem.right);
  for (int64_t i = 0; i < problem.rows; i++) {
    std::fill_n(to + i * stride, problem.right, T(0));
    to[i * stride + i] = 1;
  }
}

// Returns whether a matrix can be eliminated in the memory of its factors: its rows are whole vectors, and it has no
// right-hand sides.
template <class T> bool is_in_place(const LuProblem<T> &problem) {
  return problem.lu && problem.right == 0 && problem.rows == padded(problem.rows) &&
         problem.columns == padded(problem.columns);
}

// Returns the scratch size of a matrix that cannot be eliminated in place: its elements and its right-hand sides, in
// rows of whole vectors.
template <class T> int64_t small_elements(const LuProblem<T> &problem) {
  return is_in_place(problem) ? 0 : padded(problem.rows) * (padded(problem.columns) + padded(problem.right));
}

template <class T> Elimination<T> small_elimination(const LuProblem<T> &problem, int32_t *pivots, T *work) {
  if (is_in_place(problem))
    return {problem.a,       problem.columns, problem.lu,   problem.rows,  problem.columns,
            problem.columns, pivots,          problem.info, problem.pivot, nullptr};
  const int64_t first = padded(problem.columns), width = first + padded(problem.right);
  std::fill_n(work, padded(problem.rows) * width, T(0));
  copy_rows(problem.a, problem.columns, work, width, problem.rows, problem.columns);
  if (problem.right > 0) copy_right(problem, work + first, width);
  return {work, width, work, problem.rows, problem.columns, width, pivots, problem.info, problem.pivot, nullptr};
}

// Eliminates `count` matrices, starting with the first of `all`.
template <class T> void run_small(const LuProblem<T> &all, int64_t count, T *work) {
  int32_t pivots[lu_together][small_size];
  Elimination<T> eliminations[lu_together];
  for (int64_t m = 0; m < count; m++)
    eliminations[m] = small_elimination(all.from(m), pivots[m], work + m * small_elements(all));
  const auto &kernels = lu_kernels().of<T>();
  kernels.eliminate(eliminations, count);
  for (int64_t m = 0; m < count; m++) {
    const LuProblem<T> problem = all.from(m);
    const int64_t width = eliminations[m].width, first = padded(problem.columns);
    T *a = eliminations[m].a, *right = a + first;
    if (problem.lu && problem.lu != a) copy_rows(a, width, problem.lu, problem.columns, problem.rows, problem.columns);
    if (problem.pivots)
      for (int64_t k = 0; k < problem.steps(); k++) problem.pivots[k] = pivots[m][k] + 1;
    if (problem.right == 0) continue;
    kernels.substitute({a, width, 1, right, problem.rows, width - first, width, true, false});
    copy_rows(right, width, problem.x, problem.right, problem.rows, problem.right);
  }
}

// Eliminates matrices in pairs, unless that would leave threads idle.
template <class T> void run_small(const LuProblem<T> &all, int64_t grain) {
  const int64_t together = all.batch > thread_count() ? lu_together : 1;
  const int64_t elements = small_elements(all) * together, groups = (all.batch + together - 1) / together;
  auto run_groups = [&](int64_t begin, int64_t end, T *work) {
    for (int64_t first = begin * together; first < std::min(all.batch, end * together); first += together)
      run_small(all.from(first), std::min(together, all.batch - first), work);
  };
  for_parts<T>(groups, (grain + together - 1) / together, elements, run_groups);
}

template <class T> int64_t large_elements(const LuProblem<T> &problem) {
  const int64_t factor = problem.lu ? 0 : problem.rows * problem.columns, pivots = problem.pivots ? 0 : problem.steps();
  return lu_panel_elements(problem.rows) + factor + pivots; // a pivot is no larger than an element
}

template <class T> void run_large(const LuProblem<T> &problem, MultiplyMatrices multiply, T *work) {
  const BlockedLu<T> blocked(multiply, work);
  T *rest = work + lu_panel_elements(problem.rows), *lu = problem.lu ? problem.lu : rest;
  if (!problem.lu) rest += problem.rows * problem.columns;
  int32_t *pivots = problem.pivots ? problem.pivots : reinterpret_cast<int32_t *>(rest);
  parallel_for(problem.rows * problem.columns, 1 << 16,
               [&](int64_t begin, int64_t end) { std::copy(problem.a + begin, problem.a + end, lu + begin); });
  *problem.info = static_cast<int32_t>(
      blocked.factorize(lu, problem.rows, problem.columns, problem.columns, pivots, problem.pivot));
  if (problem.right > 0) {
    copy_right(problem, problem.x, problem.right);
    blocked.swap_rows(problem.x, problem.right, problem.right, pivots, problem.steps());
    blocked.substitute({lu, problem.columns, 1, problem.x, problem.rows, problem.right, problem.right, false, true});
    blocked.substitute({lu, problem.columns, 1, problem.x, problem.rows, problem.right, problem.right, true, false});
  }
  for (int64_t k = 0; k < problem.steps(); k++) pivots[k]++;
}

bool is_shared(int64_t batch, int64_t size) { return batch < thread_count() && (batch == 1 || size >= shared_size); }

template <class T> void run(const LuProblem<T> &all) {
  if (all.batch == 0) return;
  const int64_t size = std::max(all.rows, all.columns);
  if (size <= lanes_size && all.right <= lanes_size && all.batch >= lanes_batch) return run_lanes(all);
  const int64_t grain = matrices_of_task(all.operations());
  if (size <= small_size && all.right <= small_size) return run_small(all, grain);
  const int64_t elements = large_elements(all);
  if (is_shared(all.batch, size)) {
    Scratch<T> work(elements);
    for (int64_t matrix = 0; matrix < all.batch; matrix++) run_large(all.from(matrix), multiply, work.data());
    return;
  }
  for_parts<T>(all.batch, grain, elements, [&](int64_t begin, int64_t end, T *work) {
    for (int64_t matrix = begin; matrix < end; matrix++) run_large(all.from(matrix), multiply_here, work);
  });
}

void lu_factor(const LuFactorBlock &block, Operands operands) {
  const int64_t batch = block.batch, rows = block.rows, columns = block.columns;
  const bool pivot = block.pivot;
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(batch, rows, columns);
    const T *a = operands.inputs<T>(0, 0, all);
    T *lu = operands.results<T>(1, 0, all);
    int32_t *pivots = operands.results<int32_t>(2, 0, matrices(batch, 1, std::min(rows, columns)));
    int32_t *info = operands.results<int32_t>(3, 0, Extent(batch));
    run<T>({batch, rows, columns, 0, pivot, a, nullptr, lu, nullptr, pivots, info});
  });
}

// Operands: a, b (not read if the inverse is computed), x, info, lu and pivots (both written only if they are needed
// later).
void solve(const SolveBlock &block, Operands operands) {
  const int64_t batch = block.batch, n = block.size, right = block.columns;
  const bool inverse = block.inverse, keeps_factor = block.keeps_factor;
  if (inverse && right != n) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected an inverse of as many columns as rows");
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const Extent square = matrices(batch, n, n), sides = matrices(batch, n, right);
    const T *a = operands.inputs<T>(0, 0, square), *b = inverse ? nullptr : operands.inputs<T>(1, 0, sides);
    T *x = operands.results<T>(2, 0, sides);
    int32_t *info = operands.results<int32_t>(3, 0, Extent(batch));
    T *lu = keeps_factor ? operands.results<T>(4, 0, square) : nullptr;
    int32_t *pivots = keeps_factor ? operands.results<int32_t>(5, 0, matrices(batch, 1, n)) : nullptr;
    run<T>({batch, n, n, right, true, a, b, lu, x, pivots, info});
  });
}

// Swaps rows as the factorization did, or in reverse order. Pivots outside the matrix are skipped.
template <class T>
void apply_pivots(T *x, int64_t rows, int64_t columns, const int32_t *pivots, int64_t count, bool back) {
  for (int64_t step = 0; step < count; step++) {
    const int64_t k = back ? count - 1 - step : step, pivot = pivots[k] - int64_t(1);
    if (pivot != k && pivot >= 0 && pivot < rows)
      std::swap_ranges(x + k * columns, x + (k + 1) * columns, x + pivot * columns);
  }
}

// Solves A X = B, or Aᵀ X = B if `adjoint`, with A = P L U.
void lu_solve(const LuSolveBlock &block, Operands operands) {
  const int64_t batch = block.batch, n = block.size, columns = block.columns;
  const bool adjoint = block.adjoint;
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const Extent sides = matrices(batch, n, columns);
    const T *all_lu = operands.inputs<T>(0, 0, matrices(batch, n, n));
    const int32_t *all_pivots = operands.inputs<int32_t>(1, 0, matrices(batch, 1, n));
    const T *right = operands.inputs<T>(2, 0, sides);
    T *all_x = operands.results<T>(3, 0, sides);
    if (sides.is_empty()) return;
    auto solve_one = [&](int64_t matrix, MultiplyMatrices multiply) {
      const T *lu = all_lu + matrix * n * n;
      T *x = all_x + matrix * n * columns;
      const int32_t *pivots = all_pivots + matrix * n;
      const BlockedLu<T> blocked(multiply, nullptr);
      std::copy_n(right + matrix * n * columns, n * columns, x);
      if (!adjoint) apply_pivots(x, n, columns, pivots, n, false);
      const int64_t row = adjoint ? 1 : n, column = adjoint ? n : 1;
      blocked.substitute({lu, row, column, x, n, columns, columns, false, !adjoint});
      blocked.substitute({lu, row, column, x, n, columns, columns, true, adjoint});
      if (adjoint) apply_pivots(x, n, columns, pivots, n, true);
    };
    if (is_shared(batch, n)) {
      for (int64_t matrix = 0; matrix < batch; matrix++) solve_one(matrix, multiply);
      return;
    }
    for_parts<T>(batch, matrices_of_task(2 * n * n * columns), 0, [&](int64_t begin, int64_t end, T *) {
      for (int64_t matrix = begin; matrix < end; matrix++) solve_one(matrix, multiply_here);
    });
  });
}

// Row i of Pᵀ A (with `inverse`, of P A) is row permutation[i] of A.
void lu_permutation(const LuPermutationBlock &block, Operands operands) {
  const int64_t batch = block.batch, rows = block.rows, count = block.pivots;
  const bool inverse = block.inverse;
  const int32_t *pivots = operands.inputs<int32_t>(0, 0, matrices(batch, 1, count));
  int32_t *permutation = operands.results<int32_t>(1, 0, matrices(batch, 1, rows));
  if (count > rows) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected at most as many pivots as rows");
  if (rows == 0) return;
  for (int64_t matrix = 0; matrix < batch; matrix++) {
    int32_t *row_order = permutation + matrix * rows;
    std::iota(row_order, row_order + rows, 0);
    apply_pivots(row_order, rows, 1, pivots + matrix * count, count, inverse);
  }
}

ORCHARD_FUNCTION("luFactor", lu_factor, LuFactorBlock, 4)
ORCHARD_FUNCTION("luSolve", lu_solve, LuSolveBlock, 4)
ORCHARD_FUNCTION("solve", solve, SolveBlock, 6)
ORCHARD_FUNCTION("luPermutation", lu_permutation, LuPermutationBlock, 2)

} // namespace
