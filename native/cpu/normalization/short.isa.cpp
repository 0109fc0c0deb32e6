// Normalization of short rows, stored side by side: each vector has one element of several rows. The formulas are the
// same as in normalization.isa.cpp.
#include "normalization.h"

#include "../row_blocks.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

// The rows of a result, which are adjacent.
ShortSlices result_rows(const ShortRowsBlock &block, int64_t (&starts)[most_short_slices]) {
  const ShortSlices &x = block.slices[0];
  for (int64_t row = 0; row < x.count; row++) starts[row] = row * x.length;
  return {x.length, x.count, 1, starts};
}

template <class T>
void write_rows(const Compute<T> *columns, const ShortRowsBlock &block, ShortRows<Compute<T>> &rows, void *result) {
  int64_t starts[most_short_slices];
  scatter_short(columns, result_rows(block, starts), rows, static_cast<T *>(result), block.is_streamed);
}

template <class T>
void read_rows(const ShortRowsBlock &block, int operand, ShortRows<Compute<T>> &rows, Compute<T> *columns) {
  gather_short(reinterpret_cast<const T *>(block.operands[operand]), block.slices[operand], rows, columns);
}

// Calls use(j) for the first of as many rows as a vector of float64 has lanes.
template <class Use> inline void for_each_lanes(int64_t pitch, Use &&use) {
  for (int64_t j = 0; j < pitch; j += lanes<double>) use(j);
}

template <class C> inline Vector<double> wide(const C *from) { return load_some_wide(from, lanes<double>); }

// Computes in float64, from the deviations from the unrounded mean.
template <class C> void find_statistics(const C *columns, int64_t pitch, ShortNormalize &block) {
  const int64_t length = block.slices[0].length;
  const double count = double(length);
  for_each_lanes(pitch, [&](int64_t j) {
    Vector<double> mean = {}, squares = {};
    if (block.is_centered) {
      for (int64_t k = 0; k < length; k++) mean += wide(columns + k * pitch + j);
      mean /= count;
    }
    for (int64_t k = 0; k < length; k++) {
      Vector<double> deviation = wide(columns + k * pitch + j) - mean;
      squares = multiply_add<double>(deviation, deviation, squares);
    }
    store_vector(mean, block.means + j);
    store_vector<double>(squares / count + block.eps, block.scales + j);
  });
  for (int64_t j = 0; j < pitch; j++) block.scales[j] = 1 / std::sqrt(block.scales[j]);
}

// The mean is used in two parts, as in `write_out` of normalization.isa.cpp.
template <class C> void normalize_columns(C *columns, int64_t pitch, const ShortNormalize &block) {
  alignas(64) C means[most_short_slices], lost[most_short_slices], scales[most_short_slices];
  for (int64_t j = 0; j < pitch; j++) {
    means[j] = C(block.means[j]), scales[j] = C(block.scales[j]);
    C remainder = C(block.means[j] - double(means[j]));
    lost[j] = std::isfinite(means[j]) ? remainder : C(0);
  }
  const C *weight = static_cast<const C *>(block.weight), *bias = static_cast<const C *>(block.bias);
  for (int64_t k = 0; k < block.slices[0].length; k++) {
    C *__restrict x = columns + k * pitch;
    auto each = [&](auto result) {
      for (int64_t j = 0; j < pitch; j++) x[j] = result(((x[j] - means[j]) - lost[j]) * scales[j]);
    };
    if (weight && bias) each([w = weight[k], b = bias[k]](C n) { return n * w + b; });
    else if (weight) each([w = weight[k]](C n) { return n * w; });
    else if (bias) each([b = bias[k]](C n) { return n + b; });
    else each([](C n) { return n; });
  }
}

template <class T> void normalize(ShortNormalize &block) {
  using C = Compute<T>;
  ShortRows<C> rows;
  ShortBlock<C> x;
  const int64_t length = block.slices[0].length, pitch = short_pitch(block.slices[0].count);
  read_rows<T>(block, 0, rows, x.columns);
  if (block.operands[1]) {
    ShortBlock<C> residual;
    read_rows<T>(block, 1, rows, residual.columns);
    for (int64_t i = 0; i < length * pitch; i++) x.columns[i] = load(store<T>(C(x.columns[i] + residual.columns[i])));
    write_rows<T>(x.columns, block, rows, block.sum);
  }
  find_statistics(x.columns, pitch, block);
  normalize_columns(x.columns, pitch, block);
  write_rows<T>(x.columns, block, rows, block.out);
}

// ---------------------------------------------------------------- gradients

// Columns of the normalized rows n and of the gradient, and the numbers of each row.
template <class C> struct GradientColumns {
  ShortBlock<C> normalized, gradient;
  alignas(64) C scales[most_short_slices], averages[most_short_slices], projections[most_short_slices];
};

template <class C> void normalize_again(const ShortGradient &block, GradientColumns<C> &columns, int64_t pitch) {
  alignas(64) C means[most_short_slices];
  for (int64_t j = 0; j < pitch; j++) means[j] = C(block.means[j]), columns.scales[j] = C(block.scales[j]);
  for (int64_t k = 0; k < block.slices[0].length; k++) {
    C *__restrict n = columns.normalized.columns + k * pitch;
    for (int64_t j = 0; j < pitch; j++) n[j] = (n[j] - means[j]) * columns.scales[j];
  }
}

// Adds Σ value(j) over the rows to a sum. A unit of rows is added at a time, so that the result is the same for every
// instruction set.
template <class C, class Value> void add_rows(int64_t pitch, double &sum, Value value) {
  C sums[short_unit] = {};
  for (int64_t first = 0; first < pitch; first += short_unit)
    for (int64_t i = 0; i < short_unit; i++) sums[i] += value(first + i);
  for (int64_t half = short_unit / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; i++) sums[i] += sums[i + half];
  sum += double(sums[0]);
}

template <class C> void add_to_sums(const ShortGradient &block, const GradientColumns<C> &columns, int64_t pitch) {
  for (int64_t k = 0; k < block.slices[0].length; k++) {
    const C *n = columns.normalized.columns + k * pitch, *g = columns.gradient.columns + k * pitch;
    if (block.weight_sums) add_rows<C>(pitch, block.weight_sums[k], [=](int64_t j) { return g[j] * n[j]; });
    if (block.bias_sums) add_rows<C>(pitch, block.bias_sums[k], [=](int64_t j) { return g[j]; });
  }
}

// Replaces the gradient by v = gradient · weight, and computes the means of v (if rows are centered) and of v n.
template <class C> void find_means(const ShortGradient &block, GradientColumns<C> &columns, int64_t pitch) {
  const int64_t length = block.slices[0].length;
  const C *weight = static_cast<const C *>(block.weight);
  C *v = columns.gradient.columns;
  for (int64_t k = 0; weight && k < length; k++)
    for (int64_t j = 0; j < pitch; j++) v[k * pitch + j] *= weight[k];
  alignas(64) double averages[most_short_slices], projections[most_short_slices];
  for_each_lanes(pitch, [&](int64_t j) {
    Vector<double> average = {}, projection = {};
    for (int64_t k = 0; k < length; k++) {
      Vector<double> gradient = wide(v + k * pitch + j);
      average += gradient;
      projection = multiply_add<double>(gradient, wide(columns.normalized.columns + k * pitch + j), projection);
    }
    store_vector<double>(average / double(length), averages + j);
    store_vector<double>(projection / double(length), projections + j);
  });
  for (int64_t j = 0; j < pitch; j++) {
    columns.averages[j] = block.is_centered ? C(averages[j]) : C(0);
    columns.projections[j] = C(projections[j]);
  }
}

template <class T>
void write_gradient(const ShortGradient &block, GradientColumns<Compute<T>> &columns, ShortRows<Compute<T>> &rows,
                    int64_t pitch) {
  using C = Compute<T>;
  const int64_t length = block.slices[0].length;
  C *gradient = columns.gradient.columns;
  const C *normalized = columns.normalized.columns;
  for (int64_t k = 0; k < length; k++) {
    C *__restrict v = gradient + k * pitch;
    const C *n = normalized + k * pitch;
    for (int64_t j = 0; j < pitch; j++)
      v[j] = columns.scales[j] * ((v[j] - columns.averages[j]) - n[j] * columns.projections[j]);
  }
  if (block.operands[2]) {
    ShortBlock<C> incoming;
    read_rows<T>(block, 2, rows, incoming.columns);
    for (int64_t i = 0; i < length * pitch; i++) gradient[i] += incoming.columns[i];
  }
  write_rows<T>(gradient, block, rows, block.grad_x);
}

template <class T> void gradient(const ShortGradient &block) {
  using C = Compute<T>;
  ShortRows<C> rows;
  GradientColumns<C> columns;
  const int64_t pitch = short_pitch(block.slices[0].count);
  read_rows<T>(block, 0, rows, columns.normalized.columns);
  read_rows<T>(block, 1, rows, columns.gradient.columns);
  normalize_again(block, columns, pitch);
  add_to_sums(block, columns, pitch);
  if (!block.grad_x) return;
  find_means(block, columns, pitch);
  write_gradient<T>(block, columns, rows, pitch);
}

} // namespace

extern const ShortNormalizations short_normalizations = {
    {normalize<double>, normalize<float>, normalize<Float16>, normalize<BFloat16>},
    {gradient<double>, gradient<float>, gradient<Float16>, gradient<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
