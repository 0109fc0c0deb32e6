#include "ldl.h"

#include "vectors.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

// The largest absolute value among `count` elements, and its first index.
template <class T> struct Largest {
  T size = 0;
  int64_t at = 0;

  Largest(const T *x, int64_t count, int64_t stride, int64_t first) : at(first) {
    for (int64_t i = 0; i < count; i++)
      if (std::abs(x[i * stride]) > size) size = std::abs(x[i * stride]), at = first + i;
  }
};

// A pivot: rows and columns `from` and `with` are swapped, and the block has size `width` x `width`.
struct Pivot {
  int64_t from, with, width;
};

// Algorithm A of J. R. Bunch, L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear
// systems", 1977. A block is 1 x 1 if its element is not much smaller than the largest one of its column, or than the
// largest one in that element's row.
template <class T> Pivot find_pivot(const T *a, int64_t n, int64_t k) {
  const T alpha = (1 + std::sqrt(T(17))) / 8, diagonal = std::abs(a[k * n + k]);
  const Largest<T> column(a + (k + 1) * n + k, n - k - 1, n, k + 1);
  if (!(diagonal < alpha * column.size)) return {k, k, 1};
  const int64_t row = column.at;
  const T size = std::max(Largest<T>(a + row * n + k, row - k, 1, k).size,
                          Largest<T>(a + (row + 1) * n + row, n - row - 1, n, row + 1).size);
  if (diagonal >= alpha * column.size * (column.size / size)) return {k, k, 1};
  if (std::abs(a[row * (n + 1)]) >= alpha * size) return {k, row, 1};
  return {k + 1, row, 2};
}

template <class T> void swap_symmetric(T *a, int64_t n, int64_t k, const Pivot &pivot) {
  const auto [from, with, width] = pivot;
  if (from == with) return;
  for (int64_t i = with + 1; i < n; i++) std::swap(a[i * n + from], a[i * n + with]);
  for (int64_t i = from + 1; i < with; i++) std::swap(a[i * n + from], a[with * n + i]);
  std::swap(a[from * (n + 1)], a[with * (n + 1)]);
  if (width == 2) std::swap(a[from * n + k], a[with * n + k]);
}

// A -= L D Lᵀ for a 1 x 1 block: column[j] is the element of row j in column k.
template <class T> void eliminate_one(T *a, int64_t n, int64_t k, T *column) {
  const T diagonal = a[k * (n + 1)];
  for (int64_t i = k + 1; i < n; i++) column[i] = a[i * n + k];
  for (int64_t i = k + 1; i < n; i++) {
    const T factor = column[i] / diagonal;
    subtract_multiple(a + i * n + k + 1, column + k + 1, factor, i - k);
    a[i * n + k] = factor;
  }
}

// A -= L D Lᵀ for a 2 x 2 block, scaled by its off-diagonal element, which is the largest.
template <class T> void eliminate_two(T *a, int64_t n, int64_t k, T *first, T *second) {
  const T off = a[(k + 1) * n + k], lower = a[(k + 1) * (n + 1)] / off, upper = a[k * (n + 1)] / off;
  const T scale = 1 / (lower * upper - 1) / off;
  for (int64_t j = k + 2; j < n; j++) {
    first[j] = scale * (lower * a[j * n + k] - a[j * n + k + 1]);
    second[j] = scale * (upper * a[j * n + k + 1] - a[j * n + k]);
  }
  for (int64_t i = k + 2; i < n; i++) {
    T *row = a + i * n;
    const T left = row[k], right = row[k + 1];
    for (int64_t j = k + 2; j <= i; j++) row[j] -= left * first[j] + right * second[j];
    row[k] = first[i];
    row[k + 1] = second[i];
  }
}

template <class T> int64_t factorize(T *a, int64_t n, int32_t *pivots, T *work) {
  int64_t info = 0;
  for (int64_t k = 0; k < n;) {
    const Pivot pivot = find_pivot(a, n, k);
    const int32_t with = static_cast<int32_t>(pivot.with + 1);
    swap_symmetric(a, n, k, pivot);
    if (pivot.width == 2) {
      eliminate_two(a, n, k, work, work + n);
      pivots[k] = pivots[k + 1] = -with;
    } else {
      // If the whole column is zero, the block stays zero.
      if (a[k * (n + 1)] != 0) eliminate_one(a, n, k, work);
      else if (info == 0) info = k + 1;
      pivots[k] = with;
    }
    k += pivot.width;
  }
  for (int64_t i = 0; i < n; i++) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  return info;
}

template <class T> void swap_rows(T *b, int64_t n, int64_t columns, int64_t row, int64_t other) {
  if (other != row && other >= 0 && other < n)
    std::swap_ranges(b + row * columns, b + (row + 1) * columns, b + other * columns);
}

template <class T> void divide_two(const T *ld, T *b, int64_t n, int64_t columns, int64_t k) {
  const T off = ld[(k + 1) * n + k], upper = ld[k * (n + 1)] / off, lower = ld[(k + 1) * (n + 1)] / off;
  const T scale = upper * lower - 1;
  T *first = b + k * columns, *second = first + columns;
  for (int64_t c = 0; c < columns; c++) {
    const T one = first[c] / off, two = second[c] / off;
    first[c] = (lower * one - two) / scale;
    second[c] = (upper * two - one) / scale;
  }
}

template <class T> void solve(const T *ld, const int32_t *pivots, T *b, int64_t n, int64_t columns) {
  for (int64_t k = 0; k < n;) {
    const int64_t width = pivots[k] < 0 && k + 1 < n ? 2 : 1, next = k + width;
    swap_rows(b, n, columns, next - 1, std::abs(int64_t(pivots[k])) - 1);
    for (int64_t i = next; i < n; i++)
      for (int64_t j = k; j < next; j++) subtract_multiple(b + i * columns, b + j * columns, ld[i * n + j], columns);
    if (width == 2) divide_two(ld, b, n, columns, k);
    else
      for (int64_t c = 0; c < columns; c++) b[k * columns + c] /= ld[k * (n + 1)];
    k = next;
  }
  for (int64_t k = n - 1; k >= 0;) {
    const int64_t first = pivots[k] < 0 && k > 0 ? k - 1 : k;
    for (int64_t i = k + 1; i < n; i++)
      for (int64_t j = first; j <= k; j++) subtract_multiple(b + j * columns, b + i * columns, ld[i * n + j], columns);
    swap_rows(b, n, columns, k, std::abs(int64_t(pivots[k])) - 1);
    k = first - 1;
  }
}

template <class T> constexpr LdlKernel<T> kernel = {factorize<T>, solve<T>};

} // namespace

extern const LdlKernels ldl_kernels = {kernel<double>, kernel<float>};

} // namespace orchard::ORCHARD_ISA
