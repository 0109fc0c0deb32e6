// QR factorization of small matrices, one per vector lane.
#include "qr.h"

#include "lanes.h"
#include "reflection.h"

#include <array>

namespace orchard::ORCHARD_ISA {
namespace {

// An interleaved matrix with rows of `columns` vectors.
template <class T> struct LaneRows {
  Vector<T> *m;
  int64_t rows, columns;
  Vector<T> &operator()(int64_t i, int64_t j) const { return m[i * columns + j]; }
};

template <class T> struct LaneReflection {
  Vector<T> tau, beta;
};

// Handles lanes in which the sum of squares overflowed or underflowed: scales their columns first.
template <class T>
LaneReflection<T> reflect_scaled(const LaneRows<T> &a, int64_t j, LaneMask<T> is_safe, Vector<T> square) {
  Vector<T> largest{}, scaled_square{};
  for (int64_t i = j + 1; i < a.rows; i++) {
    const Vector<T> size = absolute(a(i, j));
    largest = select((size > largest) | (size != size), size, largest);
  }
  const LaneMask<T> is_zero = largest == 0;
  const Vector<T> one = broadcast(T(1)), alpha = a(j, j), top = absolute(alpha);
  Vector<T> scale = select(largest < top, top, largest);
  scale = select(is_safe | is_zero, one, scale);
  for (int64_t i = j + 1; i < a.rows; i++) {
    a(i, j) /= scale;
    scaled_square = multiply_add<T>(a(i, j), a(i, j), scaled_square);
  }
  const Vector<T> first = alpha / scale, sum = select(is_safe, square, scaled_square);
  const Vector<T> length = square_root<Vector<T>>(multiply_add<T>(first, first, sum));
  const Vector<T> beta = select(first < 0, length, -length), factor = one / (first - beta);
  for (int64_t i = j + 1; i < a.rows; i++) a(i, j) = select(is_zero, Vector<T>{}, a(i, j) * factor);
  return {select(is_zero, Vector<T>{}, one - first / beta), select(is_zero, alpha, beta * scale)};
}

// Replaces the elements below the diagonal in a column by v, as `reflect` of reflection.h does, in every lane.
template <class T> LaneReflection<T> reflect_lanes(const LaneRows<T> &a, int64_t j) {
  Vector<T> square{};
  for (int64_t i = j + 1; i < a.rows; i++) square = multiply_add<T>(a(i, j), a(i, j), square);
  const Vector<T> alpha = a(j, j), all = multiply_add<T>(alpha, alpha, square);
  const LaneMask<T> is_safe = (square > least_square<T>)&(all < most_square<T>);
  if (any(~is_safe)) return reflect_scaled(a, j, is_safe, square);
  const Vector<T> one = broadcast(T(1)), length = square_root<Vector<T>>(all);
  const Vector<T> beta = select(alpha < 0, length, -length), factor = one / (alpha - beta);
  for (int64_t i = j + 1; i < a.rows; i++) a(i, j) *= factor;
  return {one - alpha / beta, beta};
}

// Subtracts tau v (vᵀ C) from the columns of C from `first` on, where v is below row j in column j of A.
template <class T, int count>
inline void reflect_columns(const LaneRows<T> &a, int64_t j, const LaneRows<T> &c, int64_t first, Vector<T> tau) {
  Vector<T> sums[count];
  for (int s = 0; s < count; s++) sums[s] = c(j, first + s);
  for (int64_t i = j + 1; i < a.rows; i++) {
    const Vector<T> v = a(i, j);
    for (int s = 0; s < count; s++) sums[s] = multiply_add<T>(v, c(i, first + s), sums[s]);
  }
  for (int s = 0; s < count; s++) {
    sums[s] *= -tau;
    c(j, first + s) += sums[s];
  }
  for (int64_t i = j + 1; i < a.rows; i++) {
    const Vector<T> v = a(i, j);
    for (int s = 0; s < count; s++) c(i, first + s) = multiply_add<T>(v, sums[s], c(i, first + s));
  }
}

template <class T>
void reflect_range(const LaneRows<T> &a, int64_t j, const LaneRows<T> &c, int64_t first, int64_t end, Vector<T> tau) {
  constexpr int step = 4;
  for (; first + step <= end; first += step) reflect_columns<T, step>(a, j, c, first, tau);
  for (; first < end; first++) reflect_columns<T, 1>(a, j, c, first, tau);
}

template <class T> void factor(const LaneRows<T> &a, int64_t count, Vector<T> *tau) {
  for (int64_t j = 0; j < count; j++) {
    const LaneReflection<T> reflection = reflect_lanes(a, j);
    tau[j] = reflection.tau;
    reflect_range(a, j, a, j + 1, a.columns, reflection.tau);
    a(j, j) = reflection.beta;
  }
}

// Replaces the vectors by the first `width` columns of Q.
template <class T> void form(const LaneRows<T> &a, int64_t count, int64_t width, const Vector<T> *tau) {
  for (int64_t j = count; j < width; j++)
    for (int64_t i = 0; i < a.rows; i++) a(i, j) = broadcast(T(i == j));
  for (int64_t j = count; j-- > 0;) {
    reflect_range(a, j, a, j + 1, width, tau[j]);
    for (int64_t i = 0; i < j; i++) a(i, j) = Vector<T>{};
    a(j, j) = 1 - tau[j];
    for (int64_t i = j + 1; i < a.rows; i++) a(i, j) *= -tau[j];
  }
}

template <class T> Vector<T> negated_where(LaneMask<T> mask, Vector<T> x) { return select(mask, 0 - x, x); }

template <class T> void qr(const QrGroup<T> &group, T *work) {
  const auto [rows, columns, width] = std::array{group.rows, group.columns, group.width};
  const int64_t count = group.count(), inner = group.inner();
  const LaneRows<T> a{lanes_in<T>(work), rows, columns};
  Vector<T> *tau = a.m + rows * columns, *diagonal = tau + count, *out = diagonal + count;
  load_lanes<T>(group.a, rows * columns, a.m);
  factor(a, count, tau);
  for (int64_t i = 0; i < inner; i++) {
    if (i < count) diagonal[i] = a(i, i);
    for (int64_t j = 0; j < columns; j++)
      out[i * columns + j] = j < i ? Vector<T>{} : negated_where<T>(diagonal[i] < 0, a(i, j));
  }
  store_lanes<T>(out, inner * columns, group.r);
  if (width == 0) return;
  form(a, count, width, tau);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < width; j++)
      out[i * width + j] = j < count ? negated_where<T>(diagonal[j] < 0, a(i, j)) : a(i, j);
  store_lanes<T>(out, rows * width, group.q);
}

template <class T> void geqrf(const GeqrfGroup<T> &group, T *work) {
  const int64_t count = std::min(group.rows, group.columns), elements = group.rows * group.columns;
  const LaneRows<T> a{lanes_in<T>(work), group.rows, group.columns};
  load_lanes<T>(group.a, elements, a.m);
  factor(a, count, a.m + elements);
  store_lanes<T>(a.m, elements, group.factors);
  store_lanes<T>(a.m + elements, count, group.tau);
}

} // namespace

extern const QrLanesKernels qr_lanes_kernels = {{qr<double>, geqrf<double>, lanes<double>},
                                                {qr<float>, geqrf<float>, lanes<float>}};

} // namespace orchard::ORCHARD_ISA
