#include "schur.h"

#include "../matmul/simd.h"
#include "real_schur.h"
#include "reflection.h"

#include <cstring>

namespace orchard::ORCHARD_ISA {
namespace {

// A two-sided reflection that is not yet applied: A − p vᵀ − v wᵀ. `along` is v, and it and w are 0 in finished
// columns.
struct Pending {
  double *v, *along, *w, *p;
};

// The next reflection v, and its products with the matrix: p = A v and q = Aᵀ v.
struct Next {
  double *v, *p, *q;
};

// Applies the pending reflection to `rows` rows from the column `first` on, and adds them to the products of the next
// one. Both take one pass over the matrix.
template <int rows>
void update_rows(const RealProblem &problem, int64_t row, int64_t first, const Pending &pending, const Next &next) {
  using V = Vector<double>;
  const int64_t stride = problem.stride;
  double *a = problem.a + row * stride;
  V sums[rows] = {};
  for (int64_t j = first; j < stride; j += lanes<double>) {
    const V along = load_vector(pending.along + j), w = load_vector(pending.w + j), v = load_vector(next.v + j);
    V down = load_vector(next.q + j);
    for (int r = 0; r < rows; r++) {
      V x = load_vector(a + r * stride + j);
      x = multiply_add<double>(along, -pending.p[row + r], x);
      x = multiply_add<double>(w, -pending.v[row + r], x);
      store_vector(x, a + r * stride + j);
      sums[r] = multiply_add<double>(x, v, sums[r]);
      down = multiply_add<double>(x, next.v[row + r], down);
    }
    store_vector(down, next.q + j);
  }
  for (int r = 0; r < rows; r++) {
    double sum = 0;
    for (int lane = 0; lane < lanes<double>; lane++) sum += sums[r][lane];
    next.p[row + r] = sum;
  }
}

void update_all(const RealProblem &problem, int64_t first, const Pending &pending, const Next &next) {
  constexpr int rows = 4;
  const int64_t begin = first / lanes<double> * lanes<double>;
  int64_t row = 0;
  for (; row + rows <= problem.n; row += rows) update_rows<rows>(problem, row, begin, pending, next);
  for (; row < problem.n; row++) update_rows<1>(problem, row, begin, pending, next);
}

// Applies the pending reflection to column k, finds the next one, and stores it below the diagonal. Returns its τ.
double reflect_column(const RealProblem &problem, int64_t k, const Pending &pending, const Next &next) {
  const int64_t n = problem.n, stride = problem.stride, first = k + 1;
  double *a = problem.a + k, tau = 0;
  std::fill_n(next.v, stride, 0.0);
  for (int64_t i = 0; i < n; i++) {
    a[i * stride] -= pending.p[i] * pending.v[k] + pending.v[i] * pending.w[k];
    if (i >= first) next.v[i] = a[i * stride];
  }
  const double beta = reflect(next.v + first, n - first, &tau);
  a[first * stride] = beta;
  for (int64_t i = first + 1; i < n; i++) a[i * stride] = next.v[i];
  return tau;
}

// Q = H₀ H₁ …, from the reflections that are stored below H. The last one comes first, so that only rows and columns
// after its first row change.
void form_q(const RealProblem &problem, const double *taus, double *row) {
  const int64_t n = problem.n, stride = problem.stride;
  std::fill_n(problem.q, n * stride, 0.0);
  for (int64_t i = 0; i < n; i++) problem.q[i * stride + i] = 1;
  for (int64_t k = n - 3; k >= 0; k--) {
    const int64_t first = k + 1, count = n - first;
    const auto v = [&](int64_t i) { return i == first ? 1.0 : problem.a[i * stride + k]; };
    if (taus[k] == 0) continue;
    std::fill_n(row, count, 0.0);
    for (int64_t i = first; i < n; i++) subtract_multiple(row, problem.q + i * stride + first, -v(i) * taus[k], count);
    for (int64_t i = first; i < n; i++) subtract_multiple(problem.q + i * stride + first, row, v(i), count);
  }
}

// H A H = A − p vᵀ − v wᵀ for H = I − τ v vᵀ, with p = τ A v and w = τ Aᵀ v − τ (vᵀ p) v: the rank-2 update of LAPACK's
// sytd2, for a matrix that is not symmetric.
void to_hessenberg(const RealProblem &problem, double *work) {
  const int64_t n = problem.n, stride = problem.stride;
  double *taus = work + 7 * stride;
  Pending pending = {work, work + stride, work + 2 * stride, work + 3 * stride};
  Next next = {work + 4 * stride, work + 5 * stride, work + 6 * stride};
  std::fill_n(work, 8 * stride, 0.0);
  for (int64_t k = 0; k + 2 < n; k++) {
    const int64_t first = k + 1;
    const double tau = taus[k] = reflect_column(problem, k, pending, next);
    std::copy_n(pending.v, stride, pending.along);
    pending.along[k] = pending.w[k] = 0;
    std::fill_n(next.q, stride, 0.0);
    update_all(problem, first, pending, next);
    for (int64_t i = 0; i < n; i++) next.p[i] *= tau;
    const double inner = dot(next.v + first, next.p + first, n - first);
    for (int64_t j = 0; j < n; j++) next.q[j] = j < first ? 0 : tau * (next.q[j] - inner * next.v[j]);
    std::swap(pending.v, next.v), std::swap(pending.p, next.p), std::swap(pending.w, next.q);
  }
  if (n > 2) { // the last two columns
    std::copy_n(pending.v, stride, pending.along);
    std::fill_n(next.v, stride, 0.0);
    update_all(problem, n - 2, pending, next);
  }
  if (problem.q) form_q(problem, taus, next.p);
  for (int64_t i = 2; i < n; i++) std::fill_n(problem.a + i * stride, i - 1, 0.0);
}

bool to_schur(const RealProblem &problem, double *re, double *im) { return RealSchur(problem, re, im).run(); }

} // namespace

extern const SchurKernels schur_kernels = {to_hessenberg, to_schur};

} // namespace orchard::ORCHARD_ISA
