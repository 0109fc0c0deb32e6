#include "eigh.h"

#include "eigh_lapack.h"
#include "tuning.h"

#include <limits>
#include <numeric>

using namespace orchard;

namespace {

using namespace tuning::eigh;
// LAPACK's workspace length, 2 n², must fit an int.
constexpr int64_t largest_for_lapack = 30000;

// Divides the scratch memory for one matrix among its arrays.
template <class T> class Workspace {
public:
  Workspace(int64_t n, bool vectors)
      : n_(n), blocks_(vectors ? (n + rows() - 1) / rows() : 0), kept_(vectors ? 1 : 0) {}

  static int64_t rows() { return eigh_kernels().of<T>().rows_of_block; }
  int64_t blocks() const { return blocks_; }
  int64_t elements() const {
    const int64_t block_elements = scratch_product({blocks_, rows(), n_});
    return scratch_product({n_, n_}) + block_elements + 5 * n_ + kept_ * (2 * kept_rotations * n_ + 2 * kept_sweeps);
  }

  Tridiagonal<T> tridiagonal(T *memory) const {
    T *after = memory + n_ * n_ + blocks_ * rows() * n_;
    return {n_, memory, after, after + n_, after + 2 * n_, after + 3 * n_, after + 4 * n_};
  }
  T *block(T *memory, int64_t index) const { return memory + n_ * n_ + index * rows() * n_; }
  Rotations<T> rotations(T *memory) const {
    T *after = memory + n_ * n_ + blocks_ * rows() * n_ + 5 * n_;
    return {after, after + 2 * kept_rotations * n_, kept_rotations * n_, kept_sweeps};
  }

private:
  int64_t n_, blocks_, kept_;
};

template <class T> void reduce(const Tridiagonal<T> &t) {
  const auto &kernel = eigh_kernels().of<T>();
  for (int64_t k = 0; k < t.n; k++) {
    const int64_t rows = t.n - k - 1;
    kernel.reflect(t, k);
    parallel_for(rows, std::max<int64_t>(1, task_elements / (rows + 1)),
                 [&](int64_t begin, int64_t end) { kernel.update(t, k, begin, end); });
    kernel.finish(t, k);
  }
}

// Diagonalizes the tridiagonal matrix, and applies the rotations to the rows of Q.
template <class T> bool diagonalise(const Tridiagonal<T> &t, const Workspace<T> &space, T *memory) {
  const auto &kernel = eigh_kernels().of<T>();
  QlPosition position;
  if (space.blocks() == 0) return kernel.iterate(t, position, nullptr) == Progress::done;
  parallel_for(space.blocks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) kernel.accumulate(t, b * space.rows(), space.block(memory, b));
  });
  for (;;) {
    Rotations<T> rotations = space.rotations(memory);
    const Progress progress = kernel.iterate(t, position, &rotations);
    if (progress == Progress::failed) return false;
    parallel_for(space.blocks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b++) kernel.rotate(rotations, space.block(memory, b));
    });
    if (progress == Progress::done) return true;
  }
}

// Returns −1 if the largest element of an eigenvector by magnitude, the first of equal ones, is negative; else 1.
template <class T> T sign_of(const Workspace<T> &space, T *memory, int64_t n, int64_t column) {
  T largest = 0;
  for (int64_t row = 0; row < n; row++) {
    const T value = space.block(memory, row / space.rows())[column * space.rows() + row % space.rows()];
    if (std::abs(value) > std::abs(largest)) largest = value;
  }
  return largest < 0 ? T(-1) : T(1);
}

// Stores the eigenvectors as columns, in the order of their eigenvalues.
template <class T>
void store_vectors(const EighBatch<T> &matrix, const Workspace<T> &space, T *memory, const int64_t *order) {
  const int64_t n = matrix.n, rows = space.rows(), columns_of_task = std::max<int64_t>(1, task_elements / (n + 1));
  parallel_for(n, columns_of_task, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; column++) {
      const T sign = sign_of(space, memory, n, order[column]);
      for (int64_t row = 0; row < n; row++)
        matrix.vectors[row * n + column] = space.block(memory, row / rows)[order[column] * rows + row % rows] * sign;
    }
  });
}

template <class T> void decompose(const EighBatch<T> &matrix, const Workspace<T> &space, T *memory, int64_t *order) {
  const int64_t n = matrix.n;
  const Tridiagonal<T> t = space.tridiagonal(memory);
  T scale;
  if (const int64_t row = eigh_kernels().of<T>().load(matrix, t.a, scale)) return fail_matrix(matrix, row);
  reduce(t);
  if (!diagonalise(t, space, memory)) return fail_matrix(matrix, n + 1);
  *matrix.info = 0;
  const T *values = t.diagonal;
  std::iota(order, order + n, 0);
  std::sort(order, order + n,
            [values](int64_t i, int64_t j) { return values[i] < values[j] || (values[i] == values[j] && i < j); });
  for (int64_t i = 0; i < n; i++) matrix.values[i] = values[order[i]] * scale;
  if (matrix.vectors) store_vectors(matrix, space, memory, order);
}

// Divides the matrices among the threads, or lets all threads share each matrix, one after the other.
template <class T> void decompose_all(const EighBatch<T> &batch, int64_t count) {
  const int64_t n = batch.n;
  const Workspace<T> space(n, batch.vectors != nullptr);
  Scratch<int64_t> orders(scratch_product({count, n}));
  const auto compute = [&](int64_t matrix, T *memory) {
    decompose(batch.at(matrix), space, memory, orders.data() + matrix * n);
  };
  if (n < smallest_shared || count >= thread_count())
    return for_each_matrix<T>(count, 10 * n * n * n, space.elements(), compute);
  Scratch<T> memory(space.elements());
  for (int64_t matrix = 0; matrix < count; matrix++) compute(matrix, memory.data());
}

// Computes as many matrices at once as a vector has lanes.
template <class T> void decompose_small(const EighBatch<T> &batch, int64_t count) {
  const auto &kernel = eigh_lanes_kernels().of<T>();
  const int64_t n = batch.n, lanes = kernel.lanes, groups = (count + lanes - 1) / lanes;
  for_each_matrix<T>(groups, 10 * n * n * n * lanes, kernel.elements(n), [&](int64_t group, T *memory) {
    const int64_t first = group * lanes;
    kernel.decompose(batch.at(first), std::min(lanes, count - first), memory);
  });
}

template <class T> bool is_for_lapack(const EighBatch<T> &batch) {
  const int64_t least = batch.vectors ? lapack_size<T> : lapack_size_of_values<T>;
  return batch.n >= least && batch.n <= largest_for_lapack && lapack<T>() != nullptr;
}

void eigh(const EighBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t count = block.batch, n = block.size;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const Extent all = matrices(count, n, n);
    const EighBatch<T> batch = {operands.inputs<T>(0, 0, all),
                                operands.results<T>(1, 0, matrices(count, 1, n)),
                                operands.results<int32_t>(2, 0, Extent(count)),
                                block.vectors ? operands.results<T>(3, 0, all) : nullptr,
                                n,
                                block.upper};
    if (count == 0) return;
    if (n <= lanes_size && count >= least_lanes(n)) decompose_small(batch, count);
    else if (is_for_lapack(batch)) eigh_with_lapack(*lapack<T>(), batch, count);
    else decompose_all(batch, count);
  });
}

ORCHARD_FUNCTION("eigh", eigh, EighBlock, 4)

} // namespace
