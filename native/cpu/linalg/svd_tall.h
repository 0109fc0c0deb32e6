// Singular value decomposition of matrices with many rows and few columns, or the reverse. R of the QR factorization is
// decomposed: with B = Q R and R = U Σ Vᵀ, B = (Q U) Σ Vᵀ.
#pragma once

#include "signs.h"
#include "tall_qr.h"

#include <memory>
#include <vector>

namespace orchard {

template <class T> class TallSvd {
public:
  explicit TallSvd(const SvdBatch<T> &batch)
      : batch_(batch), small_(batch.small()), large_(batch.large()),
        vectors_(scratch_product({batch.count, large_, small_})),
        rest_(scratch_product({batch.count, small_, 3 * small_ + 1})) {}

  // `factorize` decomposes the square matrices R.
  template <class Factorize> void run(Factorize &&factorize) {
    decompose();
    factorize(inner());
    if (batch_.u) multiply();
    for (int64_t at = 0; at < batch_.count; at++)
      if (batch_.info[at] != svd_done) batch_.finish(at, SvdInfo(batch_.info[at]));
  }

private:
  bool is_tall() const { return batch_.rows >= batch_.columns; }
  int64_t square() const { return small_ * small_; }
  T *r() { return rest_.data(); }
  T *u() { return r() + batch_.count * square(); }
  T *vh() { return u() + batch_.count * square(); }
  T *tau(int64_t at) { return vh() + batch_.count * square() + at * small_; }
  // Returns B, which the vectors of the reflections replace.
  Part<T> part(int64_t at) { return {vectors_.data() + at * large_ * small_, large_, small_, small_}; }

  SvdBatch<T> inner() {
    SvdBatch<T> batch = batch_;
    batch.a = r(), batch.u = batch_.u ? u() : nullptr, batch.vh = batch_.u ? vh() : nullptr;
    batch.rows = batch.columns = small_, batch.full = false;
    return batch;
  }

  // Returns whether the QR factorization uses blocks of rows (tall_qr.h): it does unless U has additional columns.
  bool is_in_blocks() const { return !batch_.full && TallQr<T>::is_for(large_, small_); }

  void decompose() {
    if (is_in_blocks()) {
      for (int64_t at = 0; at < batch_.count; at++) {
        blocks_.push_back(std::make_unique<TallQr<T>>(large_, small_));
        if (!load(at)) continue;
        blocks_.back()->factor(part(at).data, part(at).data);
        blocks_.back()->copy_r(r() + at * square());
      }
      return;
    }
    for_each_qr<T>(batch_.count, large_, small_, 2 * large_ * square(), 0, [&](int64_t at, BlockedQr<T> &qr, T *) {
      if (!load(at)) return;
      const Part<T> b = part(at);
      qr.factor(b, tau(at));
      T *upper = r() + at * square();
      for (int64_t i = 0; i < small_; i++)
        for (int64_t j = 0; j < small_; j++) upper[i * small_ + j] = j < i ? T(0) : b.data[i * small_ + j];
    });
  }

  // Loads B. If an element is not finite, sets R to NaN and returns false.
  bool load(int64_t at) {
    const T *from = batch_.a + at * large_ * small_;
    const int64_t count = large_ * small_;
    if (is_tall() ? copy_finite(from, part(at).data, count) : are_finite(from, count)) {
      if (!is_tall()) transpose_matrix(from, small_, large_, part(at).data);
      return true;
    }
    std::fill_n(r() + at * square(), square(), std::numeric_limits<T>::quiet_NaN());
    return false;
  }

  void multiply() {
    const int64_t width = batch_.full ? large_ : small_, room = is_tall() ? 0 : large_ * width;
    if (is_in_blocks()) {
      Scratch<T> scratch(room + batch_.left());
      for (int64_t at = 0; at < batch_.count; at++) {
        if (batch_.info[at] != svd_done) continue;
        T *to = is_tall() ? batch_.problem(at, nullptr).u : scratch.data();
        blocks_[size_t(at)]->expand(part(at).data, u() + at * square(), small_, to);
        finish(at, width, to, scratch.data() + room);
      }
      return;
    }
    for_each_qr<T>(batch_.count, large_, small_, 4 * large_ * small_ * width, room + batch_.left(),
                   [&](int64_t at, BlockedQr<T> &qr, T *scratch) {
                     if (batch_.info[at] != svd_done) return;
                     T *to = is_tall() ? batch_.problem(at, nullptr).u : scratch;
                     begin_with(to, width, u() + at * square());
                     qr.multiply(part(at), tau(at), small_, {to, large_, width, width}, false);
                     finish(at, width, to, scratch + room);
                   });
  }

  // Stores both sides' singular vectors, and fixes their signs. `to` has the vectors of A's long side, computed from
  // those of B.
  void finish(int64_t at, int64_t width, const T *to, T *scratch) {
    const SvdProblem<T> problem = batch_.problem(at, nullptr);
    const T *others = vh() + at * square();
    if (is_tall()) {
      std::copy_n(others, square(), problem.vh);
    } else {
      transpose_matrix(to, large_, width, problem.vh);
      transpose_matrix(others, small_, small_, problem.u);
    }
    orient_vectors(batch_, problem, scratch);
  }

  // Fills `to` with U of R, zeros below it, and additional columns of the identity matrix.
  void begin_with(T *to, int64_t width, const T *upper) const {
    std::fill_n(to, large_ * width, T(0));
    for (int64_t i = 0; i < small_; i++) std::copy_n(upper + i * small_, small_, to + i * width);
    for (int64_t i = small_; i < width; i++) to[i * width + i] = 1;
  }

  SvdBatch<T> batch_;
  int64_t small_, large_;
  Scratch<T> vectors_, rest_;
  std::vector<std::unique_ptr<TallQr<T>>> blocks_;
};

} // namespace orchard
