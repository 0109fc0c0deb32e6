#include "svd_lapack.h"
#include "svd_tall.h"
#include "tuning.h"

using namespace orchard;

namespace {

// Returns the approximate number of operations for a matrix, assuming six sweeps over pairs of rows.
template <class T> int64_t operations_of(const SvdBatch<T> &batch) {
  const int64_t small = batch.small();
  return 4 * small * small * batch.large() + 40 * small * small * small;
}

template <class T> int64_t scratch_of(const SvdBatch<T> &batch) {
  const int64_t vectors = !batch.u ? 0 : batch.full ? batch.large() : batch.small();
  return std::max(svd_scratch(batch.rows, batch.columns), svd_bidiagonal_scratch(batch.rows, batch.columns, vectors));
}

template <class T> void factorize_one(const SvdBatch<T> &batch, int64_t at, double *scratch) {
  const SvdProblem<T> problem = batch.problem(at, scratch);
  const SvdInfo found = svd_bidiagonal_kernels().of<T>().factorize(problem);
  batch.finish(at, found == svd_left ? svd_kernels().of<T>().factorize(problem) : found);
}

template <class T> void factorize_all(const SvdBatch<T> &batch) {
  for_each_matrix<double>(batch.count, operations_of(batch), scratch_of(batch),
                          [&](int64_t at, double *scratch) { factorize_one(batch, at, scratch); });
}

using namespace tuning::svd;

template <class T> bool is_for_lanes(const SvdBatch<T> &batch) {
  return batch.small() <= lanes_size && batch.count * least_part_of_lanes >= svd_lanes_kernels().of<T>().lanes;
}

template <class T> void factorize_lanes(const SvdBatch<T> &batch) {
  const auto &kernel = svd_lanes_kernels().of<T>();
  const int64_t numbers = svd_scratch(batch.rows, batch.columns) * int64_t(sizeof(double) / sizeof(T));
  const int64_t vectors = svd_lanes_scratch(batch.rows) + (numbers + kernel.lanes - 1) / kernel.lanes;
  for_each_group<T>(batch.count, kernel.lanes, operations_of(batch) * kernel.lanes, vectors,
                    [&](int64_t first, int64_t count, T *scratch) {
                      kernel.factorize(batch, first, count, scratch);
                      double *alone = reinterpret_cast<double *>(scratch);
                      for (int64_t at = first; at < first + count; at++)
                        if (batch.info[at] == svd_left)
                          batch.finish(at, svd_kernels().of<T>().factorize(batch.problem(at, alone)));
                    });
}

template <class T> void factorize(const SvdBatch<T> &batch) {
  if (batch.count == 0) return;
  const bool is_square = batch.rows == batch.columns, has_lanes = is_for_lanes(batch);
  if (batch.small() > 0 && !is_square && (has_lanes || batch.large() >= tall_ratio * batch.small()))
    return TallSvd<T>(batch).run([](const SvdBatch<T> &square) { factorize(square); });
  if (has_lanes && is_square && batch.small() > 0) return factorize_lanes(batch);
  const Lapack<T> *library = is_for_lapack(batch) ? lapack<T>() : nullptr;
  if (library) factorize_all(*library, batch);
  else factorize_all(batch);
}

void svd(const SvdBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const bool has_vectors = block.vectors;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    SvdBatch<T> batch{};
    batch.count = block.batch, batch.rows = block.rows, batch.columns = block.columns, batch.full = block.full;
    batch.a = operands.inputs<T>(0, 0, matrices(batch.count, batch.rows, batch.columns));
    if (has_vectors) {
      batch.u = operands.results<T>(1, 0, matrices(batch.count, batch.rows, batch.left()));
      batch.vh = operands.results<T>(3, 0, matrices(batch.count, batch.right(), batch.columns));
    }
    batch.s = operands.results<T>(2, 0, Extent(batch.small()).along(batch.count, batch.small()));
    batch.info = operands.results<int32_t>(4, 0, Extent(batch.count));
    factorize(batch);
  });
}

ORCHARD_FUNCTION("svd", svd, SvdBlock, 5)

} // namespace
