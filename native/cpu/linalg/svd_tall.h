// Singular value decompositions of matrices of many rows and few columns, or the other way round, from that of the R of
// their QR decomposition: with B = Q R and R = U Σ Vᵀ, B = (Q U) Σ Vᵀ.
#pragma once

#include "blocked_qr.h"
#include "svd_signs.h"

namespace orchard {

template <class T> class TallSvd {
public:
  explicit TallSvd(const SvdBatch<T> &batch)
      : batch_(batch), small_(batch.small()), large_(batch.large()),
        vectors_(scratch_product({batch.count, large_, small_})),
        rest_(scratch_product({batch.count, small_, 3 * small_ + 1})) {}

  // `factorise` takes the square matrices R.
  template <class Factorise> void run(Factorise &&factorise) {
    decompose();
    factorise(inner());
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
  // B, and then the vectors of the reflections.
  Part<T> part(int64_t at) { return {vectors_.data() + at * large_ * small_, large_, small_, small_}; }

  SvdBatch<T> inner() {
    SvdBatch<T> own = batch_;
    own.a = r(), own.u = batch_.u ? u() : nullptr, own.vh = batch_.u ? vh() : nullptr;
    own.rows = own.columns = small_, own.full = false;
    return own;
  }

  void decompose() {
    const int64_t count = large_ * small_;
    for_each_qr<T>(batch_.count, large_, small_, 2 * count * small_, 0, [&](int64_t at, BlockedQr<T> &qr, T *) {
      const T *from = batch_.a + at * count;
      const Part<T> own = part(at);
      if (is_tall()) std::copy_n(from, count, own.data);
      else transpose_matrix(from, small_, large_, own.data);
      T *upper = r() + at * square();
      if (!is_finite(from, count)) return void(std::fill_n(upper, square(), std::numeric_limits<T>::quiet_NaN()));
      qr.factor(own, tau(at));
      for (int64_t i = 0; i < small_; i++)
        for (int64_t j = 0; j < small_; j++) upper[i * small_ + j] = j < i ? T(0) : own.data[i * small_ + j];
    });
  }

  static bool is_finite(const T *x, int64_t count) {
    T sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i] - x[i]; // NaN for what is not finite
    return sum == 0;
  }

  void multiply() {
    const int64_t width = batch_.full ? large_ : small_, room = is_tall() ? 0 : large_ * width;
    for_each_qr<T>(batch_.count, large_, small_, 4 * large_ * small_ * width, room + batch_.left(),
                   [&](int64_t at, BlockedQr<T> &qr, T *scratch) {
                     if (batch_.info[at] != svd_done) return;
                     const SvdProblem<T> own = batch_.problem(at, nullptr);
                     T *to = is_tall() ? own.u : scratch;
                     begin_with(to, width, u() + at * square());
                     qr.multiply(part(at), tau(at), small_, {to, large_, width, width}, false);
                     const T *others = vh() + at * square();
                     if (is_tall()) {
                       std::copy_n(others, square(), own.vh);
                     } else {
                       transpose_matrix(to, large_, width, own.vh);
                       transpose_matrix(others, small_, small_, own.u);
                     }
                     orient_vectors(batch_, own, scratch + room);
                   });
  }

  // U of R with zeros below, and further columns of the identity.
  void begin_with(T *to, int64_t width, const T *upper) const {
    std::fill_n(to, large_ * width, T(0));
    for (int64_t i = 0; i < small_; i++) std::copy_n(upper + i * small_, small_, to + i * width);
    for (int64_t i = small_; i < width; i++) to[i * width + i] = 1;
  }

  SvdBatch<T> batch_;
  int64_t small_, large_;
  Scratch<T> vectors_, rest_;
};

} // namespace orchard
