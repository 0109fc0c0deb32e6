// Distances are computed like a matrix product: a tile of results is summed in registers, with |x − y| or (x − y)² in
// place of x y.
//
//   for each task, some rows of x and a panel of y's rows:
//     for each block of coordinates: pack the panel; add the block's terms to the sums of each tile
//     finish the sums: take the root, and store them
//
// Terms are added in the order of the coordinates, first within a block, so results do not depend on the number of
// threads. Squares may overflow or underflow: such distances of float32 are computed again in float64.
#include "distances.h"

#include "../lanes.h"
#include "../matmul/finish.h"
#include "../matmul/some_lanes.h"
#include "../matmul/tile.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::distance;

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int row_count = 8; // of a tile, with two vectors: 16 sums, two vectors of y, and a difference
#else
constexpr int row_count = 4;
#endif
constexpr int vector_count = 2;
template <class T> constexpr int panel_width = vector_count * lanes<T>;

template <class T> inline Vector<T> magnitude(Vector<T> x) { return x < 0 ? -x : x; }

template <class T, DistanceNorm norm> inline Vector<T> with_term(Vector<T> sum, Vector<T> difference) {
  if constexpr (norm == DistanceNorm::euclidean) return multiply_add<T>(difference, difference, sum);
  const Vector<T> size = magnitude<T>(difference);
  if constexpr (norm == DistanceNorm::sum) return sum + size;
  return (size >= sum) | (size != size) ? size : sum; // NaN if either is NaN
}

// Adds the terms of a block of coordinates to the sums of some rows.
template <class T, DistanceNorm norm, int rows>
void add_terms(const T *x, int64_t x_row, int64_t x_step, const T *panel, int64_t depth, T *sums) {
  Vector<T> parts[rows][vector_count] = {};
  for (int64_t p = 0; p < depth; p++, panel += panel_width<T>) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      const T number = x[r * x_row + p * x_step];
#pragma GCC unroll 2
      for (int v = 0; v < vector_count; v++)
        parts[r][v] = with_term<T, norm>(parts[r][v], load_vector(panel + v * lanes<T>) - number);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < vector_count; v++) {
      T *sum = sums + r * panel_width<T> + v * lanes<T>;
      const Vector<T> before = load_vector(sum);
      store_vector<T>(norm == DistanceNorm::largest ? with_term<T, norm>(before, parts[r][v]) : before + parts[r][v],
                      sum);
    }
}

template <class T, DistanceNorm norm> class DistanceTask {
public:
  explicit DistanceTask(const Distances &distances) : d_(distances) {}

  void run(int64_t batch, int64_t row, int64_t column) const {
    const int64_t end = std::min(row + rows_of_task, d_.m), columns = std::min<int64_t>(width, d_.n - column);
    if (d_.is_triangle && column + columns <= row + 1) return; // only pairs j ≤ i
    alignas(line_bytes) T sums[rows_of_task * width] = {}, panel[block_depth * width];
    const T *x = element_of<T>(d_.x, row, 0) + batch * d_.x_batch,
            *y = element_of<T>(d_.y, column, 0) + batch * d_.y_batch;
    for (int64_t depth = 0; depth < d_.k; depth += block_depth) {
      const int64_t length = std::min(block_depth, d_.k - depth);
      pack(y + depth * d_.y.column_stride, columns, length, panel);
      add_rows(x + depth * d_.x.column_stride, end - row, panel, length, sums);
    }
    for (int64_t r = row; r < end; r++) finish(batch, r, column, columns, sums + (r - row) * width);
  }

private:
  static constexpr int64_t width = panel_width<T>;

  // panel[p * width + c] = y[c][p]; 0 for columns past the last.
  void pack(const T *y, int64_t columns, int64_t depth, T *panel) const {
    const int64_t row = d_.y.row_stride, step = d_.y.column_stride;
    int64_t p = 0;
    if (step == 1 && columns == width)
      for (; p + lanes<T> <= depth; p += lanes<T>)
        for (int64_t c = 0; c < width; c += lanes<T>)
          transpose_square(y + c * row + p, row, panel + p * width + c, width);
    for (; p < depth; p++) {
      load_row<T>(y + p * step, row, panel + p * width, columns);
      std::fill_n(panel + p * width + columns, width - columns, T(0));
    }
  }

  void add_rows(const T *x, int64_t rows, const T *panel, int64_t depth, T *sums) const {
    const int64_t stride = d_.x.row_stride, step = d_.x.column_stride;
    int64_t row = 0;
    for (; row + row_count <= rows; row += row_count)
      add_terms<T, norm, row_count>(x + row * stride, stride, step, panel, depth, sums + row * width);
    for (; row < rows; row++) add_terms<T, norm, 1>(x + row * stride, stride, step, panel, depth, sums + row * width);
  }

  void finish(int64_t batch, int64_t row, int64_t column, int64_t columns, T *sums) const {
    const int64_t first = d_.is_triangle ? std::max<int64_t>(0, row + 1 - column) : 0;
    if (norm == DistanceNorm::euclidean) take_roots(batch, row, column, columns, sums);
    T *out = const_cast<T *>(element_of<T>(d_.out, row, column)) + batch * d_.out_batch;
    // The number of pairs before this one: in earlier rows, and in this row before the column.
    if (d_.is_triangle) out = reinterpret_cast<T *>(d_.out.data) + row * (2 * d_.n - row - 1) / 2 + column - row - 1;
    if (d_.out.column_stride == 1) std::copy(sums + first, sums + std::max(first, columns), out + first);
    else
      for (int64_t c = first; c < columns; c++) out[c * d_.out.column_stride] = sums[c];
  }

  void take_roots(int64_t batch, int64_t row, int64_t column, int64_t columns, T *sums) const {
    // Smaller squares are subnormal, and lose bits or become 0. In float64 this is accepted, as in norm.
    constexpr T least = std::is_same_v<T, float> ? T(1e-30) : T(0), most = std::numeric_limits<T>::max();
    int32_t inexact = 0; // also counts columns past the last
    for (int64_t c = 0; c < width; c++) inexact += sums[c] >= least && sums[c] <= most ? 0 : 1;
    T roots[width];
    for (int64_t c = 0; c < width; c++) roots[c] = std::sqrt(sums[c]);
    if (inexact > 0 && std::is_same_v<T, float>)
      for (int64_t c = 0; c < columns; c++)
        if (!(sums[c] >= least && sums[c] <= most)) roots[c] = wide_distance(batch, row, column + c);
    std::copy_n(roots, width, sums);
  }

  T wide_distance(int64_t batch, int64_t row, int64_t column) const {
    const T *x = element_of<T>(d_.x, row, 0) + batch * d_.x_batch,
            *y = element_of<T>(d_.y, column, 0) + batch * d_.y_batch;
    return T(std::sqrt(summed(d_.k, [&](int64_t p) {
      const double difference = double(x[p * d_.x.column_stride]) - double(y[p * d_.y.column_stride]);
      return difference * difference;
    })));
  }

  const Distances &d_;
};

template <class T, DistanceNorm norm> void compute_norm(const Distances &d) {
  const int64_t row_tasks = (d.m - 1) / rows_of_task + 1, panels = (d.n - 1) / panel_width<T> + 1;
  const double terms = double(std::min(d.m, rows_of_task)) * panel_width<T> * double(std::max<int64_t>(d.k, 1));
  const DistanceTask<T, norm> task(d);
  parallel_for(d.batch * row_tasks * panels, std::max<int64_t>(1, int64_t(terms_of_task / terms)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t at = begin; at < end; at++)
                   task.run(at / panels / row_tasks, at / panels % row_tasks * rows_of_task,
                            at % panels * panel_width<T>);
               });
}

template <class T> void compute(const Distances &distances) {
  if (distances.norm == DistanceNorm::sum) return compute_norm<T, DistanceNorm::sum>(distances);
  if (distances.norm == DistanceNorm::euclidean) return compute_norm<T, DistanceNorm::euclidean>(distances);
  compute_norm<T, DistanceNorm::largest>(distances);
}

constexpr int pulled_rows = 4, pulled_vectors = 2;

// out[r] += Σⱼ weights[r, j] (x[r] − y[j]) for some rows, over up to pulled_vectors vectors of coordinates.
template <class T, int rows, int vectors>
void pull_rows(const PulledPoints &p, const T *weights, const T *x, const T *y, int64_t count, SomeLanes<T> last,
               T *out) {
  auto load = [&](const T *from, int v) {
    return v + 1 < vectors ? load_vector(from + v * lanes<T>) : last.load(from + v * lanes<T>);
  };
  Vector<T> own[rows][vectors], sums[rows][vectors] = {};
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) own[r][v] = load(x + r * p.x.row_stride, v);
  for (int64_t j = 0; j < count; j++, y += p.y.row_stride) {
    Vector<T> other[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) other[v] = load(y, v);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      const T weight = weights[r * p.weights.row_stride + j * p.weights.column_stride];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) sums[r][v] = multiply_add<T>(own[r][v] - other[v], weight, sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
      T *to = out + r * p.out.row_stride + v * lanes<T>;
      const Vector<T> sum = load(out + r * p.out.row_stride, v) + sums[r][v];
      if (v + 1 < vectors) store_vector<T>(sum, to);
      else last.store(sum, to);
    }
}

template <class T, int rows> void pull_some(const PulledPoints &p, int64_t batch, int64_t row) {
  const T *weights = element_of<T>(p.weights, row, 0) + batch * p.weights_batch,
          *x = element_of<T>(p.x, row, 0) + batch * p.x_batch, *y = element_of<T>(p.y, 0, 0) + batch * p.y_batch;
  T *out = const_cast<T *>(element_of<T>(p.out, row, 0)) + batch * p.out_batch;
  for (int r = 0; r < rows; r++) std::fill_n(out + r * p.out.row_stride, p.k, T(0));
  for (int64_t first = 0; first < p.n; first += points_of_sum) {
    const int64_t count = std::min(points_of_sum, p.n - first);
    const T *own = weights + first * p.weights.column_stride, *others = y + first * p.y.row_stride;
    for (int64_t at = 0; at < p.k; at += pulled_vectors * lanes<T>) {
      const int64_t left = p.k - at;
      if (left > lanes<T>)
        pull_rows<T, rows, pulled_vectors>(p, own, x + at, others + at, count,
                                           SomeLanes<T>(std::min<int64_t>(left - lanes<T>, lanes<T>)), out + at);
      else pull_rows<T, rows, 1>(p, own, x + at, others + at, count, SomeLanes<T>(left), out + at);
    }
  }
}

template <class T> void pull(const PulledPoints &p) {
  const int64_t groups = (p.m - 1) / pulled_rows + 1;
  const double terms = double(pulled_rows) * double(p.n + 1) * double(p.k);
  parallel_for(p.batch * groups, std::max<int64_t>(1, int64_t(terms_of_task / terms)), [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; group++) {
      int64_t row = group % groups * pulled_rows;
      const int64_t batch = group / groups, last = std::min(row + pulled_rows, p.m);
      if (last - row == pulled_rows) pull_some<T, pulled_rows>(p, batch, row);
      else
        for (; row < last; row++) pull_some<T, 1>(p, batch, row);
    }
  });
}

} // namespace

extern const DistanceKernels distance_kernels = {{compute<double>, compute<float>}, {pull<double>, pull<float>}};

} // namespace orchard::ORCHARD_ISA
