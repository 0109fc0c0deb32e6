// Singular values and vectors by one-sided Jacobi rotations after a QR decomposition with column pivoting, all in
// float64. Sources: Z. Drmač, K. Veselić, "New fast and accurate Jacobi SVD algorithm I", 2008 (LAPACK Working Note
// 169); P. P. M. de Rijk, "A one-sided Jacobi algorithm for computing the singular value decomposition", 1989.
//
// The matrix is W with k rows and l ≥ k columns: A if it is wide, else Aᵀ.
//   Wᵀ P = Q R         reflections; the columns of Wᵀ are the rows of W, whose elements are adjacent
//   G R = Σ Z          G: rotations of the rows of R until they are orthogonal; Z: those rows, normalized
//   W = (P Zᵀ) Σ (G Qᵀ)
#include "svd_scale.h"
#include "vectors.h"

#include <cfloat>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int sweep_limit = 60;
// The matrix is scaled so that its largest element is about 1. A row whose squared norm is below this limit has no
// significant digits.
constexpr double negligible_square = 1e-280;

void swap_rows(double *x, double *y, int64_t count) { std::swap_ranges(x, x + count, y); }

// Computes the reflection I - tau v vᵀ with v[0] = 1 that maps x to (β, 0, 0, …). x[0] becomes β, and the rest of x the
// rest of v. Returns tau.
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

// y = H(0) H(1) … H(count - 1) y. The vectors of the reflections are in the rows of `rows`, each from the diagonal on.
void apply_reflections(const double *rows, const double *taus, int64_t count, int64_t length, double *y) {
  for (int64_t t = count - 1; t >= 0; t--) apply_reflection(rows + t * length + t, taus[t], y + t, length - t);
}

// The rows of a matrix and the scratch memory for its decomposition.
struct Workspace {
  int64_t small, large;
  double *w, *r, *g, *completion, *taus, *norms, *first_norms, *completion_taus, *x, *y;
  double *order, *pivots; // integers, stored as double

  Workspace(double *scratch, int64_t rows, int64_t columns)
      : small(std::min(rows, columns)), large(std::max(rows, columns)) {
    auto take = [&](int64_t count) {
      double *taken = scratch;
      scratch += count;
      return taken;
    };
    const int64_t square = small * small;
    w = take(small * large), r = take(square), g = take(square), completion = take(square);
    taus = take(small), norms = take(small), first_norms = take(small), order = take(small), pivots = take(small);
    x = take(small), y = take(large);
    completion_taus = first_norms;
  }
};

// Computes Q and R of Wᵀ P: row j of W is replaced by column j of R up to the diagonal, followed by the vector of
// reflection j.
void pivoted_qr(const Workspace &space) {
  const auto [small, large] = std::pair(space.small, space.large);
  for (int64_t j = 0; j < small; j++) {
    space.pivots[j] = double(j);
    space.norms[j] = space.first_norms[j] = dot(space.w + j * large, space.w + j * large, large);
  }
  for (int64_t t = 0; t < small; t++) {
    int64_t pivot = std::max_element(space.norms + t, space.norms + small) - space.norms;
    double *row = space.w + t * large;
    if (pivot != t) {
      swap_rows(row, space.w + pivot * large, large);
      std::swap(space.pivots[t], space.pivots[pivot]);
      space.norms[pivot] = space.norms[t], space.first_norms[pivot] = space.first_norms[t];
    }
    space.taus[t] = reflect(row + t, large - t);
    for (int64_t j = t + 1; j < small; j++) {
      double *other = space.w + j * large;
      apply_reflection(row + t, space.taus[t], other + t, large - t);
      // The remaining norm is computed by subtraction. Once cancellation has cost its digits, it is recomputed.
      space.norms[j] -= other[t] * other[t];
      if (space.norms[j] > 1e-6 * space.first_norms[j]) continue;
      space.norms[j] = space.first_norms[j] = dot(other + t + 1, other + t + 1, large - t - 1);
    }
  }
}

// Rotates by an angle: x, y = c x - s y, s x + c y. c is computed as 1 - s tan(angle / 2), which preserves lengths for
// small angles: a rounded c would lengthen all rows, sweep by sweep.
void rotate(double *__restrict x, double *__restrict y, double sine, double half_tangent, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    double first = x[i], other = y[i];
    x[i] = first - sine * (other + half_tangent * first);
    y[i] = other + sine * (first - half_tangent * other);
  }
}

// Makes two rows orthogonal. Returns whether a rotation was needed.
bool rotate_pair(const Workspace &space, int64_t i, int64_t j, double tolerance, bool has_vectors) {
  const int64_t n = space.small;
  double *x = space.r + i * n, *y = space.r + j * n, &a = space.norms[i], &b = space.norms[j];
  if (!(a > negligible_square && b > negligible_square)) return false;
  double product = dot(x, y, n);
  if (!(std::abs(product) > tolerance * (std::sqrt(a) * std::sqrt(b)))) return false;
  double zeta = (b - a) / (2 * product), size = std::abs(zeta);
  double tangent = std::copysign(size > 1e8 ? 0.5 / size : 1 / (size + std::sqrt(1 + size * size)), zeta);
  double cosine = 1 / std::sqrt(1 + tangent * tangent), sine = cosine * tangent, half_tangent = sine / (1 + cosine);
  const double before[] = {a, b};
  rotate(x, y, sine, half_tangent, n);
  if (has_vectors) rotate(space.g + i * n, space.g + j * n, sine, half_tangent, n);
  a -= tangent * product;
  b += tangent * product;
  if (!(a > 0.1 * before[0])) a = dot(x, x, n);
  if (!(b > 0.1 * before[1])) b = dot(y, y, n);
  return true;
}

// Rotates the rows of R until all pairs are orthogonal, and applies the rotations to G. Returns whether this converged.
bool orthogonalise(const Workspace &space, double tolerance, bool has_vectors) {
  const int64_t n = space.small;
  for (int sweep = 0; sweep < sweep_limit; sweep++) {
    bool is_rotated = false;
    for (int64_t i = 0; i < n; i++) space.norms[i] = dot(space.r + i * n, space.r + i * n, n);
    for (int64_t i = 0; i + 1 < n; i++) {
      int64_t pivot = std::max_element(space.norms + i, space.norms + n) - space.norms;
      if (pivot != i) {
        swap_rows(space.r + i * n, space.r + pivot * n, n);
        if (has_vectors) swap_rows(space.g + i * n, space.g + pivot * n, n);
        std::swap(space.norms[i], space.norms[pivot]);
      }
      for (int64_t j = i + 1; j < n; j++) is_rotated |= rotate_pair(space, i, j, tolerance, has_vectors);
    }
    if (!is_rotated) return true;
  }
  return false;
}

// Normalizes the rows of R in descending order of their norms, and replaces rows of zeros by an orthonormal completion.
void normalize_vectors(const Workspace &space) {
  const int64_t n = space.small;
  double *z = space.completion;
  int64_t rank = 0;
  for (int64_t at = 0; at < n; at++) {
    const double *row = space.r + int64_t(space.order[at]) * n;
    double norm = space.norms[int64_t(space.order[at])];
    if (norm * norm > negligible_square) rank = at + 1;
    for (int64_t j = 0; j < n; j++) z[at * n + j] = row[j] / norm;
  }
  std::swap_ranges(z, z + n * n, space.r);
  if (rank == n) return;
  std::copy_n(space.r, rank * n, z);
  for (int64_t t = 0; t < rank; t++) {
    space.completion_taus[t] = reflect(z + t * n + t, n - t);
    for (int64_t j = t + 1; j < rank; j++)
      apply_reflection(z + t * n + t, space.completion_taus[t], z + j * n + t, n - t);
  }
  for (int64_t at = rank; at < n; at++) {
    double *row = space.r + at * n;
    std::fill_n(row, n, 0.0);
    row[at] = 1;
    apply_reflections(z, space.completion_taus, rank, n, row);
  }
}

// Stores the singular vectors pair by pair: x is the vector of W's rows, y the vector of its columns.
template <class T> void store_vectors(const SvdProblem<T> &problem, const Workspace &space) {
  const int64_t small = space.small, large = space.large, count = problem.full ? large : small;
  for (int64_t at = 0; at < count; at++) {
    const bool is_pair = at < small;
    std::fill_n(space.y, large, 0.0);
    if (is_pair) std::copy_n(space.g + int64_t(space.order[at]) * small, small, space.y);
    else space.y[at] = 1;
    apply_reflections(space.w, space.taus, small, large, space.y);
    if (is_pair)
      for (int64_t j = 0; j < small; j++) space.x[int64_t(space.pivots[j])] = space.r[at * small + j];
    store_pair(problem, is_pair ? space.x : nullptr, space.y, at);
  }
}

// Sorts the norms in descending order; equal norms keep their order.
void sort_norms(const Workspace &space) {
  for (int64_t i = 0; i < space.small; i++) {
    const double *row = space.r + i * space.small;
    space.norms[i] = std::sqrt(dot(row, row, space.small));
    space.order[i] = double(i);
  }
  std::stable_sort(space.order, space.order + space.small,
                   [&](double i, double j) { return space.norms[int64_t(i)] > space.norms[int64_t(j)]; });
}

template <class T> SvdInfo factorize(const SvdProblem<T> &problem) {
  const int64_t small = problem.small(), count = problem.rows * problem.columns;
  int exponent;
  if (!exponent_of(problem.a, count, exponent)) return svd_not_finite;
  const Workspace space(problem.scratch, problem.rows, problem.columns);
  load_rows(problem, space.w, space.large, exponent);
  pivoted_qr(space);
  for (int64_t i = 0; i < small; i++)
    for (int64_t j = 0; j < small; j++) {
      space.r[i * small + j] = j >= i ? space.w[j * space.large + i] : 0;
      space.g[i * small + j] = i == j;
    }
  // For float32 results, a larger tolerance suffices.
  const double tolerance = sizeof(T) == 8 ? DBL_EPSILON * std::max(4.0, std::sqrt(double(small))) : 0x1p-36;
  if (!orthogonalise(space, tolerance, problem.has_vectors())) return svd_not_converged;
  sort_norms(space);
  for (int64_t at = 0; at < small; at++) problem.s[at] = T(std::ldexp(space.norms[int64_t(space.order[at])], exponent));
  if (!problem.has_vectors()) return svd_done;
  normalize_vectors(space);
  store_vectors(problem, space);
  return svd_done;
}

} // namespace

extern const SvdKernels svd_kernels = {{factorize<double>}, {factorize<float>}};

} // namespace orchard::ORCHARD_ISA
