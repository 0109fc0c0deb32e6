#include "reflections.h"

#include "../matmul/simd.h"
#include "reflection.h"

namespace orchard::ORCHARD_ISA {
namespace {

// The number of columns of a block that are summed at once, and the vectors of each, so that the sums stay in
// registers.
constexpr int sum_columns = 8;
constexpr int sum_vectors = vector_bytes == 32 ? 1 : 2;

// out (width x columns) = Vᵀ C, where C has `vectors` vectors of columns.
template <class T, int vectors>
void project(const Block<T> &block, const T *c, int64_t stride, T *out, int64_t out_stride) {
  for (int64_t first = 0; first < block.width; first += sum_columns) {
    Vector<T> sums[sum_columns][vectors] = {};
    const T *v = block.v + first;
    for (int64_t row = 0; row < block.rows; row++, v += block.width) {
      Vector<T> c_row[vectors];
      for (int i = 0; i < vectors; i++) c_row[i] = load_vector(c + row * stride + i * lanes<T>);
      for (int j = 0; j < sum_columns; j++)
        for (int i = 0; i < vectors; i++) sums[j][i] = multiply_add<T>(c_row[i], v[j], sums[j][i]);
    }
    for (int j = 0; j < sum_columns; j++)
      for (int i = 0; i < vectors; i++) store_vector(sums[j][i], out + (first + j) * out_stride + i * lanes<T>);
  }
}

// C += V W for `rows` rows of C, which has `vectors` vectors of columns.
template <class T, int rows, int vectors>
inline void add_rows(const T *v, int64_t width, const T *w, int64_t w_stride, T *c, int64_t stride) {
  Vector<T> sums[rows][vectors];
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < vectors; i++) sums[r][i] = load_vector(c + r * stride + i * lanes<T>);
  for (int64_t j = 0; j < width; j++)
    for (int i = 0; i < vectors; i++) {
      Vector<T> w_row = load_vector(w + j * w_stride + i * lanes<T>);
      for (int r = 0; r < rows; r++) sums[r][i] = multiply_add<T>(w_row, v[r * width + j], sums[r][i]);
    }
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < vectors; i++) store_vector(sums[r][i], c + r * stride + i * lanes<T>);
}

template <class T, int vectors> void expand(const Block<T> &block, const T *w, int64_t w_stride, T *c, int64_t stride) {
  constexpr int rows = 4;
  const int64_t width = block.width;
  int64_t row = 0;
  for (; row + rows <= block.rows; row += rows)
    add_rows<T, rows, vectors>(block.v + row * width, width, w, w_stride, c + row * stride, stride);
  for (; row < block.rows; row++)
    add_rows<T, 1, vectors>(block.v + row * width, width, w, w_stride, c + row * stride, stride);
}

// out = -T W or -Tᵀ W; both have `columns` columns.
template <class T>
void scale(const Block<T> &block, bool transpose, const T *w, T *out, int64_t stride, int64_t columns) {
  const int64_t width = block.width;
  for (int64_t i = 0; i < width; i++) {
    T *row = out + i * stride;
    std::fill_n(row, columns, T(0));
    const int64_t begin = transpose ? 0 : i, end = transpose ? i + 1 : width;
    for (int64_t j = begin; j < end; j++) {
      const T factor = transpose ? block.t[j * width + i] : block.t[i * width + j];
      if (factor != 0) subtract_multiple(row, w + j * stride, factor, columns);
    }
  }
}

// Copy columns of C to and from a contiguous copy with rows of `width` elements, padded with zeros.
template <class T, int vectors> void copy_in(const Part<T> &c, T *copy) {
  constexpr int64_t width = vectors * lanes<T>;
  if (c.columns == width) {
    for (int64_t row = 0; row < c.rows; row++)
      for (int i = 0; i < vectors; i++)
        store_vector(load_vector(c.data + row * c.stride + i * lanes<T>), copy + row * width + i * lanes<T>);
    return;
  }
  for (int64_t row = 0; row < c.rows; row++)
    for (int64_t column = 0; column < width; column++)
      copy[row * width + column] = column < c.columns ? c.data[row * c.stride + column] : T(0);
}
template <class T, int vectors> void copy_out(const T *copy, const Part<T> &c) {
  constexpr int64_t width = vectors * lanes<T>;
  if (c.columns == width) {
    for (int64_t row = 0; row < c.rows; row++)
      for (int i = 0; i < vectors; i++)
        store_vector(load_vector(copy + row * width + i * lanes<T>), c.data + row * c.stride + i * lanes<T>);
    return;
  }
  for (int64_t row = 0; row < c.rows; row++)
    for (int64_t column = 0; column < c.columns; column++) c.data[row * c.stride + column] = copy[row * width + column];
}

// Applies a block to a few columns of C. They are copied, because they are read again for every few columns of V, and
// rows that are a power of two apart would share few cache sets.
template <class T, int vectors> void apply_few(const Block<T> &block, const Part<T> &c, bool transpose, T *work) {
  constexpr int64_t width = vectors * lanes<T>;
  T *w = work, *scaled = w + wide_block * width, *copy = scaled + wide_block * width;
  copy_in<T, vectors>(c, copy);
  project<T, vectors>(block, copy, width, w, width);
  scale(block, transpose, w, scaled, width, width);
  expand<T, vectors>(block, scaled, width, copy, width);
  copy_out<T, vectors>(copy, c);
}

template <class T> void apply(const Block<T> &block, const Part<T> &c, bool transpose, T *work) {
  constexpr int64_t step = sum_vectors * lanes<T>;
  for (int64_t at = 0; at < c.columns; at += step) {
    const Part<T> part = c.from(0, at).with_columns(std::min(step, c.columns - at));
    if (part.columns > lanes<T>) apply_few<T, sum_vectors>(block, part, transpose, work);
    else apply_few<T, 1>(block, part, transpose, work);
  }
}

// Computes T of V, of which `count` columns are in use: T[j, j] = tau[j], and above it -tau[j] T Vᵀ V[:, j].
template <class T> void triangle(const T *gram, const T *tau, int64_t count, const Block<T> &block) {
  const int64_t width = block.width;
  std::fill_n(block.t, width * width, T(0));
  for (int64_t j = 0; j < count; j++) {
    for (int64_t i = 0; i < j; i++) {
      T sum = 0;
      for (int64_t l = i; l < j; l++) sum += block.t[i * width + l] * gram[l * width + j];
      block.t[i * width + j] = -tau[j] * sum;
    }
    block.t[j * width + j] = tau[j];
  }
}

// Computes V and the elements of Vᵀ V above the diagonal.
template <class T> void pack(const Part<const T> &a, const T *tau, const Block<T> &block, T *work) {
  const int64_t width = block.width;
  for (int64_t row = 0; row < a.rows; row++) {
    T *v_row = block.v + row * width;
    const T *from = a.data + row * a.stride;
    if (row >= width && a.columns == width) {
      static_assert(wide_block % narrow_block == 0);
      for (int64_t j = 0; j < width; j += narrow_block) std::copy_n(from + j, narrow_block, v_row + j);
      continue;
    }
    const int64_t below = std::min(row, a.columns);
    std::copy_n(from, below, v_row);
    std::fill_n(v_row + below, width - below, T(0));
    if (row < a.columns) v_row[row] = 1;
  }
  T *gram = work;
  if (width % lanes<T> == 0) {
    for (int64_t at = 0; at < width; at += lanes<T>) project<T, 1>(block, block.v + at, width, gram + at, width);
    return triangle(gram, tau, a.columns, block);
  }
  T *columns = work + width * width;
  for (int64_t row = 0; row < a.rows; row++)
    for (int64_t j = 0; j < a.columns; j++) columns[j * a.rows + row] = block.v[row * width + j];
  for (int64_t i = 0; i < a.columns; i++)
    for (int64_t j = i + 1; j < a.columns; j++)
      gram[i * width + j] = dot(columns + i * a.rows + j, columns + j * a.rows + j, a.rows - j);
  triangle(gram, tau, a.columns, block);
}

// Factors a few columns, one reflection after the other, in a column-major copy.
template <class T> void factor_narrow(const Part<T> &a, T *tau, T *work) {
  for (int64_t row = 0; row < a.rows; row++)
    for (int64_t j = 0; j < a.columns; j++) work[j * a.rows + row] = a.data[row * a.stride + j];
  for (int64_t j = 0; j < std::min(a.rows, a.columns); j++) {
    T *column = work + j * a.rows + j;
    const int64_t count = a.rows - j;
    const T beta = reflect(column, count, &tau[j]);
    if (tau[j] != 0)
      for (int64_t other = j + 1; other < a.columns; other++) {
        T *target = work + other * a.rows + j;
        subtract_multiple(target, column, tau[j] * dot(column, target, count), count);
      }
    *column = beta;
  }
  for (int64_t row = 0; row < a.rows; row++)
    for (int64_t j = 0; j < a.columns; j++) a.data[row * a.stride + j] = work[j * a.rows + row];
}

template <class T> void factor(const Part<T> &a, T *tau, T *work) {
  const Block<T> block(work, a.rows, narrow_block);
  T *panel_work = work + Block<T>::elements(a.rows, narrow_block);
  const int64_t count = std::min(a.rows, a.columns);
  for (int64_t first = 0; first < count; first += narrow_block) {
    const int64_t width = std::min(narrow_block, count - first);
    const Part<T> panel = a.from(first, first).with_columns(width);
    factor_narrow(panel, tau + first, panel_work);
    if (first + width == a.columns) return;
    const Block<T> panel_block(block.v, panel.rows, narrow_block);
    pack<T>({panel.data, panel.rows, panel.columns, panel.stride}, tau + first, panel_block, panel_work);
    apply(panel_block, a.from(first, first + width), true, panel_work);
  }
}

} // namespace

extern const ReflectionKernels reflection_kernels = {{factor<double>, pack<double>, apply<double>},
                                                     {factor<float>, pack<float>, apply<float>}};

} // namespace orchard::ORCHARD_ISA
