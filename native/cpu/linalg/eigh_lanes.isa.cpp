// The algorithm of eigh.isa.cpp for as many matrices as a vector has lanes. The matrices are interleaved. Where control
// flow differs between lanes, such as where a sweep begins, a mask is used. The result of a lane depends on its matrix
// only.
#include "../matmul/simd.h"
#include "eigh_scale.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

// The number of sweeps for one eigenvalue after which the iteration fails. Two or three are usual.
constexpr int most_sweeps = 60;

template <class T> Vector<T> root(Vector<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 8) return _mm512_sqrt_pd(x);
  else return _mm512_sqrt_ps(x);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 8) return _mm256_sqrt_pd(x);
  else return _mm256_sqrt_ps(x);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 8) return _mm_sqrt_pd(x);
  else return _mm_sqrt_ps(x);
#else
  for (int lane = 0; lane < lanes<T>; lane++) x[lane] = std::sqrt(x[lane]);
  return x;
#endif
}
template <class V> inline V magnitude(V x) { return x < 0 ? -x : x; }
template <class V> inline V larger(V x, V y) { return x > y ? x : y; }
template <class Mask> inline bool is_any(Mask mask) {
  bool any = false;
  for (size_t lane = 0; lane < sizeof mask / sizeof mask[0]; lane++) any |= mask[lane] != 0;
  return any;
}

template <class T> struct Lanes {
  using V = Vector<T>;
  using Mask = decltype(V{} < V{});

  int64_t n, pitch;   // pitch: the distance between rows in vectors
  V *a;               // n rows; column k of the lower triangle is replaced by vₖ
  V *z;               // n rows, each an eigenvector; null if not computed
  V *d, *e;           // n each: the diagonal and the subdiagonal
  V *tau, *w, *c, *s; // n each
  V failed;           // 1 if the iteration did not converge

  // Replaces (A[k + 1, k], …) by vₖ of the reflection that maps it to (e[k], 0, …).
  void reflect(int64_t k) {
    V largest = {};
    for (int64_t i = k + 2; i < n; i++) largest = larger(largest, magnitude(a[i * pitch + k]));
    const V first = a[(k + 1) * pitch + k];
    const Mask is_reflected = largest > smallest<T>;
    largest = larger(largest, magnitude(first));
    const V divided_by = is_reflected ? largest : V{} + 1;
    V squares = {};
    for (int64_t i = k + 1; i < n; i++) {
      const V part = a[i * pitch + k] / divided_by;
      squares += part * part;
    }
    const V norm = largest * root<T>(squares), beta = first > 0 ? -norm : norm, divisor = first - beta;
    e[k] = is_reflected ? beta : first;
    tau[k] = is_reflected ? -divisor / beta : V{};
    a[(k + 1) * pitch + k] = V{} + 1;
    const V safe = is_reflected ? divisor : V{} + 1;
    for (int64_t i = k + 2; i < n; i++) a[i * pitch + k] = is_reflected ? a[i * pitch + k] / safe : V{};
  }

  // A −= v wᵀ + w vᵀ with w = τ A v − (τ/2 · τ vᵀ A v) v, in the lower triangle after k.
  void update(int64_t k) {
    for (int64_t i = k + 1; i < n; i++) w[i] = V{};
    for (int64_t i = k + 1; i < n; i++) {
      const V v = a[i * pitch + k];
      V sum = a[i * pitch + i] * v;
      for (int64_t j = k + 1; j < i; j++) {
        sum += a[i * pitch + j] * a[j * pitch + k];
        w[j] += a[i * pitch + j] * v;
      }
      w[i] += sum;
    }
    V product = {};
    for (int64_t i = k + 1; i < n; i++) product += w[i] * a[i * pitch + k];
    const V half = tau[k] * tau[k] * product * T(0.5);
    for (int64_t i = k + 1; i < n; i++) w[i] = tau[k] * w[i] - half * a[i * pitch + k];
    for (int64_t i = k + 1; i < n; i++) {
      const V v = a[i * pitch + k], row_w = w[i];
      for (int64_t j = k + 1; j <= i; j++) a[i * pitch + j] -= v * w[j] + row_w * a[j * pitch + k];
    }
  }

  void reduce() {
    for (int64_t k = 0; k + 1 < n; k++) {
      reflect(k);
      update(k);
    }
    for (int64_t k = 0; k < n; k++) d[k] = a[k * pitch + k];
    if (n > 0) e[n - 1] = V{};
  }

  // Computes Z = Qᵀ, from the last reflection to the first. Before reflection k is applied, Q is the identity outside
  // the rows and columns after k.
  void accumulate() {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) z[i * pitch + j] = V{} + T(i == j);
    for (int64_t k = n - 2; k >= 0; k--)
      for (int64_t i = k + 1; i < n; i++) {
        V sum = {};
        for (int64_t j = k + 1; j < n; j++) sum += z[i * pitch + j] * a[j * pitch + k];
        sum *= tau[k];
        for (int64_t j = k + 1; j < n; j++) z[i * pitch + j] -= sum * a[j * pitch + k];
      }
  }

  // Returns where each lane's sweep begins: at the first negligible element from l on.
  V end_of(int64_t l, V negligible) const {
    V m = V{} + T(n - 1);
    for (int64_t i = n - 2; i >= l; i--) m = magnitude(e[i]) <= negligible ? V{} + T(i) : m;
    return m;
  }

  // Runs a sweep from each lane's `m` to l. Returns the largest m; nothing changes beyond it.
  int64_t sweep(int64_t l, V m) {
    const Mask is_open = m > T(l);
    int64_t first = l;
    V last = d[l];
    for (int lane = 0; lane < lanes<T>; lane++) {
      const int64_t start = static_cast<int64_t>(m[lane]);
      first = std::max(first, start);
      last[lane] = d[start][lane];
    }
    const V below = is_open ? e[l] : V{} + 1, ratio = (d[l + 1] - d[l]) / (2 * below);
    const V far = magnitude(ratio), near = far > 1 / std::numeric_limits<T>::epsilon() ? V{} : far;
    const V length = far > 1 / std::numeric_limits<T>::epsilon() ? far : root<T>(near * near + 1);
    V g = last - d[l] + below / (ratio < 0 ? ratio - length : ratio + length);
    V sine = V{} + 1, cosine = V{} + 1, p = {};
    for (int64_t i = first - 1; i >= l; i--) {
      const Mask is_active = is_open & (m > T(i));
      const V f = sine * e[i], b = cosine * e[i], square = f * f + g * g;
      const Mask is_rotated = is_active & (square >= vanishing<T> * vanishing<T>);
      const V r = root<T>(is_rotated ? square : V{} + 1), inverse = 1 / r;
      const V new_cosine = is_rotated ? g * inverse : V{} + 1, new_sine = is_rotated ? f * inverse : V{};
      e[i + 1] = is_active & (m > T(i + 1)) ? (is_rotated ? r : g) : is_active ? V{} : e[i + 1];
      const V here = d[i + 1] - p, q = (d[i] - here) * new_sine + 2 * new_cosine * b, next = new_sine * q;
      d[i + 1] = is_active ? here + next : d[i + 1];
      p = is_active ? next : p;
      g = is_active ? new_cosine * q - b : g;
      cosine = is_active ? new_cosine : cosine;
      sine = is_active ? new_sine : sine;
      c[i] = new_cosine;
      s[i] = new_sine;
    }
    d[l] = is_open ? d[l] - p : d[l];
    e[l] = is_open ? g : e[l];
    return first;
  }

  // Applies the rotations of a sweep to rows i and i + 1 of Z, for i from m down to l, `width` columns at once.
  template <int width> void rotate_columns(int64_t l, int64_t m, int64_t column) {
    V carried[width];
    V *at = z + m * pitch + column;
    for (int part = 0; part < width; part++) carried[part] = at[part];
    for (int64_t i = m - 1; i >= l; i--) {
      at -= pitch;
      const V cosine = c[i], sine = s[i];
      for (int part = 0; part < width; part++) {
        const V current = at[part];
        at[pitch + part] = current * sine + carried[part] * cosine;
        carried[part] = current * cosine - carried[part] * sine;
      }
    }
    for (int part = 0; part < width; part++) at[part] = carried[part];
  }
  void rotate(int64_t l, int64_t m) {
    int64_t column = 0;
    for (; column + 4 <= n; column += 4) rotate_columns<4>(l, m, column);
    for (; column < n; column++) rotate_columns<1>(l, m, column);
  }

  void iterate() {
    failed = V{};
    V norm = {};
    for (int64_t i = 0; i < n; i++) norm = larger(norm, magnitude(d[i]) + magnitude(e[i]));
    const V negligible = norm * std::numeric_limits<T>::epsilon(); // see eigh.isa.cpp
    for (int64_t l = 0; l < n; l++)
      for (int count = 0;; count++) {
        const V m = end_of(l, negligible);
        if (!is_any(m > T(l))) break;
        if (count == most_sweeps) {
          failed = m > T(l) ? V{} + 1 : failed;
          break;
        }
        const int64_t end = sweep(l, m);
        if (z) rotate(l, end);
      }
  }

  // Makes the largest element by magnitude of each eigenvector positive; of equal ones, the first.
  void fix_signs() {
    for (int64_t i = 0; i < n; i++) {
      V largest = {};
      for (int64_t j = 0; j < n; j++)
        largest = magnitude(z[i * pitch + j]) > magnitude(largest) ? z[i * pitch + j] : largest;
      const V sign = largest < 0 ? V{} - 1 : V{} + 1;
      for (int64_t j = 0; j < n; j++) z[i * pitch + j] *= sign;
    }
  }

  // Stores the results of one matrix, with eigenvalues in ascending order.
  void store(const EighBatch<T> &matrix, T scale, int lane) const {
    int64_t order[tuning::eigh::lanes_size];
    for (int64_t i = 0; i < n; i++) {
      int64_t at = i;
      for (; at > 0 && d[order[at - 1]][lane] > d[i][lane]; at--) order[at] = order[at - 1];
      order[at] = i;
    }
    *matrix.info = 0;
    for (int64_t j = 0; j < n; j++) matrix.values[j] = d[order[j]][lane] * scale;
    if (!z) return;
    for (int64_t j = 0; j < n; j++) {
      const T *from = reinterpret_cast<const T *>(z + order[j] * pitch) + lane;
      for (int64_t i = 0; i < n; i++) matrix.vectors[i * n + j] = from[i * lanes<T>];
    }
  }
};

// Returns an odd number of vectors per row, so that the elements of a column do not compete for a few cache sets.
inline int64_t pitch_of(int64_t n) { return n | 1; }
template <class T> int64_t elements(int64_t n) { return (2 * n * pitch_of(n) + 6 * n) * lanes<T>; }

template <class T> void load(const EighBatch<T> &matrix, T factor, Vector<T> *a, int64_t lane) {
  T *to = reinterpret_cast<T *>(a) + lane;
  const int64_t n = matrix.n, pitch = pitch_of(n);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) to[(i * pitch + j) * lanes<T>] = factor == 0 ? 0 : element(matrix, i, j) * factor;
}

template <class T> void decompose(const EighBatch<T> &first, int64_t count, T *memory) {
  const int64_t n = first.n, pitch = pitch_of(n);
  Vector<T> *a = reinterpret_cast<Vector<T> *>(memory), *after = a + 2 * n * pitch;
  Lanes<T> all = {n,
                  pitch,
                  a,
                  first.vectors ? a + n * pitch : nullptr,
                  after,
                  after + n,
                  after + 2 * n,
                  after + 3 * n,
                  after + 4 * n,
                  after + 5 * n,
                  {}};
  Scaling<T> scalings[lanes<T>] = {};
  for (int64_t lane = 0; lane < lanes<T>; lane++) {
    const EighBatch<T> matrix = first.at(std::min(lane, count - 1)); // unused lanes compute zeros
    if (lane < count) scalings[lane] = scaling_of(matrix);
    load(matrix, scalings[lane].factor, a, lane);
  }
  all.reduce();
  if (all.z) all.accumulate();
  all.iterate();
  if (all.z) all.fix_signs();
  for (int64_t lane = 0; lane < count; lane++) {
    const int64_t code = all.failed[lane] != 0 ? n + 1 : scalings[lane].refused;
    if (code != 0) fail_matrix(first.at(lane), code);
    else all.store(first.at(lane), scalings[lane].scale, int(lane));
  }
}

template <class T> constexpr EighLanesKernel<T> kernel = {lanes<T>, elements<T>, decompose<T>};

} // namespace

extern const EighLanesKernels eigh_lanes_kernels = {kernel<double>, kernel<float>};

} // namespace orchard::ORCHARD_ISA
