#include "eigh.h"

#include "../matmul/simd.h"
#include "eigh_scale.h"
#include "vectors.h"

namespace orchard::ORCHARD_ISA {
namespace {

// x[j] -= v wⱼ + w vⱼ
template <class T>
void subtract(T *__restrict x, T v, T w, const T *__restrict vs, const T *__restrict ws, int64_t count) {
  for (int64_t j = 0; j < count; j++) x[j] -= v * ws[j] + w * vs[j];
}

// x[j] -= v wⱼ + w vⱼ. Returns the dot product of the new x and y.
template <class T>
T subtract_dot(T *__restrict x, T v, T w, const T *__restrict vs, const T *__restrict ws, const T *__restrict y,
               int64_t count) {
  constexpr int lanes = 32;
  T sums[lanes] = {};
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes)
    for (int lane = 0; lane < lanes; lane++) {
      const T value = x[j + lane] - (v * ws[j + lane] + w * vs[j + lane]);
      x[j + lane] = value;
      sums[lane] += value * y[j + lane];
    }
  for (int lane = 0; j < count; j++, lane++) {
    x[j] -= v * ws[j] + w * vs[j];
    sums[lane] += x[j] * y[j];
  }
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

// Updates row k and replaces it by vₖ, whose first element is 1, so that (A[k, k + 1], …) Hₖ = (below[k], 0, …). If the
// row already has this form, vₖ is 0.
template <class T> void reflect(const Tridiagonal<T> &t, int64_t k) {
  const int64_t n = t.n, count = n - k - 1;
  T *row = t.a + k * n, *x = row + k + 1;
  if (k > 0) subtract(row + k, row[k - n], t.update[k], row - n + k, t.update + k, n - k);
  t.diagonal[k] = row[k];
  t.tau[k] = 0;
  if (count == 0) return;
  const T first = x[0];
  T largest = 0;
  for (int64_t j = 1; j < count; j++) largest = std::abs(x[j]) > largest ? std::abs(x[j]) : largest;
  if (largest <= smallest<T>) {
    t.below[k] = first;
    std::fill_n(x, count, T(0));
    return;
  }
  largest = std::max(largest, std::abs(first));
  T squares = 0;
  for (int64_t j = 0; j < count; j++) {
    const T part = x[j] / largest;
    squares += part * part;
  }
  const T norm = largest * std::sqrt(squares), beta = first > 0 ? -norm : norm, divisor = first - beta;
  t.below[k] = beta;
  t.tau[k] = -divisor / beta;
  x[0] = 1;
  for (int64_t j = 1; j < count; j++) x[j] /= divisor;
}

// Updates rows k + 1 + [begin, end), and computes their products with vₖ.
template <class T> void update(const Tridiagonal<T> &t, int64_t k, int64_t begin, int64_t end) {
  const int64_t n = t.n, first = k + 1, count = n - first;
  const T *v = t.a + k * n + first, *before = k > 0 ? v - n : v;
  for (int64_t i = first + begin; i < first + end; i++) {
    T *row = t.a + i * n + first;
    if (k == 0) t.product[i] = dot(row, v, count);
    else t.product[i] = subtract_dot(row, before[i - first], t.update[i], before, t.update + first, v, count);
  }
}

// w = τ A v − (τ/2 · τ vᵀ A v) v.
template <class T> void finish(const Tridiagonal<T> &t, int64_t k) {
  const T *v = t.a + k * t.n, tau = t.tau[k];
  T sum = 0;
  for (int64_t i = k + 1; i < t.n; i++) sum += t.product[i] * v[i];
  const T half = tau * tau * sum / 2;
  for (int64_t i = k + 1; i < t.n; i++) t.update[i] = tau * t.product[i] - half * v[i];
}

// Runs one sweep from m to l, with Wilkinson's shift.
template <class T> void sweep(const Tridiagonal<T> &t, int64_t l, int64_t m, T *pairs) {
  T *d = t.diagonal, *e = t.below;
  T ratio = (d[l + 1] - d[l]) / (2 * e[l]);
  const T length =
      std::abs(ratio) > 1 / std::numeric_limits<T>::epsilon() ? std::abs(ratio) : std::sqrt(ratio * ratio + 1);
  T g = d[m] - d[l] + e[l] / (ratio + std::copysign(length, ratio)), s = 1, c = 1, p = 0;
  for (int64_t i = m - 1; i >= l; i--) {
    const T f = s * e[i], b = c * e[i], square = f * f + g * g;
    T r = g;
    c = 1, s = 0;
    if (square >= vanishing<T> * vanishing<T>) {
      r = std::sqrt(square);
      const T inverse = 1 / r;
      c = g * inverse, s = f * inverse;
    }
    e[i + 1] = r;
    g = d[i + 1] - p;
    const T q = (d[i] - g) * s + 2 * c * b;
    p = s * q;
    d[i + 1] = g + p;
    g = c * q - b;
    if (pairs) *pairs++ = c, *pairs++ = s;
  }
  e[m] = 0;
  d[l] -= p;
  e[l] = g;
}

template <class T> Progress iterate(const Tridiagonal<T> &t, QlPosition &position, Rotations<T> *rotations) {
  const int64_t n = t.n, most_iterations = 30 * n + 30;
  T *d = t.diagonal, *e = t.below;
  if (n > 0) e[n - 1] = 0;
  // Negligible means small relative to the norm of the matrix, not to adjacent elements. Beyond the rank of a matrix
  // all elements are rounding errors of the reduction, and each sweep that passes a large element creates new ones.
  T norm = 0;
  for (int64_t i = 0; i < n; i++) norm = std::max(norm, std::abs(d[i]) + std::abs(e[i]));
  const T negligible = std::numeric_limits<T>::epsilon() * norm;
  while (position.l < n) {
    const int64_t l = position.l;
    int64_t m = l;
    while (m + 1 < n && std::abs(e[m]) > negligible) m++;
    if (m == l) {
      position.l++;
      continue;
    }
    if (position.iterations++ == most_iterations) return Progress::failed;
    if (!rotations) {
      sweep<T>(t, l, m, nullptr);
      continue;
    }
    sweep(t, l, m, rotations->pairs + 2 * rotations->count);
    rotations->sweeps[2 * rotations->sweep_count] = static_cast<T>(l);
    rotations->sweeps[2 * rotations->sweep_count + 1] = static_cast<T>(m);
    rotations->count += m - l;
    rotations->sweep_count++;
    if (rotations->count + n > rotations->capacity || rotations->sweep_count == rotations->sweep_capacity)
      return Progress::full;
  }
  return Progress::done;
}

constexpr int vectors_of_block = 2;
template <class T> constexpr int64_t block_rows = vectors_of_block * lanes<T>;

template <class T> void accumulate(const Tridiagonal<T> &t, int64_t row, T *block) {
  const int64_t n = t.n;
  std::fill_n(block, n * block_rows<T>, T(0));
  for (int64_t lane = 0; lane < block_rows<T> && row + lane < n; lane++) block[(row + lane) * block_rows<T> + lane] = 1;
  for (int64_t k = 0; k + 1 < n; k++) {
    if (t.tau[k] == 0) continue;
    const T *v = t.a + k * n;
    Vector<T> sums[vectors_of_block] = {}, others[vectors_of_block] = {};
    int64_t j = k + 1;
    for (; j + 1 < n; j += 2)
      for (int part = 0; part < vectors_of_block; part++) {
        const T *from = block + j * block_rows<T> + part * lanes<T>;
        sums[part] += load_vector<T>(from) * v[j];
        others[part] += load_vector<T>(from + block_rows<T>) * v[j + 1];
      }
    for (int part = 0; part < vectors_of_block; part++) {
      if (j < n) sums[part] += load_vector<T>(block + j * block_rows<T> + part * lanes<T>) * v[j];
      sums[part] = (sums[part] + others[part]) * t.tau[k];
    }
    for (j = k + 1; j < n; j++)
      for (int part = 0; part < vectors_of_block; part++) {
        T *at = block + j * block_rows<T> + part * lanes<T>;
        store_vector<T>(load_vector<T>(at) - sums[part] * v[j], at);
      }
  }
}

template <class T> void rotate(const Rotations<T> &rotations, T *block) {
  const T *pair = rotations.pairs;
  for (int64_t index = 0; index < rotations.sweep_count; index++) {
    const int64_t l = static_cast<int64_t>(rotations.sweeps[2 * index]);
    const int64_t m = static_cast<int64_t>(rotations.sweeps[2 * index + 1]);
    Vector<T> carried[vectors_of_block];
    T *at = block + m * block_rows<T>;
    for (int part = 0; part < vectors_of_block; part++) carried[part] = load_vector<T>(at + part * lanes<T>);
    for (int64_t i = m - 1; i >= l; i--, pair += 2) {
      const T c = pair[0], s = pair[1];
      at -= block_rows<T>;
      for (int part = 0; part < vectors_of_block; part++) {
        const Vector<T> current = load_vector<T>(at + part * lanes<T>);
        store_vector<T>(current * s + carried[part] * c, at + block_rows<T> + part * lanes<T>);
        carried[part] = current * c - carried[part] * s;
      }
    }
    for (int part = 0; part < vectors_of_block; part++) store_vector<T>(carried[part], at + part * lanes<T>);
  }
}

template <class T> int64_t load(const EighBatch<T> &matrix, T *a, T &scale) {
  const Scaling<T> scaling = scaling_of(matrix);
  scale = scaling.scale;
  for (int64_t i = 0; i < matrix.n; i++)
    for (int64_t j = 0; j <= i; j++) a[i * matrix.n + j] = a[j * matrix.n + i] = element(matrix, i, j) * scaling.factor;
  return scaling.refused;
}

template <class T> int64_t load_triangle(const EighBatch<T> &matrix, T *a, T &scale) {
  const Scaling<T> scaling = scaling_of(matrix);
  const int64_t n = matrix.n;
  scale = scaling.scale;
  for (int64_t i = 0; i < n; i++) {
    const int64_t first = matrix.upper ? i : 0, end = matrix.upper ? n : i + 1;
    for (int64_t j = first; j < end; j++) a[i * n + j] = matrix.a[i * n + j] * scaling.factor;
  }
  return scaling.refused;
}

template <class T>
constexpr EighKernel<T> kernel = {block_rows<T>, load<T>,    load_triangle<T>, reflect<T>, update<T>,
                                  finish<T>,     iterate<T>, accumulate<T>,    rotate<T>};

} // namespace

extern const EighKernels eigh_kernels = {kernel<double>, kernel<float>};

} // namespace orchard::ORCHARD_ISA
