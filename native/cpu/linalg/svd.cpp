#include "svd_lapack.h"
#include "svd_tall.h"

using namespace orchard;

namespace {

// About how many operations a matrix takes: six sweeps over pairs of rows, and of rotations.
template <class T> int64_t operations_of(const SvdBatch<T> &batch) {
  const int64_t small = batch.small();
  return 4 * small * small * batch.large() + 40 * small * small * small;
}

template <class T> void factorise_all(const SvdBatch<T> &batch) {
  const int64_t numbers = svd_scratch(batch.rows, batch.columns);
  for_each_matrix<double>(batch.count, operations_of(batch), numbers, [&](int64_t at, double *scratch) {
    batch.finish(at, svd_kernels().of<T>().factorise(batch.problem(at, scratch)));
  });
}

// Whether a matrix has so many more rows than columns, or the other way round, that QR first is faster.
constexpr int64_t tall_ratio = 2;

template <class T> void factorise(const SvdBatch<T> &batch) {
  if (batch.count == 0) return;
  if (batch.small() > 0 && batch.large() >= tall_ratio * batch.small())
    return TallSvd<T>(batch).run([](const SvdBatch<T> &square) { factorise(square); });
  const Lapack<T> *library = is_for_lapack(batch) ? lapack<T>() : nullptr;
  if (library) factorise_all(*library, batch);
  else factorise_all(batch);
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
    factorise(batch);
  });
}

ORCHARD_FUNCTION("svd", svd, SvdBlock, 5)

} // namespace
