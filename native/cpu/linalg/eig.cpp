// Eigenvalues and eigenvectors of any square matrix. All is computed in float64.
#include "complex_reflection.h"
#include "schur.h"

using namespace orchard;

namespace {

using Number = Complex<double>;
constexpr double epsilon = std::numeric_limits<double>::epsilon();

inline double largest_part(double x) { return std::abs(x); }
inline double largest_part(Number x) { return std::max(std::abs(x.re), std::abs(x.im)); }

// Returns the power of two with the exponent of the largest element, or 1 for a zero matrix.
template <class E> double scale_of(const E *a, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; i++) largest = std::max(largest, largest_part(a[i]));
  return largest == 0 ? 1 : std::ldexp(1.0, std::max(std::ilogb(largest), -1020));
}

inline double square_of(double x) { return x * x; }
inline double square_of(Number x) { return x.re * x.re + x.im * x.im; }

// Scales A to D⁻¹ A D by powers of two, until the norms of row i and column i are similar for every i. Source: B. N.
// Parlett, C. Reinsch, "Balancing a matrix for calculation of eigenvalues and eigenvectors", 1969. The norms are
// Euclidean and include the diagonal, without which eigenvectors of Hessenberg matrices lose digits: R. James, J.
// Langou, B. Lowery, "On matrix balancing and eigenvector computation", 2014.
template <class E> void balance(E *a, double *scales, int64_t n, int64_t stride) {
  std::fill_n(scales, n, 1.0);
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (int64_t i = 0; i < n; i++) {
      double row = 0, column = 0, factor = 1;
      for (int64_t j = 0; j < n; j++) row += square_of(a[i * stride + j]), column += square_of(a[j * stride + i]);
      row = std::sqrt(row), column = std::sqrt(column);
      if (row == 0 || column == 0) continue;
      const double before = row + column;
      for (; column < row / 2; column *= 2, row /= 2) factor *= 2;
      for (; column >= row * 2; column /= 2, row *= 2) factor /= 2;
      if (column + row >= 0.95 * before) continue;
      if (!(scales[i] * factor > 1e-100 && scales[i] * factor < 1e100)) continue;
      is_done = false;
      scales[i] *= factor;
      for (int64_t j = 0; j < n; j++) {
        a[i * stride + j] = a[i * stride + j] * (1 / factor);
        a[j * stride + i] = a[j * stride + i] * factor;
      }
    }
  }
}

// A = A H for the columns from `first` on of all rows.
void reflect_columns(const Number *v, double tau, Number *a, int64_t n, int64_t first) {
  for (int64_t i = 0; tau != 0 && i < n; i++) {
    Number *row = a + i * n, inner = {0, 0};
    for (int64_t j = first; j < n; j++) inner = inner + row[j] * v[j];
    for (int64_t j = first; j < n; j++) row[j] = row[j] - inner * conjugate(v[j]) * tau;
  }
}

// A = Q H Qᴴ, where H is 0 below the first diagonal under the main one. Q, unless it is null, is formed from the right,
// so that its first column stays e₁. `work` has 2 n elements.
void to_hessenberg(Number *a, Number *q, int64_t n, Number *work) {
  Number *v = work, *row = work + n;
  if (q) std::fill_n(q, n * n, Number{0, 0});
  for (int64_t i = 0; q && i < n; i++) q[i * n + i] = {1, 0};
  for (int64_t k = 0; k + 2 < n; k++) {
    const int64_t first = k + 1;
    for (int64_t i = first; i < n; i++) v[i] = a[i * n + k];
    const ComplexReflection<double> found = reflect(v + first, n - first);
    reflect_rows(v + first, found.tau, a + first * n + first, n - first, n - first, n, row);
    reflect_columns(v, found.tau, a, n, first);
    if (q) reflect_columns(v, found.tau, q, n, first);
    a[first * n + k] = found.beta;
    for (int64_t i = first + 1; i < n; i++) a[i * n + k] = {0, 0};
  }
}

// A rotation [c, s; −s̄, c] with a real c.
struct Rotation {
  double c;
  Number s;

  // Makes the second of two elements 0.
  Rotation(Number first, Number second) : c(1), s{0, 0} {
    const double sizes[] = {absolute(first), absolute(second)}, norm = std::hypot(sizes[0], sizes[1]);
    if (sizes[1] == 0) return;
    c = sizes[0] / norm;
    s = phase_of(first) * conjugate(second) * (1 / norm);
  }
  void rows(Number *a, int64_t stride, int64_t first, int64_t last) const {
    for (int64_t j = first; j < last; j++) {
      const Number x = a[j], y = a[stride + j];
      a[j] = x * c + s * y;
      a[stride + j] = y * c - conjugate(s) * x;
    }
  }
  // Multiplies two neighbors in a row by the conjugate transpose, from the right.
  void pair(Number *a) const {
    const Number x = a[0], y = a[1];
    a[0] = x * c + conjugate(s) * y;
    a[1] = y * c - s * x;
  }
  void columns(Number *a, int64_t stride, int64_t rows) const {
    for (int64_t i = 0; i < rows; i++) pair(a + i * stride);
  }
};

// Multiplies a row by the rotations of columns first and first + 1, first + 1 and first + 2, … from the right.
void rotate_row(Number *row, const Rotation *rotations, int64_t first, int64_t last) {
  for (int64_t k = first; k < last; k++) rotations[k].pair(row + k);
}

Number square_root(Number a) {
  const double size = absolute(a), re = std::sqrt((size + std::abs(a.re)) / 2);
  if (re == 0) return {0, 0};
  return a.re >= 0 ? Number{re, a.im / (2 * re)} : Number{std::abs(a.im) / (2 * re), a.im < 0 ? -re : re};
}

// Returns the eigenvalue of the trailing 2 x 2 block that is closer to its last element (Wilkinson's shift). Every
// tenth iteration uses another shift, which ends cycles.
Number shift_of(const Number *h, int64_t n, int64_t last, int iteration) {
  const Number *row = h + last * n, *above = row - n;
  if (iteration % 10 == 0) return row[last] + Number{size_of(row[last - 1]), 0};
  const Number half = (above[last - 1] - row[last]) * 0.5, product = above[last] * row[last - 1];
  const Number root = square_root(half * half + product);
  const bool is_same = half.re * root.re + half.im * root.im >= 0;
  const Number divisor = is_same ? half + root : half - root;
  return size_of(divisor) == 0 ? row[last] : row[last] - product / divisor;
}

// Makes a Hessenberg matrix upper triangular by unitary rotations, which also multiply Q. If Q is null, only the
// eigenvalues are valid. Returns whether the iteration converged. `rotations` has room for n.
bool complex_schur(Number *h, Number *q, int64_t n, Rotation *rotations) {
  int iteration = 0;
  for (int64_t last = n - 1; last > 0;) {
    int64_t first = last;
    for (; first > 0; first--) {
      const double around = size_of(h[first * (n + 1)]) + size_of(h[(first - 1) * (n + 1)]);
      if (size_of(h[first * n + first - 1]) <= epsilon * (around == 0 ? 1 : around)) break;
    }
    if (first > 0) h[first * n + first - 1] = {0, 0};
    if (first == last) {
      last--;
      iteration = 0;
      continue;
    }
    if (++iteration > 300) return false;
    const Number shift = shift_of(h, n, last, iteration);
    for (int64_t k = first; k <= last; k++) h[k * (n + 1)] = h[k * (n + 1)] - shift;
    for (int64_t k = first; k < last; k++) {
      rotations[k] = Rotation(h[k * (n + 1)], h[(k + 1) * n + k]);
      rotations[k].rows(h + k * n, n, k, q ? n : last + 1);
      h[(k + 1) * n + k] = {0, 0};
    }
    for (int64_t i = q ? 0 : first; i <= last; i++) rotate_row(h + i * n, rotations, std::max(first, i - 1), last);
    for (int64_t i = 0; q && i < n; i++) rotate_row(q + i * n, rotations, first, last);
    for (int64_t k = first; k <= last; k++) h[k * (n + 1)] = h[k * (n + 1)] + shift;
  }
  return true;
}

// Stores the Schur form of a real matrix, whose 2 x 2 blocks become triangular by complex rotations. The eigenvalues of
// a block are conjugates; the one with a positive imaginary part comes first.
void make_triangular(const RealProblem &problem, const double *re, const double *im, Number *h, Number *q) {
  const auto [t, v, n, stride] = problem;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      const bool is_stored = j >= i || (j == i - 1 && im[j] > 0);
      h[i * n + j] = {is_stored ? t[i * stride + j] : 0, 0};
      q[i * n + j] = {v[i * stride + j], 0};
    }
  for (int64_t k = 0; k + 1 < n; k++) {
    if (!(im[k] > 0)) continue;
    const Number value = {re[k], im[k]};
    // The first column of a block minus its second eigenvalue is an eigenvector of the first one.
    const Rotation rotation(h[k * (n + 1)] - conjugate(value), h[(k + 1) * n + k]);
    rotation.rows(h + k * n, n, k, n);
    rotation.columns(h + k, n, k + 2);
    rotation.columns(q + k, n, n);
  }
  for (int64_t k = 0; k < n; k++) h[k * (n + 1)] = {re[k], im[k]};
}

// Solves (T − T[k, k]) x = 0 with x[k] = 1. Equal eigenvalues are treated as if they differed by a rounding error. x is
// scaled down where it would overflow.
void triangular_vector(const Number *t, int64_t n, int64_t k, double norm, Number *x) {
  x[k] = {1, 0};
  for (int64_t i = k; i-- > 0;) {
    Number sum = {0, 0}, divisor = t[k * (n + 1)] - t[i * (n + 1)];
    for (int64_t j = i + 1; j <= k; j++) sum = sum + t[i * n + j] * x[j];
    const double least = epsilon * norm;
    if (size_of(divisor) < least) divisor = {least, 0};
    x[i] = sum / divisor;
    const double size = size_of(x[i]);
    if (size < 1e100) continue;
    for (int64_t j = i; j <= k; j++) x[j] = x[j] * (1 / size);
  }
}

// Scales a vector to norm 1, with a positive element of largest absolute value.
void normalize(Number *x, int64_t n) {
  double largest = 0, sum = 0;
  for (int64_t i = 0; i < n; i++) largest = std::max({largest, std::abs(x[i].re), std::abs(x[i].im)});
  if (largest == 0) return;
  Number leading = {0, 0};
  for (int64_t i = 0; i < n; i++) {
    x[i] = x[i] * (1 / largest);
    const double size = x[i].re * x[i].re + x[i].im * x[i].im;
    sum += size;
    // Elements that differ only by rounding errors count as equal.
    if (size > (1 + 64 * epsilon) * (leading.re * leading.re + leading.im * leading.im)) leading = x[i];
  }
  const Number factor = conjugate(phase_of(leading)) * (1 / std::sqrt(sum));
  for (int64_t i = 0; i < n; i++) x[i] = x[i] * factor;
}

// A matrix whose eigenvalues and eigenvectors are computed, and memory for them. The vectors are columns of `found`.
struct Problem {
  int64_t n, stride;
  bool is_complex;
  Number *a, *q, *found, *values, *work;
  double *scales, *real; // `real` has room for n rotations, or for a real matrix and Q

  static int64_t elements(int64_t n) {
    const int64_t stride = RealProblem::stride_of(n);
    return scratch_product({n, 6 * n + 7}) + scratch_product({stride, 2 * n + 10});
  }
  Problem(int64_t n, bool is_complex, double *memory)
      : n(n), stride(RealProblem::stride_of(n)), is_complex(is_complex), a(reinterpret_cast<Number *>(memory)),
        q(a + n * n), found(q + n * n), values(found + n * n), work(values + n),
        scales(reinterpret_cast<double *>(work + 2 * n)), real(scales + n) {}

  template <class T> bool solve_complex(const T *given, bool vectors) {
    for (int64_t i = 0; i < n * n; i++) a[i] = {given[2 * i], given[2 * i + 1]};
    const double scale = scale_of(a, n * n);
    for (int64_t i = 0; i < n * n; i++) a[i] = a[i] * (1 / scale);
    balance(a, scales, n, n);
    to_hessenberg(a, vectors ? q : nullptr, n, work);
    const bool is_solved = complex_schur(a, vectors ? q : nullptr, n, reinterpret_cast<Rotation *>(real));
    for (int64_t k = 0; k < n; k++) values[k] = a[k * (n + 1)] * scale;
    if (is_solved && vectors) find_vectors();
    return is_solved;
  }

  template <class T> bool solve_real(const T *given, bool vectors) {
    const int64_t square = n * stride;
    double *re = real + 2 * square, *im = re + stride, *rest = im + stride;
    const RealProblem problem = {real, vectors ? real + square : nullptr, n, stride};
    for (int64_t i = 0; i < n; i++) {
      std::copy_n(given + i * n, n, problem.a + i * stride);
      std::fill_n(problem.a + i * stride + n, stride - n, 0.0);
    }
    const double scale = scale_of(problem.a, square);
    for (int64_t i = 0; i < square; i++) problem.a[i] *= 1 / scale;
    balance(problem.a, scales, n, stride);
    schur_kernels().to_hessenberg(problem, rest);
    const bool is_solved = schur_kernels().to_schur(problem, re, im);
    for (int64_t k = 0; k < n; k++) values[k] = Number{re[k], im[k]} * scale;
    if (!is_solved || !vectors) return is_solved;
    make_triangular(problem, re, im, a, q);
    find_vectors();
    return true;
  }

private:
  void find_vectors() {
    double norm = 0;
    for (int64_t i = 0; i < n * n; i++) norm = std::max(norm, size_of(a[i]));
    for (int64_t k = 0; k < n; k++) {
      Number *x = work, *product = x + n;
      const bool is_second = !is_complex && values[k].im < 0; // its vector is a conjugate
      if (!is_second) {
        triangular_vector(a, n, k, norm == 0 ? 1 : norm, x);
        for (int64_t i = 0; i < n; i++) {
          product[i] = {0, 0};
          for (int64_t j = 0; j <= k; j++) product[i] = product[i] + q[i * n + j] * x[j];
          product[i] = product[i] * scales[i];
        }
        normalize(product, n);
        // For a real eigenvalue of a real matrix, the real part of an eigenvector is also an eigenvector. For a
        // multiple eigenvalue, the real part may be shorter.
        if (!is_complex && values[k].im == 0) {
          for (int64_t i = 0; i < n; i++) product[i].im = 0;
          normalize(product, n);
        }
      }
      for (int64_t i = 0; i < n; i++) found[i * n + k] = is_second ? conjugate(found[i * n + k - 1]) : product[i];
    }
  }
};

template <class T> void store(const Number *from, T *to, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    to[2 * i] = static_cast<T>(from[i].re);
    to[2 * i + 1] = static_cast<T>(from[i].im);
  }
}

// Info is 1 if an element is not finite, and 2 if the iteration did not converge; results are NaN then.
template <class T> int32_t solve_one(const T *a, T *values, T *vectors, Problem problem) {
  const int64_t n = problem.n;
  int32_t info = are_finite(a, n * n * (problem.is_complex ? 2 : 1)) ? 0 : 1;
  const auto solve = [&] {
    return problem.is_complex ? problem.solve_complex(a, vectors != nullptr)
                              : problem.solve_real(a, vectors != nullptr);
  };
  if (info == 0 && !solve()) info = 2;
  if (info != 0) {
    std::fill_n(values, 2 * n, std::numeric_limits<T>::quiet_NaN());
    if (vectors) std::fill_n(vectors, 2 * n * n, std::numeric_limits<T>::quiet_NaN());
    return info;
  }
  store(problem.values, values, n);
  if (vectors) store(problem.found, vectors, n * n);
  return 0;
}

void eig(const ComplexEigBlock &block, Operands operands) {
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const int64_t batch = block.batch, n = block.size, parts = block.complex ? 2 : 1;
    const T *a = operands.inputs<T>(0, 0, matrices(batch, n, n * parts));
    T *values = operands.results<T>(1, 0, matrices(batch, 1, 2 * n));
    int32_t *info = operands.results<int32_t>(2, 0, Extent(batch));
    T *vectors = block.vectors ? operands.results<T>(3, 0, matrices(batch, n, 2 * n)) : nullptr;
    if (batch == 0) return;
    for_each_matrix<double>(batch, 100 * n * n * n, Problem::elements(n), [&](int64_t at, double *memory) {
      T *found = vectors ? vectors + at * 2 * n * n : nullptr;
      const T *matrix = a + at * n * n * parts;
      info[at] = solve_one(matrix, values + at * 2 * n, found, {n, block.complex, memory});
    });
  });
}

ORCHARD_FUNCTION("complexEig", eig, ComplexEigBlock, 4)

} // namespace
