// Eigenvalues by LAPACK's tridiagonal reduction and its divide-and-conquer routine, the steps of syevd. The blocked
// code of reflections.h applies the reflections on all threads: OpenBLAS's ormtr took more than a quarter of the total
// time.
#include "eigh_lapack.h"

#include "blocked_qr.h"
#include "signs.h"
#include "tuning.h"

#include <optional>

namespace orchard {
namespace {

using namespace tuning::eigh_lapack;

// Writes the transpose to another array.
template <class T> void turn(const T *from, int64_t n, T *to) {
  parallel_for(n, rows_of_task,
               [&](int64_t begin, int64_t end) { transpose_part(from + begin * n, n, end - begin, n, to + begin, n); });
}

// Divides the scratch memory for one matrix among its arrays.
template <class T> class EighMemory {
public:
  EighMemory(int64_t n, bool vectors) : n_(n), vectors_(vectors) {}

  int64_t works() const { return 1 + 6 * n_ + (vectors_ ? n_ * n_ : 0); }
  int64_t whole_works() const { return 3 + 5 * n_; }
  int64_t elements() const {
    return after_squares() + 3 * n_ + works() + whole_works() + (vectors_ ? BlockedQr<T>::elements(n_, n_) : 0);
  }

  T *matrix(T *memory) const { return memory; }
  T *vectors(T *memory) const { return memory + n_ * n_ + between_arrays; }
  T *scale(T *memory) const { return memory + after_squares(); }
  T *below(T *memory) const { return memory + after_squares() + n_; }
  T *tau(T *memory) const { return memory + after_squares() + 2 * n_; }
  T *work(T *memory) const { return memory + after_squares() + 3 * n_; }
  int *whole_work(T *memory) const { return reinterpret_cast<int *>(work(memory) + works()); }
  T *blocks(T *memory) const { return work(memory) + works() + whole_works(); }

private:
  int64_t after_squares() const { return (vectors_ ? 2 : 1) * (n_ * n_ + between_arrays); }

  int64_t n_;
  bool vectors_;
};

template <class T> class LapackEigh {
public:
  LapackEigh(const Lapack<T> &library, const EighBatch<T> &batch, int64_t count)
      : library_(library), batch_(batch), n_(batch.n), space_(n_, batch.vectors != nullptr) {
    if (batch.vectors && count < thread_count()) tiles_.emplace(thread_count(), apply_work(n_));
  }

  int64_t elements() const { return space_.elements(); }

  // Loads the upper triangle, which is the lower one of the transpose that LAPACK sees.
  bool load(int64_t index, T *memory) const {
    const EighBatch<T> matrix = batch_.at(index);
    T *a = space_.matrix(memory), *other = space_.vectors(memory);
    const bool is_turned = matrix.vectors && !matrix.upper;
    const int64_t row = eigh_kernels().of<T>().load_triangle(matrix, is_turned ? other : a, *space_.scale(memory));
    if (row != 0) fail_matrix(matrix, row);
    else if (is_turned) turn(other, n_, a);
    return row == 0;
  }

  void compute(int64_t index, T *memory) const {
    const EighBatch<T> matrix = batch_.at(index);
    const int size = int(n_), works = int(space_.works()), whole_works = int(space_.whole_works());
    T *a = space_.matrix(memory), *work = space_.work(memory), *below = space_.below(memory);
    int *whole_work = space_.whole_work(memory);
    if (!matrix.vectors) {
      *matrix.info = library_.syevd('N', matrix.upper ? 'L' : 'U', size, a, size, matrix.values, work, works,
                                    whole_work, whole_works);
      return;
    }
    library_.sytrd('L', size, a, size, matrix.values, below, space_.tau(memory), work, works);
    *matrix.info = library_.stedc('I', size, matrix.values, below, space_.vectors(memory), size, work, works,
                                  whole_work, whole_works);
  }

  void store(int64_t index, T *memory) {
    const EighBatch<T> matrix = batch_.at(index);
    if (*matrix.info != 0) return fail_matrix(matrix, n_ + 1);
    for (int64_t i = 0; i < n_; i++) matrix.values[i] *= *space_.scale(memory);
    if (matrix.vectors) store_vectors(matrix, memory);
  }

private:
  // Transposes the vectors of the tridiagonal matrix and of the reflections, since LAPACK stores both as columns.
  // Reflection k does not change the first k + 1 elements.
  void store_vectors(const EighBatch<T> &matrix, T *memory) {
    T *reflections = space_.vectors(memory);
    turn(space_.vectors(memory), n_, matrix.vectors);
    turn(space_.matrix(memory), n_, reflections);
    BlockedQr<T> blocked(n_, n_, space_.blocks(memory), tiles_ ? &*tiles_ : nullptr);
    const int64_t count = n_ - 1;
    blocked.multiply({reflections + n_, count, count, n_}, space_.tau(memory), count,
                     {matrix.vectors + n_, count, n_, n_}, false);
    orient_columns(matrix.vectors, n_, n_, space_.work(memory));
  }

  const Lapack<T> &library_;
  const EighBatch<T> &batch_;
  const int64_t n_;
  const EighMemory<T> space_;
  std::optional<ScratchParts<T>> tiles_;
};

} // namespace

template <class T> void eigh_with_lapack(const Lapack<T> &library, const EighBatch<T> &batch, int64_t count) {
  LapackEigh<T> solver(library, batch, count);
  const int64_t n = batch.n;
  with_lapack<T>(
      library, {count, 10 * n * n * n, solver.elements(), n <= one_thread_size},
      [&](int64_t index, T *memory) { return solver.load(index, memory); },
      [&](int64_t index, T *memory) { solver.compute(index, memory); },
      [&](int64_t index, T *memory) { solver.store(index, memory); });
}

template void eigh_with_lapack(const Lapack<double> &library, const EighBatch<double> &batch, int64_t count);
template void eigh_with_lapack(const Lapack<float> &library, const EighBatch<float> &batch, int64_t count);

} // namespace orchard
