// Singular values and vectors by reduction to bidiagonal form, in float64. Values alone are computed by the qd
// algorithm (qd.h), vectors by implicit QR steps with shifts.
//
// Source: G. Golub and C. Van Loan, "Matrix Computations", 2013, section 8.6.
#include "bidiagonal.h"
#include "qd.h"
#include "svd_scale.h"

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t most_steps = 30; // per singular value

int64_t padded(int64_t count) { return (count + lanes<double> - 1) / lanes<double> * lanes<double>; }

// The scratch memory for a matrix: W with k rows and l ≥ k columns, which is A if it is wide, else Aᵀ.
struct Workspace {
  int64_t small, large;
  Rows w, left, right; // left and right: the singular vectors of W, as rows
  Bidiagonal b;
  double *squares, *values;

  Workspace(double *scratch, int64_t rows, int64_t columns, int64_t count)
      : small(std::min(rows, columns)), large(std::max(rows, columns)) {
    const auto take = [&](int64_t elements) { return std::exchange(scratch, scratch + elements); };
    const auto take_rows = [&](int64_t count, int64_t length) {
      return Rows{take(count * padded(length)), count, padded(length)};
    };
    w = take_rows(small, large);
    b.right = take_rows(small, large), b.left = take_rows(small, small);
    left = take_rows(small, small), right = take_rows(count, large);
    b.diagonal = take(small), b.below = take(small), b.right_taus = take(small), b.left_taus = take(small);
    squares = take(4 * small), values = take(small);
  }
};

// The cosine and sine that rotate (f, g) to (length, 0).
struct Rotation {
  double cosine, sine, length;

  Rotation(double f, double g) {
    const double square = f * f + g * g;
    if (!(square > no_squares)) {
      cosine = 1, sine = 0, length = f;
      return;
    }
    length = std::sqrt(square);
    const double inverse = 1 / length;
    cosine = f * inverse, sine = g * inverse;
  }
};

void rotate(const Rows &rows, int64_t i, double cosine, double sine) {
  double *x = rows.row(i), *y = rows.row(i + 1);
  for (int64_t j = 0; j < rows.stride; j += lanes<double>) {
    const Vector<double> first = load_vector(x + j), second = load_vector(y + j);
    store_vector<double>(first * cosine + second * sine, x + j);
    store_vector<double>(second * cosine - first * sine, y + j);
  }
}

// The smaller singular value of a triangular matrix with f and h on the diagonal and g beside it (LAPACK's dlas2).
double smaller_value(double f, double g, double h) {
  f = std::abs(f), g = std::abs(g), h = std::abs(h);
  const double least = std::min(f, h), most = std::max(f, h);
  if (least == 0) return 0;
  if (g < most) {
    const double sum = 1 + least / most, part = (most - least) / most, square = (g / most) * (g / most);
    return least * (2 / (std::sqrt(sum * sum + square) + std::sqrt(part * part + square)));
  }
  const double ratio = most / g, sum = (1 + least / most) * ratio, part = ((most - least) / most) * ratio;
  return 2 * (least * (1 / (std::sqrt(1 + sum * sum) + std::sqrt(1 + part * part)))) * ratio;
}

// One implicit QR step of rows [low, high] of the transposed matrix, which is upper bidiagonal. Its right singular
// vectors are W's left ones.
void step(const Workspace &space, int64_t low, int64_t high) {
  double *d = space.b.diagonal, *e = space.b.below;
  const double shift = smaller_value(d[high - 1], e[high - 1], d[high]);
  double f = (std::abs(d[low]) - shift) * (std::copysign(1.0, d[low]) + shift / d[low]), g = e[low];
  for (int64_t i = low; i < high; i++) {
    const Rotation first(f, g);
    if (i > low) e[i - 1] = first.length;
    f = first.cosine * d[i] + first.sine * e[i];
    e[i] = first.cosine * e[i] - first.sine * d[i];
    g = first.sine * d[i + 1];
    d[i + 1] *= first.cosine;
    const Rotation second(f, g);
    d[i] = second.length;
    f = second.cosine * e[i] + second.sine * d[i + 1];
    d[i + 1] = second.cosine * d[i + 1] - second.sine * e[i];
    if (i + 1 < high) {
      g = second.sine * e[i + 1];
      e[i + 1] *= second.cosine;
    }
    rotate(space.left, i, first.cosine, first.sine);
    rotate(space.right, i, second.cosine, second.sine);
  }
  e[high - 1] = f;
}

// Makes the bidiagonal matrix diagonal. Returns false if this did not converge, or if an element vanishes.
bool diagonalise(const Workspace &space) {
  double *d = space.b.diagonal, *e = space.b.below, norm = 0;
  for (int64_t i = 0; i < space.small; i++)
    norm = std::max({norm, std::abs(d[i]), i + 1 < space.small ? std::abs(e[i]) : 0});
  const double negligible = DBL_EPSILON / 4 * norm;
  int64_t left = most_steps * space.small;
  for (int64_t high = space.small - 1; high > 0;) {
    int64_t low = high;
    while (low > 0 && std::abs(e[low - 1]) > negligible) low--;
    if (low == high) {
      high--;
      continue;
    }
    for (int64_t i = low; i <= high; i++)
      if (!(std::abs(d[i]) > negligible)) return false;
    if (left-- == 0) return false;
    step(space, low, high);
  }
  for (int64_t i = 0; i < space.small; i++) space.values[i] = std::abs(d[i]);
  return true;
}

// Computes the values alone.
bool compute_values(const Workspace &space) {
  const int64_t n = space.small;
  double *q = space.squares;
  for (int64_t i = 0; i < n; i++) q[i] = space.b.diagonal[i] * space.b.diagonal[i];
  for (int64_t i = 0; i + 1 < n; i++) q[n + i] = space.b.below[i] * space.b.below[i];
  if (!Qd({q, q + n}, {q + 2 * n, q + 3 * n}, n).iterate(space.values)) return false;
  for (int64_t i = 0; i < n; i++) space.values[i] = std::sqrt(space.values[i]);
  return true;
}

// Stores the singular vectors, `order` being that of their values.
template <class T> void store_vectors(const SvdProblem<T> &problem, const Workspace &space, const double *order) {
  const int64_t small = space.small, large = space.large;
  for (int64_t at = 0; at < space.right.count; at++) {
    const bool is_pair = at < small;
    const int64_t from = is_pair ? int64_t(order[at]) : at;
    double *y = space.right.row(from), *x = is_pair ? space.left.row(from) : nullptr;
    if (is_pair && space.b.diagonal[from] < 0)
      for (int64_t j = 0; j < large; j++) y[j] = -y[j];
    store_pair(problem, x, y, at);
  }
}

// Leaves the matrix if small singular values may lose digits.
template <class T> SvdInfo factorize(const SvdProblem<T> &problem) {
  const int64_t small = problem.small(), large = problem.large();
  int exponent;
  if (!exponent_of(problem.a, small * large, exponent)) return svd_not_finite;
  const bool has_vectors = problem.has_vectors();
  const int64_t count = !has_vectors ? 0 : problem.full ? large : small;
  const Workspace space(problem.scratch, problem.rows, problem.columns, count);
  load_rows(problem, space.w.data, space.w.stride, exponent);
  bidiagonalize(space.w, space.b);
  if (has_vectors) {
    accumulate(space.left, small - 1, [&](int64_t i) { return space.b.g(i); });
    accumulate(space.right, small, [&](int64_t i) { return space.b.h(i); });
  }
  if (!(has_vectors ? diagonalise(space) : compute_values(space))) return svd_left;
  double *order = space.squares;
  for (int64_t i = 0; i < small; i++) order[i] = double(i);
  std::sort(order, order + small, [&](double i, double j) {
    const double first = space.values[int64_t(i)], second = space.values[int64_t(j)];
    return first > second || (first == second && i < j);
  });
  const auto value = [&](int64_t at) { return space.values[int64_t(order[at])]; };
  // The error of a value is a few roundings of the largest one.
  const double least = sizeof(T) == 8 ? 0x1p-10 : 0x1p-24;
  if (small > 0 && !(value(small - 1) > least * value(0))) return svd_left;
  for (int64_t at = 0; at < small; at++) problem.s[at] = T(std::ldexp(value(at), exponent));
  if (has_vectors) store_vectors(problem, space, order);
  return svd_done;
}

} // namespace

extern const SvdBidiagonalKernels svd_bidiagonal_kernels = {{factorize<double>}, {factorize<float>}};

} // namespace orchard::ORCHARD_ISA
