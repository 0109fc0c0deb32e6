#include "svd_lapack.h"

#include "signs.h"
#include "tuning.h"

namespace orchard {

namespace {

// Up to this size, workspace lengths fit an int.
constexpr int64_t most_size = 20000;
using tuning::svd::lapack_size, tuning::svd::one_thread_size;

// LAPACK sees a row-major matrix as its transpose, Aᵀ = V Σ Uᵀ: its U is Vᵀ here, and its Vᵀ is U.
template <class T> class Gesdd {
public:
  Gesdd(const Lapack<T> &library, const SvdBatch<T> &batch)
      : library_(library), rows_(lapack_int(batch.columns)), columns_(lapack_int(batch.rows)), job_(!batch.u     ? 'N'
                                                                                                    : batch.full ? 'A'
                                                                                                                 : 'S'),
        u_stride_(std::max(1, rows_)), vt_stride_(batch.u ? lapack_int(std::max<int64_t>(1, batch.left())) : 1) {
    work_ = std::max(lapack_workspace<T>([&](T *answer, int length) { gesdd({}, nullptr, answer, length, nullptr); }),
                     lapack_workspace<T>([&](T *answer, int length) { gesvd({}, nullptr, answer, length); }));
  }

  // Returns the total size of the matrix, the workspace and its integers, in elements.
  int64_t elements() const {
    const int64_t integers = 8 * int64_t(std::min(rows_, columns_));
    return scratch_product({rows_, columns_}) + between_arrays + work_ +
           (integers * int64_t(sizeof(int)) / int64_t(sizeof(T))) + 1;
  }

  // Copies the matrix to the scratch memory. Returns false if an element is not finite.
  bool load(const SvdProblem<T> &problem, T *scratch) const { return copy_finite(problem.a, scratch, count()); }

  // Factors the matrix in the scratch memory.
  SvdInfo factorize(const SvdProblem<T> &problem, T *scratch) const {
    T *work = scratch + count() + between_arrays;
    int *integers = reinterpret_cast<int *>(work + work_);
    if (gesdd(problem, scratch, work, work_, integers) == 0) return svd_done;
    std::copy_n(problem.a, count(), scratch);
    return gesvd(problem, scratch, work, work_) == 0 ? svd_done : svd_not_converged;
  }

private:
  int64_t count() const { return int64_t(rows_) * columns_; }
  int gesdd(const SvdProblem<T> &problem, T *a, T *work, int length, int *integers) const {
    return library_.gesdd(job_, rows_, columns_, a, u_stride_, problem.s, problem.vh, u_stride_, problem.u, vt_stride_,
                          work, length, integers);
  }
  int gesvd(const SvdProblem<T> &problem, T *a, T *work, int length) const {
    return library_.gesvd(job_, job_, rows_, columns_, a, u_stride_, problem.s, problem.vh, u_stride_, problem.u,
                          vt_stride_, work, length);
  }

  const Lapack<T> &library_;
  int rows_, columns_;
  char job_;
  int u_stride_, vt_stride_;
  int work_ = 0;
};

} // namespace

template <class T> bool is_for_lapack(const SvdBatch<T> &batch) {
  return batch.small() >= lapack_size && batch.small() <= most_size && batch.large() <= INT_MAX;
}

template <class T> void factorize_all(const Lapack<T> &library, const SvdBatch<T> &batch) {
  const Gesdd<T> gesdd(library, batch);
  const int64_t small = batch.small(), operations = 8 * small * small * batch.large();
  const int64_t elements = std::max(gesdd.elements(), batch.u ? batch.left() : 0);
  with_lapack<T>(
      library, {batch.count, operations, elements, batch.large() <= one_thread_size},
      [&](int64_t at, T *scratch) {
        if (gesdd.load(batch.problem(at, nullptr), scratch)) return true;
        batch.finish(at, svd_not_finite);
        return false;
      },
      [&](int64_t at, T *scratch) { batch.info[at] = gesdd.factorize(batch.problem(at, nullptr), scratch); },
      [&](int64_t at, T *scratch) {
        const SvdInfo found = SvdInfo(batch.info[at]);
        if (found == svd_done && batch.u) orient_vectors(batch, batch.problem(at, nullptr), scratch);
        batch.finish(at, found);
      });
}

template bool is_for_lapack(const SvdBatch<float> &batch);
template bool is_for_lapack(const SvdBatch<double> &batch);
template void factorize_all(const Lapack<float> &library, const SvdBatch<float> &batch);
template void factorize_all(const Lapack<double> &library, const SvdBatch<double> &batch);

} // namespace orchard
