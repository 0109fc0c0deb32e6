// One-sided Jacobi rotations of square matrices, one per vector lane. The rows of W = Aᵀ are rotated until all pairs
// are orthogonal, and the same rotations are applied to G: G W = Σ Z. Then A = Zᵀ Σ G. The result of a lane depends on
// its matrix only.
#include "lanes.h"
#include "svd.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

// The number of sweeps after which a matrix is left to the kernel for one matrix. Six to ten are usual.
constexpr int lanes_sweep_limit = 30;
// Matrices are scaled so that their largest element is about 1. A row whose squared norm is at most this has too few
// digits.
template <class T> constexpr T least_square = sizeof(T) == 8 ? T(1e-240) : T(0x1p-80);

template <class T> class LaneSvd {
  using V = Vector<T>;
  using Mask = LaneMask<T>;

public:
  LaneSvd(const SvdBatch<T> &batch, int64_t first, int64_t count, T *scratch)
      : batch_(batch), first_(first), count_(count), n_(batch.rows), w_(lanes_in<T>(scratch)), g_(w_ + n_ * n_),
        squares_(g_ + n_ * n_), norms_(squares_ + n_), rows_(reinterpret_cast<T *>(norms_ + n_)),
        rotations_(rows_ + n_ * n_ * lanes<T>) {}

  void factorize() {
    load_lanes<T>({batch_.a + first_ * n_ * n_, n_ * n_, count_}, n_ * n_, w_);
    for (int64_t i = 0; i < n_; i++)
      for (int64_t j = 0; j < i; j++) std::swap(w_[i * n_ + j], w_[j * n_ + i]);
    scale();
    if (has_vectors())
      for (int64_t at = 0; at < n_ * n_; at++) g_[at] = broadcast(T(at / n_ == at % n_));
    is_left_ |= ~orthogonalise();
    for (int64_t i = 0; i < n_; i++) is_left_ |= ~(squares_[i] > least_square<T>);
    if (has_vectors()) normalize_vectors();
    for (int64_t lane = 0; lane < count_; lane++) store(lane);
  }

private:
  bool has_vectors() const { return batch_.u != nullptr; }

  // Scales matrices so that their elements are about 1; matrices that are not finite become 0.
  void scale() {
    V largest = {}, sum = {};
    for (int64_t at = 0; at < n_ * n_; at++) {
      const V size = absolute(w_[at]);
      largest = select(size > largest, size, largest);
      sum += w_[at] - w_[at];
    }
    is_left_ = ~(sum == 0) | ~(largest > 0);
    V first = {}, second = {}; // two factors, since a single factor may overflow
    for (int lane = 0; lane < lanes<T>; lane++) {
      const int exponent = exponents_[lane] = is_left_[lane] ? 0 : std::ilogb(largest[lane]);
      first[lane] = std::ldexp(T(1), -exponent / 2);
      second[lane] = std::ldexp(T(1), -(exponent - exponent / 2));
    }
    for (int64_t at = 0; at < n_ * n_; at++) w_[at] = select(is_left_, V{}, w_[at] * first * second);
  }

  V product(const V *x, const V *y) const {
    V sums[4] = {};
    int64_t k = 0;
    for (; k + 4 <= n_; k += 4)
      for (int part = 0; part < 4; part++) sums[part] = multiply_add<T>(x[k + part], y[k + part], sums[part]);
    for (int part = 0; k < n_; k++, part++) sums[part] = multiply_add<T>(x[k], y[k], sums[part]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  // Rotates the rows. Returns a mask of the lanes whose rows are orthogonal at the end.
  Mask orthogonalise() {
    for (int sweep = 0; sweep < lanes_sweep_limit; sweep++) {
      Mask is_rotated = {};
      for (int64_t i = 0; i < n_; i++) {
        squares_[i] = product(w_ + i * n_, w_ + i * n_);
        norms_[i] = square_root(squares_[i]);
      }
      for (int64_t i = 0; i < n_; i++)
        for (int64_t j = i + 1; j < n_; j++) is_rotated |= rotate_pair(i, j);
      if (!any(is_rotated)) return Mask{} == 0;
      is_converged_ = ~is_rotated;
    }
    return is_converged_;
  }

  // Makes two rows orthogonal, and puts the one with the larger norm first. Returns a mask of the lanes in which a
  // rotation was needed.
  Mask rotate_pair(int64_t i, int64_t j) {
    const T tolerance = std::numeric_limits<T>::epsilon() * std::max(T(4), std::sqrt(T(n_)));
    V *x = w_ + i * n_, *y = w_ + j * n_;
    const V a = squares_[i], b = squares_[j], across = product(x, y), size = absolute(across);
    const Mask is_needed = (size > tolerance * norms_[i] * norms_[j]) & (a > least_square<T>)&(b > least_square<T>);
    if (!any(is_needed)) return is_needed;
    const V one = broadcast(T(1)), longer = select(a >= b, a, b), unit = select(is_needed, longer, one);
    // tan 2θ = 2 across / (a - b). Both terms are divided by the larger squared norm.
    const V along = absolute(a - b) / unit, twice = T(2) * size / unit;
    V tangent = twice / (along + square_root(along * along + twice * twice));
    tangent = select(is_needed, tangent, V{});
    const V cosine = one / square_root(one + tangent * tangent), height = cosine * tangent;
    const V sine = select(across < 0, height, -height), half_tangent = sine / (one + cosine);
    const Mask is_swapped = is_needed & (b > a);
    rotate(x, y, sine, half_tangent, is_swapped);
    if (has_vectors()) rotate(g_ + i * n_, g_ + j * n_, sine, half_tangent, is_swapped);
    squares_[i] = select(is_needed, longer + tangent * size, a);
    const V before = select(is_swapped, a, b);
    squares_[j] = before - tangent * size;
    // The remaining square is computed by subtraction. Once cancellation has cost its digits, it is recomputed.
    const Mask is_lost = is_needed & ~(squares_[j] > T(0.1) * before);
    if (any(is_lost)) squares_[j] = select(is_lost, product(y, y), squares_[j]);
    norms_[i] = square_root(squares_[i]);
    norms_[j] = square_root(squares_[j]);
    return is_needed;
  }

  // Rotates the row with the larger norm and the other one, by the sine of an angle and the tangent of its half; see
  // svd.isa.cpp.
  void rotate(V *__restrict x, V *__restrict y, V sine, V half_tangent, Mask is_swapped) const {
    if (!any(is_swapped)) return rotate_rows(x, y, sine, half_tangent, [](V, V second) { return second; });
    rotate_rows(x, y, sine, half_tangent,
                [is_swapped](V first, V second) { return select(is_swapped, first, second); });
  }
  template <class Choose>
  void rotate_rows(V *__restrict x, V *__restrict y, V sine, V half_tangent, Choose &&choose) const {
    for (int64_t k = 0; k < n_; k++) {
      const V shorter = choose(x[k], y[k]), longer = choose(y[k], x[k]);
      x[k] = multiply_add<T>(-sine, multiply_add<T>(half_tangent, longer, shorter), longer);
      y[k] = multiply_add<T>(sine, multiply_add<T>(-half_tangent, shorter, longer), shorter);
    }
  }

  // Normalizes the rows of W, which are the left vectors, and determines the signs from them.
  void normalize_vectors() {
    const V one = broadcast(T(1));
    for (int64_t i = 0; i < n_; i++) {
      const V norm = select(is_left_, one, square_root(squares_[i]));
      V largest = {}, sign = one;
      for (int64_t k = 0; k < n_; k++) {
        const V value = w_[i * n_ + k] = w_[i * n_ + k] / norm, size = absolute(value);
        sign = select(size > largest, select(value < 0, -one, one), sign);
        largest = select(size > largest, size, largest);
      }
      for (int64_t k = 0; k < n_; k++) {
        w_[i * n_ + k] = w_[i * n_ + k] * sign + T(0); // no -0
        g_[i * n_ + k] = g_[i * n_ + k] * sign + T(0);
      }
    }
    store_lanes<T>(w_, n_ * n_, {rows_, n_ * n_, count_});
    store_lanes<T>(g_, n_ * n_, {rotations_, n_ * n_, count_});
  }

  // Stores the results of a matrix, with singular values in descending order.
  void store(int64_t lane) const {
    const int64_t at = first_ + lane;
    batch_.info[at] = is_left_[lane] ? svd_left : svd_done;
    if (is_left_[lane]) return;
    const SvdProblem<T> problem = batch_.problem(at, nullptr);
    T norms[lanes_size];
    int64_t order[lanes_size];
    for (int64_t i = 0; i < n_; i++) norms[i] = std::sqrt(squares_[i][lane]);
    for (int64_t i = 0; i < n_; i++) { // insertion sort; equal norms keep their order
      int64_t to = i;
      for (; to > 0 && norms[order[to - 1]] < norms[i]; to--) order[to] = order[to - 1];
      order[to] = i;
    }
    for (int64_t to = 0; to < n_; to++) problem.s[to] = std::ldexp(norms[order[to]], exponents_[lane]);
    if (!has_vectors()) return;
    for (int64_t to = 0; to < n_; to++) {
      const int64_t from = (lane * n_ + order[to]) * n_;
      std::copy_n(rotations_ + from, n_, problem.vh + to * n_);
      for (int64_t i = 0; i < n_; i++) problem.u[i * n_ + to] = rows_[from + i];
    }
  }

  static constexpr int64_t lanes_size = 32;
  const SvdBatch<T> &batch_;
  int64_t first_, count_, n_;
  V *w_, *g_, *squares_, *norms_;
  T *rows_, *rotations_;
  Mask is_left_ = {}, is_converged_ = {};
  int exponents_[lanes<T>] = {};
};

template <class T> void factorize_group(const SvdBatch<T> &batch, int64_t first, int64_t count, T *scratch) {
  LaneSvd<T>(batch, first, count, scratch).factorize();
}

} // namespace

extern const SvdLanesKernels svd_lanes_kernels = {{factorize_group<double>, lanes<double>},
                                                  {factorize_group<float>, lanes<float>}};

} // namespace orchard::ORCHARD_ISA
