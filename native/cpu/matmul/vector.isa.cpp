// A matrix times a vector: y = alpha a x + beta input. It is limited by memory bandwidth, so a is read once, in memory
// order.
//
// Rows and k are split into blocks of fixed size. The sums of each block are stored separately and added in order at
// the end, so the result does not depend on the number of threads, and long sums are more accurate.
#include "kernel.h"

#include "../memory.h"
#include "../parallel.h"
#include "finish.h"
#include "lane_sums.h"
#include "pack.h"
#include "simd.h"
#include "small_scratch.h"
#include "some_lanes.h"
#include "tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::matmul;

template <class T> [[gnu::always_inline]] inline T dot(const T *a, const T *b, int64_t count) {
  constexpr int unrolled = 4;
  Vector<T> sums[unrolled] = {};
  int64_t i = 0;
  for (; i + unrolled * lanes<T> <= count; i += unrolled * lanes<T>)
    for (int u = 0; u < unrolled; u++)
      sums[u] = multiply_add<T>(load_vector(a + i + u * lanes<T>), load_vector(b + i + u * lanes<T>), sums[u]);
  for (; i + lanes<T> <= count; i += lanes<T>)
    sums[0] = multiply_add<T>(load_vector(a + i), load_vector(b + i), sums[0]);
  T remainder = 0;
  if constexpr (std::is_floating_point_v<T>) {
    if (const SomeLanes<T> rest(count - i); i < count)
      sums[unrolled - 1] = multiply_add<T>(rest.load(a + i), rest.load(b + i), sums[unrolled - 1]);
  } else
    for (; i < count; i++) remainder += a[i] * b[i];
  return sum_of_lanes<T>((sums[0] + sums[1]) + (sums[2] + sums[3])) + remainder;
}

// sums[i] += a[0][i] x[0] + … + a[3][i] x[3]
template <class T> void add_four_columns(const T *const *a, const T *x, T *sums, int64_t count) {
  int64_t i = 0;
  for (; i + lanes<T> <= count; i += lanes<T>) {
    Vector<T> sum = load_vector(sums + i);
    for (int p = 0; p < 4; p++) sum = multiply_add<T>(load_vector(a[p] + i), x[p], sum);
    store_vector(sum, sums + i);
  }
  for (; i < count; i++)
    for (int p = 0; p < 4; p++) sums[i] += a[p][i] * x[p];
}

// sums[r][lane] = Σ a[r][i] x[r][i] over i ≡ lane; without `has_rows`, all rows have the same x.
template <int count, bool has_rows, class T>
inline void add_products(const T *a, int64_t stride, int64_t length, const T *x, int64_t x_stride,
                         Vector<T> (&sums)[count]) {
  for (Vector<T> &sum : sums) sum = Vector<T>{};
  int64_t i = 0;
  for (; i + lanes<T> <= length; i += lanes<T>) {
    const Vector<T> shared = load_vector(x + i);
#pragma GCC unroll 16
    for (int r = 0; r < count; r++) {
      const Vector<T> factors = has_rows ? load_vector(x + r * x_stride + i) : shared;
      sums[r] = multiply_add<T>(load_vector(a + r * stride + i), factors, sums[r]);
    }
  }
  if (i == length) return;
  const SomeLanes<T> rest(length - i);
  const Vector<T> shared = rest.load(x + i);
#pragma GCC unroll 16
  for (int r = 0; r < count; r++) {
    const Vector<T> factors = has_rows ? rest.load(x + r * x_stride + i) : shared;
    sums[r] = multiply_add<T>(rest.load(a + r * stride + i), factors, sums[r]);
  }
}

template <class S> class MatrixVector {
  using T = Accumulator<S>;

public:
  explicit MatrixVector(const MatrixProduct &product)
      : p_(product), has_rows_(product.a.column_stride == 1), depth_block_(has_rows_ ? 1 << 15 : 1 << 12),
        row_block_(has_rows_ ? std::max<int64_t>(1, (1 << 15) / std::min(product.k, depth_block_))
                             : rows_of_columns(product.m, std::min(product.k, depth_block_))),
        depths_((product.k - 1) / depth_block_ + 1) {}

  void run() {
    if (p_.m == 1 && has_rows_) return multiply_vectors();
    const bool is_read_in_place = std::is_same_v<S, T> && p_.b.row_stride == 1;
    SmallScratch<T> copy(is_read_in_place ? 0 : p_.k), partial(scratch_product({p_.m, depths_}));
    if (!is_read_in_place) load_row(element_of<S>(p_.b, 0, 0), p_.b.row_stride, copy.data(), p_.k);
    const T *x = is_read_in_place ? element_of<T>(p_.b, 0, 0) : copy.data();
    int64_t row_blocks = (p_.m - 1) / row_block_ + 1;
    parallel_for(row_blocks * depths_, 1, [&](int64_t task, int64_t) {
      int64_t row = task / depths_ * row_block_, block = task % depths_, depth = block * depth_block_;
      int64_t rows = std::min(row_block_, p_.m - row), length = std::min(depth_block_, p_.k - depth);
      T *sums = partial.data() + block * p_.m + row;
      if (has_rows_) multiply_rows(row, rows, depth, length, x + depth, sums);
      else multiply_columns(row, rows, depth, length, x + depth, sums);
    });
    finish(partial.data());
  }

  // Computes short sums of adjacent rows.
  static void multiply_short_sums(const T *a, int64_t stride, int64_t rows, int64_t length, const T *x, T *sums) {
    if (length <= short_row) return multiply_short_rows(a, stride, rows, length, x, sums);
    if constexpr (std::is_floating_point_v<T>) multiply_rows_together(a, stride, rows, length, x, sums);
  }

private:
  // Rows of a task that adds columns. A row's sum does not depend on them, so threads may share the rows equally.
  static int64_t rows_of_columns(int64_t rows, int64_t depth) {
    const int64_t share = (rows - 1) / threads_at_hand() + 1, least = numbers_of_columns / depth + 1;
    return std::min<int64_t>(vector_chunk, (std::max(share, least) - 1) / lanes<T> * lanes<T> + lanes<T>);
  }

  // A dot product: both vectors are read once, so the second one is not converted in advance.
  void multiply_vectors() const {
    SmallScratch<T> partial(depths_);
    parallel_for(depths_, 1, [&](int64_t block, int64_t) {
      const int64_t depth = block * depth_block_;
      partial.data()[block] = dot_of_block(depth, std::min(depth_block_, p_.k - depth));
    });
    finish(partial.data());
  }

  T dot_of_block(int64_t depth, int64_t length) const {
    T left[std::is_same_v<S, T> ? 1 : vector_chunk], right[vector_chunk], sum = 0;
    for (int64_t start = 0; start < length; start += vector_chunk) {
      const int64_t count = std::min(vector_chunk, length - start);
      const S *b = element_of<S>(p_.b, depth + start, 0);
      const T *second = right;
      if (p_.b.row_stride == 1) second = numbers_of(b, right, count);
      else load_row(b, p_.b.row_stride, right, count);
      sum += dot(numbers_of(element_of<S>(p_.a, 0, depth + start), left, count), second, count);
    }
    return sum;
  }

  void multiply_rows(int64_t row, int64_t rows, int64_t depth, int64_t length, const T *x, T *sums) const {
    constexpr int64_t piece = std::is_same_v<S, T> ? whole_chunk : vector_chunk;
    T space[std::is_same_v<S, T> ? 1 : vector_chunk];
    if constexpr (std::is_same_v<S, T>) {
      const T *first = element_of<S>(p_.a, row, depth);
      const bool is_short = length <= (std::is_floating_point_v<T> ? long_row : short_row);
      if (is_short) return multiply_short_sums(first, p_.a.row_stride, rows, length, x, sums);
    }
    for (int64_t r = 0; r < rows; r++) {
      const S *in = element_of<S>(p_.a, row + r, depth);
      sums[r] = 0;
      for (int64_t start = 0; start < length; start += piece) {
        int64_t count = std::min(piece, length - start);
        sums[r] += dot(numbers_of(in + start, space, count), x + start, count);
      }
    }
  }

  // Four rows at a time. The sum of a vector's lanes would take longer than the products.
  static void multiply_short_rows(const T *a, int64_t stride, int64_t rows, int64_t length, const T *x, T *sums) {
    constexpr int at_once = 4;
    int64_t r = 0;
    for (; r + at_once <= rows; r += at_once) {
      T four[at_once] = {};
      for (int64_t i = 0; i < length; i++)
        for (int each = 0; each < at_once; each++) four[each] += a[(r + each) * stride + i] * x[i];
      std::copy(four, four + at_once, sums + r);
    }
    for (; r < rows; r++) {
      T sum = 0;
      for (int64_t i = 0; i < length; i++) sum += a[r * stride + i] * x[i];
      sums[r] = sum;
    }
  }

  // As many rows at a time as a vector has lanes, so that their sums over lanes are computed together.
  // Rows that remain are summed in the same order.
  static void multiply_rows_together(const T *a, int64_t stride, int64_t rows, int64_t length, const T *x, T *sums) {
    int64_t r = 0;
    for (; r + lanes<T> <= rows; r += lanes<T>) {
      Vector<T> square[lanes<T>];
      add_products<lanes<T>, false>(a + r * stride, stride, length, x, 0, square);
      store_vector<T>(sums_of_lanes<T>(square), sums + r);
    }
    if (r == rows) return;
    Vector<T> rest[lanes<T>] = {};
    for (int64_t at = r; at < rows; at++) {
      Vector<T> products[1];
      add_products<1, false>(a + at * stride, stride, length, x, 0, products);
      rest[at - r] = products[0];
    }
    T numbers[lanes<T>];
    if (rows - r == 1) numbers[0] = sum_of_lanes<T>(rest[0]);
    else store_vector<T>(sums_of_lanes<T>(rest), numbers);
    std::copy_n(numbers, rows - r, sums + r);
  }

  void multiply_columns(int64_t row, int64_t rows, int64_t depth, int64_t length, const T *x, T *sums) const {
    T space[4][vector_chunk], factors[4] = {};
    const T *columns[4] = {};
    std::fill_n(sums, rows, T(0));
    for (int64_t start = 0; start < length; start += 4) {
      int64_t count = std::min<int64_t>(4, length - start);
      for (int64_t p = 0; p < count; p++) {
        columns[p] = numbers_of(element_of<S>(p_.a, row, depth + start + p), space[p], rows);
        factors[p] = x[start + p];
      }
      add_columns(columns, factors, count, sums, rows);
    }
  }

  static void add_columns(const T *const *columns, const T *factors, int64_t count, T *sums, int64_t rows) {
    if (count == 4) return add_four_columns(columns, factors, sums, rows);
    for (int64_t p = 0; p < count; p++)
      for (int64_t r = 0; r < rows; r++) sums[r] += columns[p][r] * factors[p];
  }

  // The epilogue treats the result, a column, as a row.
  void finish(T *partial) const {
    for (int64_t block = 1; block < depths_; block++)
      for (int64_t r = 0; r < p_.m; r++) partial[r] += partial[block * p_.m + r];
    finish_row<S>(p_.transposed(), 0, 0, p_.m, partial);
  }

  const MatrixProduct &p_;
  const bool has_rows_; // whether the numbers of a row are adjacent, rather than a column's
  const int64_t depth_block_, row_block_, depths_;
};

// A few short dot products of adjacent numbers, as in a batch of them: any other step would take longer than the sums.
template <class S> bool multiply_if_short(const MatrixProduct &p) {
  if constexpr (std::is_floating_point_v<S>) {
    const bool is_plain = p.a.column_stride == 1 && p.b.row_stride == 1 && p.alpha == 1 && !p.has_input();
    if (!is_plain || p.m > lanes<S> || p.k > vector_chunk) return false;
    const S *a = element_of<S>(p.a, 0, 0), *x = element_of<S>(p.b, 0, 0);
    S sums[lanes<S>];
    if (p.m == 1) sums[0] = dot(a, x, p.k);
    else MatrixVector<S>::multiply_short_sums(a, p.a.row_stride, p.m, p.k, x, sums);
    for (int64_t row = 0; row < p.m; row++) reinterpret_cast<S *>(p.out.data)[row * p.out.row_stride] = sums[row];
    return true;
  }
  return false;
}

// Dot products of a batch, as many at a time as a vector has lanes, so that their sums over lanes are computed
// together.
template <class T> void dots(const BatchedProduct &batch, int64_t begin, int64_t end) {
  const MatrixProduct &first = batch.first;
  const auto stride = [&](MatmulOperand operand) { return batch.batch.strides[operand][0]; };
  const int64_t a_stride = stride(matmul_a), b_stride = stride(matmul_b), out_stride = stride(matmul_out);
  const T *a = element_of<T>(first.a, 0, 0), *b = element_of<T>(first.b, 0, 0);
  T *out = reinterpret_cast<T *>(first.out.data);
  for (int64_t at = begin; at < end; at += lanes<T>) {
    const int64_t count = std::min<int64_t>(lanes<T>, end - at);
    Vector<T> square[lanes<T>] = {};
    if (count == lanes<T>)
      add_products<lanes<T>, true>(a + at * a_stride, a_stride, first.k, b + at * b_stride, b_stride, square);
    for (int64_t r = 0; count < lanes<T> && r < count; r++) {
      Vector<T> products[1];
      add_products<1, true>(a + (at + r) * a_stride, a_stride, first.k, b + (at + r) * b_stride, b_stride, products);
      square[r] = products[0];
    }
    T sums[lanes<T>];
    store_vector<T>(sums_of_lanes<T>(square), sums);
    for (int64_t r = 0; r < count; r++) out[(at + r) * out_stride] = sums[r];
  }
}

template <class S> void multiply(const MatrixProduct &product) {
  if (!multiply_if_short<S>(product)) MatrixVector<S>(product).run();
}

} // namespace

extern const MatrixVectorKernels matrix_vector_kernels = {
    {multiply<double>, multiply<float>, multiply<Float16>, multiply<BFloat16>, multiply<int64_t>, multiply<int32_t>,
     multiply<uint32_t>, multiply<int8_t>, multiply<uint8_t>, nullptr},
    {dots<double>, dots<float>}};

} // namespace orchard::ORCHARD_ISA
