#include "triangular.h"

#include "lanes.h"
#include "vectors.h"

#include <limits>

namespace orchard::ORCHARD_ISA {
namespace {

// Solves row by row: X[i] = (B[i] - Σ A[i, k] X[k] over the known rows k) / A[i, i].
template <class T> void solve(const TriangularSystem<T> &system) {
  const auto [a, a_row, a_column, b, n, columns, stride, upper, unit_diagonal] = system;
  for (int64_t step = 0; step < n; step++) {
    int64_t i = upper ? n - 1 - step : step;
    T *row = b + i * stride;
    for (int64_t known = 0; known < step; known++) {
      int64_t k = upper ? n - 1 - known : known;
      subtract_multiple(row, b + k * stride, a[i * a_row + k * a_column], columns);
    }
    if (unit_diagonal) continue;
    const T pivot = a[i * a_row + i * a_column];
    for (int64_t column = 0; column < columns; column++) row[column] /= pivot;
  }
}

// Solves the lower triangular systems of a group, tile by tile. An upper triangle becomes a lower one when its rows and
// columns are counted from the end.
template <class T> class LaneSystem {
public:
  LaneSystem(LaneMatrix<T> a, LaneMatrix<T> x, const TriangularShape &shape) : a_(a), x_(x), shape_(shape) {}

  void solve() {
    for (int64_t row = 0; row < shape_.n; row += lane_tile)
      with_tile_size(std::min<int64_t>(lane_tile, shape_.n - row), [&](auto rows) { solve_rows<rows>(row); });
  }

private:
  template <int rows> void solve_rows(int64_t row) {
    Vector<T> inverse[rows]; // reciprocals of the diagonal
    bool is_inverted = true;
    for (int r = 0; r < rows; r++) {
      inverse[r] = T(1) / a_(row + r, row + r);
      is_inverted &= !any(absolute(inverse[r]) > std::numeric_limits<T>::max());
    }
    for (int64_t column = 0; column < shape_.columns; column += lane_tile)
      with_tile_size(std::min<int64_t>(lane_tile, shape_.columns - column),
                     [&](auto columns) { solve_tile<rows, columns>(row, column, is_inverted ? inverse : nullptr); });
  }

  template <int rows, int columns> void solve_tile(int64_t row, int64_t column, const Vector<T> *inverse) {
    Vector<T> c[rows][columns];
    for (int r = 0; r < rows; r++)
      for (int s = 0; s < columns; s++) c[r][s] = x_(row + r, column + s);
    subtract_products<T, rows, columns>(c, a_.from(row, 0), x_.from(0, column), row);
    for (int r = 0; r < rows; r++)
      for (int s = 0; s < columns; s++) {
        for (int t = 0; t < r; t++) c[r][s] = multiply_add<T>(-a_(row + r, row + t), c[t][s], c[r][s]);
        if (shape_.unit_diagonal) continue;
        if (inverse) c[r][s] *= inverse[r];
        else c[r][s] /= a_(row + r, row + r); // 0 / subnormal is 0; the reciprocal would be infinite
      }
    for (int r = 0; r < rows; r++)
      for (int s = 0; s < columns; s++) x_(row + r, column + s) = c[r][s];
  }

  LaneMatrix<T> a_, x_;
  TriangularShape shape_;
};

template <class T>
void solve_group(LaneGroup<const T> a, LaneGroup<const T> b, LaneGroup<T> x, const TriangularShape &shape, T *scratch) {
  const auto [n, columns] = std::pair(shape.n, shape.columns);
  Vector<T> *triangles = lanes_in(scratch), *sides = triangles + n * n;
  load_lanes<T>(a, n * n, triangles);
  load_lanes<T>(b, n * columns, sides);
  LaneMatrix<T> factor{triangles, n, 1}, solution{sides, columns, 1};
  if (shape.transposed_a) factor = factor.transposed();
  if (shape.transposed_b) solution = {sides, 1, n};
  if (shape.upper) {
    const LaneMatrix<T> last = factor.from(n - 1, n - 1), last_row = solution.from(n - 1, 0);
    factor = {last.m, -last.row, -last.column};
    solution = {last_row.m, -last_row.row, last_row.column};
  }
  LaneSystem<T>(factor, solution, shape).solve();
  store_lanes<T>(sides, n * columns, x);
}

} // namespace

extern const TriangularKernels triangular_kernels = {{solve<double>, solve_group<double>, lanes<double>},
                                                     {solve<float>, solve_group<float>, lanes<float>}};

} // namespace orchard::ORCHARD_ISA
