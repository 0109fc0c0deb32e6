// Singular values and vectors by one-sided Jacobi rotations after a QR decomposition with column pivoting, all in
// float64. Source: Z. Drmač, K. Veselić, "New fast and accurate Jacobi SVD algorithm I", 2008 (LAPACK Working Note
// 169); P. P. M. de Rijk, "A one-sided Jacobi algorithm for computing the singular value decomposition", 1989.
//
// The matrix is W of k rows and l ≥ k columns: A where it is wide, else Aᵀ.
//   Wᵀ P = Q R         reflections; the columns of Wᵀ are the rows of W, adjacent
//   G R = Σ Z          G: rotations of the rows of R until they are orthogonal, Z: those rows of length 1
//   W = (P Zᵀ) Σ (G Qᵀ)
#include "svd.h"

#include "vectors.h"

#include <cfloat>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int sweep_limit = 60;
// The largest element of the scaled matrix is about 1. The square of a row's norm below this has no digits.
constexpr double negligible_square = 1e-280;

void swap_rows(double *x, double *y, int64_t count) { std::swap_ranges(x, x + count, y); }

// Replaces x by a reflection I - tau v vᵀ, v[0] = 1, that maps it to (β, 0, 0, …): β in x[0], the rest of v after it.
double reflect(double *x, int64_t count) {
  double squares = count > 1 ? dot(x + 1, x + 1, count - 1) : 0;
  if (!(squares > 0)) return 0;
  double beta = -std::copysign(std::sqrt(x[0] * x[0] + squares), x[0]), inverse = 1 / (x[0] - beta);
  double tau = (beta - x[0]) / beta;
  for (int64_t i = 1; i < count; i++) x[i] *= inverse;
  x[0] = beta;
  return tau;
}

// y = (I - tau v vᵀ) y, where v[0] = 1 is not read.
void apply_reflection(const double *v, double tau, double *y, int64_t count) {
  if (tau == 0) return;
  double factor = tau * (y[0] + dot(v + 1, y + 1, count - 1));
  y[0] -= factor;
  subtract_multiple(y + 1, v + 1, factor, count - 1);
}

// y = H(0) H(1) … H(count - 1) y of reflections whose vectors are in the rows of `rows`, each from the diagonal on.
void apply_reflections(const double *rows, const double *taus, int64_t count, int64_t length, double *y) {
  for (int64_t t = count - 1; t >= 0; t--) apply_reflection(rows + t * length + t, taus[t], y + t, length - t);
}

// The rows of a matrix and what a decomposition of it takes.
struct Workspace {
  int64_t small, large;
  double *w, *r, *g, *completion, *taus, *norms, *first_norms, *completion_taus, *x, *y;
  double *order, *pivots; // whole numbers

  Workspace(double *scratch, int64_t rows, int64_t columns)
      : small(std::min(rows, columns)), large(std::max(rows, columns)) {
    auto take = [&](int64_t count) {
      double *own = scratch;
      scratch += count;
      return own;
    };
    const int64_t square = small * small;
    w = take(small * large), r = take(square), g = take(square), completion = take(square);
    taus = take(small), norms = take(small), first_norms = take(small), order = take(small), pivots = take(small);
    x = take(small), y = take(large);
    completion_taus = first_norms;
  }
};

// Q and R of Wᵀ P: in row j of W the column j of R up to the diagonal, and after it the vector of reflection j.
void pivoted_qr(const Workspace &own) {
  const auto [small, large] = std::pair(own.small, own.large);
  for (int64_t j = 0; j < small; j++) {
    own.pivots[j] = double(j);
    own.norms[j] = own.first_norms[j] = dot(own.w + j * large, own.w + j * large, large);
  }
  for (int64_t t = 0; t < small; t++) {
    int64_t pivot = std::max_element(own.norms + t, own.norms + small) - own.norms;
    double *row = own.w + t * large;
    if (pivot != t) {
      swap_rows(row, own.w + pivot * large, large);
      std::swap(own.pivots[t], own.pivots[pivot]);
      own.norms[pivot] = own.norms[t], own.first_norms[pivot] = own.first_norms[t];
    }
    own.taus[t] = reflect(row + t, large - t);
    for (int64_t j = t + 1; j < small; j++) {
      double *other = own.w + j * large;
      apply_reflection(row + t, own.taus[t], other + t, large - t);
      // What remains of a norm is a difference: where its digits are gone, it is added up anew.
      own.norms[j] -= other[t] * other[t];
      if (own.norms[j] > 1e-6 * own.first_norms[j]) continue;
      own.norms[j] = own.first_norms[j] = dot(other + t + 1, other + t + 1, large - t - 1);
    }
  }
}

// x, y = c x - s y, s x + c y for the sine and cosine of an angle. With c = 1 - s tan(angle / 2), small angles leave
// lengths as they are: a c of few digits would make all rows longer, sweep by sweep.
void rotate(double *__restrict x, double *__restrict y, double sine, double half_tangent, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    double own = x[i], other = y[i];
    x[i] = own - sine * (other + half_tangent * own);
    y[i] = other + sine * (own - half_tangent * other);
  }
}

// Makes two rows orthogonal. Returns whether they were not.
bool rotate_pair(const Workspace &own, int64_t i, int64_t j, double tolerance, bool has_vectors) {
  const int64_t n = own.small;
  double *x = own.r + i * n, *y = own.r + j * n, &a = own.norms[i], &b = own.norms[j];
  if (!(a > negligible_square && b > negligible_square)) return false;
  double product = dot(x, y, n);
  if (!(std::abs(product) > tolerance * (std::sqrt(a) * std::sqrt(b)))) return false;
  double zeta = (b - a) / (2 * product), size = std::abs(zeta);
  double tangent = std::copysign(size > 1e8 ? 0.5 / size : 1 / (size + std::sqrt(1 + size * size)), zeta);
  double cosine = 1 / std::sqrt(1 + tangent * tangent), sine = cosine * tangent, half_tangent = sine / (1 + cosine);
  const double before[] = {a, b};
  rotate(x, y, sine, half_tangent, n);
  if (has_vectors) rotate(own.g + i * n, own.g + j * n, sine, half_tangent, n);
  a -= tangent * product;
  b += tangent * product;
  if (!(a > 0.1 * before[0])) a = dot(x, x, n);
  if (!(b > 0.1 * before[1])) b = dot(y, y, n);
  return true;
}

// Rotates the rows of R until each two are orthogonal; G gets the rotations. Whether they are in the end.
bool orthogonalise(const Workspace &own, double tolerance, bool has_vectors) {
  const int64_t n = own.small;
  for (int sweep = 0; sweep < sweep_limit; sweep++) {
    bool is_rotated = false;
    for (int64_t i = 0; i < n; i++) own.norms[i] = dot(own.r + i * n, own.r + i * n, n);
    for (int64_t i = 0; i + 1 < n; i++) {
      int64_t pivot = std::max_element(own.norms + i, own.norms + n) - own.norms;
      if (pivot != i) {
        swap_rows(own.r + i * n, own.r + pivot * n, n);
        if (has_vectors) swap_rows(own.g + i * n, own.g + pivot * n, n);
        std::swap(own.norms[i], own.norms[pivot]);
      }
      for (int64_t j = i + 1; j < n; j++) is_rotated |= rotate_pair(own, i, j, tolerance, has_vectors);
    }
    if (!is_rotated) return true;
  }
  return false;
}

// The rows of R to length 1, in the order of falling norms, and the orthonormal ones that rows of zeros lack.
void normalise(const Workspace &own) {
  const int64_t n = own.small;
  double *z = own.completion;
  int64_t rank = 0;
  for (int64_t at = 0; at < n; at++) {
    const double *row = own.r + int64_t(own.order[at]) * n;
    double norm = own.norms[int64_t(own.order[at])];
    if (norm * norm > negligible_square) rank = at + 1;
    for (int64_t j = 0; j < n; j++) z[at * n + j] = row[j] / norm;
  }
  std::swap_ranges(z, z + n * n, own.r);
  if (rank == n) return;
  std::copy_n(own.r, rank * n, z);
  for (int64_t t = 0; t < rank; t++) {
    own.completion_taus[t] = reflect(z + t * n + t, n - t);
    for (int64_t j = t + 1; j < rank; j++)
      apply_reflection(z + t * n + t, own.completion_taus[t], z + j * n + t, n - t);
  }
  for (int64_t at = rank; at < n; at++) {
    double *row = own.r + at * n;
    std::fill_n(row, n, 0.0);
    row[at] = 1;
    apply_reflections(z, own.completion_taus, rank, n, row);
  }
}

// The power of two that brings the largest element to [1, 2), as its exponent; and whether all are finite.
template <class T> bool exponent_of(const T *a, int64_t count, int &exponent) {
  T largest = 0, sum = 0;
  for (int64_t i = 0; i < count; i++) {
    T size = std::abs(a[i]);
    largest = size > largest ? size : largest;
    sum += a[i] - a[i]; // NaN for what is not finite
  }
  exponent = largest > 0 ? std::ilogb(largest) : 0;
  return sum == 0;
}

template <class T> void load(const SvdProblem<T> &problem, const Workspace &own, int exponent) {
  // In two factors, since one may be no number.
  const double first = std::ldexp(1.0, -exponent / 2), second = std::ldexp(1.0, -(exponent - exponent / 2));
  const int64_t small = own.small, large = own.large;
  if (problem.is_tall()) {
    for (int64_t i = 0; i < large; i++)
      for (int64_t j = 0; j < small; j++) own.w[j * large + i] = double(problem.a[i * small + j]) * first * second;
  } else {
    for (int64_t at = 0; at < small * large; at++) own.w[at] = double(problem.a[at]) * first * second;
  }
}

// 1, or -1 where the element of the largest absolute value, the first of equal ones, is negative.
template <class T> double sign_of(const double *x, int64_t count) {
  T largest = 0;
  double sign = 1;
  for (int64_t i = 0; i < count; i++) {
    T size = T(std::abs(x[i]));
    if (size > largest) largest = size, sign = std::copysign(1.0, x[i]);
  }
  return sign;
}

template <class T> void store_column(const double *x, double sign, T *to, int64_t count, int64_t stride) {
  for (int64_t i = 0; i < count; i++) to[i * stride] = T(sign * x[i]) + T(0); // no -0
}

// The vectors of both sides, one pair after the other: x of the side of W's rows, y of that of its columns.
template <class T> void store_vectors(const SvdProblem<T> &problem, const Workspace &own) {
  const int64_t small = own.small, large = own.large, count = problem.full ? large : small;
  for (int64_t at = 0; at < count; at++) {
    const bool is_pair = at < small;
    std::fill_n(own.y, large, 0.0);
    if (is_pair) std::copy_n(own.g + int64_t(own.order[at]) * small, small, own.y);
    else own.y[at] = 1;
    apply_reflections(own.w, own.taus, small, large, own.y);
    if (is_pair)
      for (int64_t j = 0; j < small; j++) own.x[int64_t(own.pivots[j])] = own.r[at * small + j];
    double sign = problem.is_tall() || !is_pair ? sign_of<T>(own.y, large) : sign_of<T>(own.x, small);
    if (problem.is_tall()) {
      store_column(own.y, sign, problem.u + at, large, count);
      if (is_pair) store_column(own.x, sign, problem.vh + at * small, small, 1);
    } else {
      store_column(own.y, sign, problem.vh + at * large, large, 1);
      if (is_pair) store_column(own.x, sign, problem.u + at, small, small);
    }
  }
}

// Norms in falling order, of equal ones the first first.
void sort_norms(const Workspace &own) {
  for (int64_t i = 0; i < own.small; i++) {
    const double *row = own.r + i * own.small;
    own.norms[i] = std::sqrt(dot(row, row, own.small));
    own.order[i] = double(i);
  }
  std::stable_sort(own.order, own.order + own.small,
                   [&](double i, double j) { return own.norms[int64_t(i)] > own.norms[int64_t(j)]; });
}

template <class T> SvdInfo factorise(const SvdProblem<T> &problem) {
  const int64_t small = problem.small(), count = problem.rows * problem.columns;
  int exponent;
  if (!exponent_of(problem.a, count, exponent)) return svd_not_finite;
  const Workspace own(problem.scratch, problem.rows, problem.columns);
  load(problem, own, exponent);
  pivoted_qr(own);
  for (int64_t i = 0; i < small; i++)
    for (int64_t j = 0; j < small; j++) {
      own.r[i * small + j] = j >= i ? own.w[j * own.large + i] : 0;
      own.g[i * small + j] = i == j;
    }
  // Float32 results need no more digits than theirs.
  const double tolerance = sizeof(T) == 8 ? DBL_EPSILON * std::max(4.0, std::sqrt(double(small))) : 0x1p-36;
  if (!orthogonalise(own, tolerance, problem.has_vectors())) return svd_not_converged;
  sort_norms(own);
  for (int64_t at = 0; at < small; at++) problem.s[at] = T(std::ldexp(own.norms[int64_t(own.order[at])], exponent));
  if (!problem.has_vectors()) return svd_done;
  normalise(own);
  store_vectors(problem, own);
  return svd_done;
}

} // namespace

extern const SvdKernels svd_kernels = {{factorise<double>}, {factorise<float>}};

} // namespace orchard::ORCHARD_ISA
