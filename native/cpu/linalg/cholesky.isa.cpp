#include "cholesky_panel.h"

#include "lanes.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> int64_t factorize(const CholeskyPanel<T> &panel) { return PackedPanel<T>(panel).factorize(); }

template <class T> void solve(const CholeskyPanel<T> &panel, int64_t begin, int64_t end) {
  for (int64_t strip = begin; strip < end; strip++) PackedPanel<T>(panel).solve_strip(strip);
}

// Squares of a lower triangle are numbered row by row: square (i, j) has number i (i + 1) / 2 + j. Squares of an upper
// triangle are numbered from the end, so that squares of the same rows have consecutive numbers there too.
template <class T> void subtract(const CholeskyPanel<T> &panel, int64_t begin, int64_t end) {
  const int64_t first = panel.depth / strip_columns;
  const int64_t last = (panel.n - panel.first + strip_columns - 1) / strip_columns - 1;
  int64_t i = static_cast<int64_t>((std::sqrt(8 * double(begin) + 1) - 1) / 2);
  for (int64_t j = begin - i * (i + 1) / 2, square = begin; square < end; square++) {
    if (panel.upper) PackedPanel<T>(panel).subtract_square(last - i, last - j);
    else PackedPanel<T>(panel).subtract_square(first + i, first + j);
    if (++j > i) j = 0, i++;
  }
}

// Factors a group of matrices tile by tile, one column of tiles after the other. The products of the tiles to its left
// are subtracted from each tile; then the diagonal tile is factored, and the tiles below are divided by it.
template <class T> class LaneFactor {
public:
  LaneFactor(LaneMatrix<T> l, int64_t n) : l_(l), n_(n) {}

  // Returns, for each matrix, the order of the first leading minor that is not positive, or 0.
  LaneMask<T> factorize() {
    for (int64_t first = 0; first < n_; first += lane_tile)
      with_tile_size(std::min<int64_t>(lane_tile, n_ - first),
                     [&](auto columns) { factorize_columns<columns>(first); });
    clear();
    return failed_;
  }

private:
  template <int columns> void factorize_columns(int64_t first) {
    Vector<T> inverse[columns]; // reciprocals of the diagonal
    factorize_tile<columns>(first, inverse);
    for (int64_t row = first + columns; row < n_; row += lane_tile)
      with_tile_size(std::min<int64_t>(lane_tile, n_ - row),
                     [&](auto rows) { divide_tile<rows, columns>(row, first, inverse); });
  }

  template <int rows, int columns> void load_remainder(Vector<T> (&c)[rows][columns], int64_t row, int64_t first) {
    for (int r = 0; r < rows; r++)
      for (int s = 0; s < columns; s++) c[r][s] = l_(row + r, first + s);
    subtract_products<T, rows, columns>(c, l_.from(row, 0), l_.from(first, 0).transposed(), first);
  }

  template <int size> void factorize_tile(int64_t first, Vector<T> (&inverse)[size]) {
    Vector<T> c[size][size];
    load_remainder<size, size>(c, first, first);
    for (int s = 0; s < size; s++) {
      const LaneMask<T> is_positive = c[s][s] > 0;
      failed_ = select(~is_positive & (failed_ == 0), LaneMask<T>{} + LaneInteger<T>(first + s + 1), failed_);
      c[s][s] = square_root(select(is_positive, c[s][s], broadcast(T(1))));
      inverse[s] = T(1) / c[s][s];
      for (int r = s + 1; r < size; r++) c[r][s] *= inverse[s];
      for (int r = s + 1; r < size; r++)
        for (int t = s + 1; t <= r; t++) c[r][t] = multiply_add<T>(-c[r][s], c[t][s], c[r][t]);
    }
    for (int r = 0; r < size; r++)
      for (int s = 0; s <= r; s++) l_(first + r, first + s) = c[r][s];
  }

  template <int rows, int columns> void divide_tile(int64_t row, int64_t first, const Vector<T> (&inverse)[columns]) {
    Vector<T> c[rows][columns];
    load_remainder<rows, columns>(c, row, first);
    for (int s = 0; s < columns; s++)
      for (int r = 0; r < rows; r++) {
        for (int t = 0; t < s; t++) c[r][s] = multiply_add<T>(-c[r][t], l_(first + s, first + t), c[r][s]);
        c[r][s] *= inverse[s];
        l_(row + r, first + s) = c[r][s];
      }
  }

  // Zeros the other triangle, and all rows from the first leading minor that is not positive.
  void clear() {
    for (int64_t i = 0; i < n_; i++)
      for (int64_t j = i + 1; j < n_; j++) l_(i, j) = Vector<T>{};
    if (!any(failed_)) return;
    for (int64_t i = 0; i < n_; i++) {
      const LaneMask<T> is_lost = (failed_ != 0) & (failed_ <= LaneInteger<T>(i + 1));
      for (int64_t j = 0; j <= i; j++) l_(i, j) = select(is_lost, Vector<T>{}, l_(i, j));
    }
  }

  LaneMatrix<T> l_;
  int64_t n_;
  LaneMask<T> failed_ = {};
};

template <class T>
void factorize_group(LaneGroup<const T> from, LaneGroup<T> to, int32_t *codes, int64_t n, bool upper, T *scratch) {
  Vector<T> *m = lanes_in(scratch);
  load_lanes<T>(from, n * n, m);
  const LaneMatrix<T> a{m, n, 1};
  const LaneMask<T> failed = LaneFactor<T>(upper ? a.transposed() : a, n).factorize();
  store_lanes<T>(m, n * n, to);
  for (int64_t lane = 0; lane < to.count; lane++) codes[lane] = static_cast<int32_t>(failed[lane]);
}

template <class T>
constexpr CholeskyKernel<T> kernel = {factorize<T>, solve<T>, subtract<T>, factorize_group<T>, lanes<T>};

} // namespace

extern const CholeskyKernels cholesky_kernels = {kernel<double>, kernel<float>};

} // namespace orchard::ORCHARD_ISA
