#include "svd.h"

#include "../memory.h"
#include "../parallel.h"

using namespace orchard;

namespace {

template <class T> struct Batch {
  const T *a;
  T *u, *s, *vh;
  int32_t *info;
  int64_t count, rows, columns;
  bool full;

  int64_t small() const { return std::min(rows, columns); }
  int64_t left() const { return full ? rows : small(); }
  int64_t right() const { return full ? columns : small(); }

  SvdProblem<T> problem(int64_t at, double *scratch) const {
    return {a + at * rows * columns,
            u ? u + at * rows * left() : nullptr,
            s + at * small(),
            vh ? vh + at * right() * columns : nullptr,
            rows,
            columns,
            full,
            scratch};
  }

  void fill(int64_t at, T value) const {
    const SvdProblem<T> own = problem(at, nullptr);
    std::fill_n(own.s, small(), value);
    if (!own.has_vectors()) return;
    std::fill_n(own.u, rows * left(), value);
    std::fill_n(own.vh, right() * columns, value);
  }
};

// A part of the batch to each thread, with memory of its own.
template <class T> void factorise(const Batch<T> &batch) {
  const int64_t tasks = std::min<int64_t>(batch.count, 4 * thread_count());
  const int64_t of_task = (batch.count + tasks - 1) / tasks, numbers = svd_scratch(batch.rows, batch.columns);
  Scratch<double> scratch(scratch_product({tasks, numbers}));
  parallel_for(tasks, 1, [&](int64_t first_task, int64_t end_task) {
    for (int64_t task = first_task; task < end_task; task++)
      for (int64_t at = task * of_task; at < std::min(batch.count, (task + 1) * of_task); at++) {
        const SvdInfo found = svd_kernels().of<T>().factorise(batch.problem(at, scratch.data() + task * numbers));
        if (found != svd_done) batch.fill(at, std::numeric_limits<T>::quiet_NaN());
        batch.info[at] = found;
      }
  });
}

void svd(const SvdBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const bool has_vectors = block.vectors;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    Batch<T> batch{};
    batch.count = block.batch, batch.rows = block.rows, batch.columns = block.columns, batch.full = block.full;
    batch.a = operands.inputs<T>(0, 0, matrices(batch.count, batch.rows, batch.columns));
    if (has_vectors) {
      batch.u = operands.results<T>(1, 0, matrices(batch.count, batch.rows, batch.left()));
      batch.vh = operands.results<T>(3, 0, matrices(batch.count, batch.right(), batch.columns));
    }
    batch.s = operands.results<T>(2, 0, Extent(batch.small()).along(batch.count, batch.small()));
    batch.info = operands.results<int32_t>(4, 0, Extent(batch.count));
    if (batch.count > 0) factorise(batch);
  });
}

ORCHARD_FUNCTION("svd", svd, SvdBlock, 5)

} // namespace
