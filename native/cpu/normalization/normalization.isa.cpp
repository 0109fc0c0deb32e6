#include "normalization.h"

#include "../moments.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::normalization::total_columns;

// Returns a row in the compute type: the row itself, or a widened copy in `scratch`.
template <class T> const Compute<T> *widened(const void *row, int64_t count, Compute<T> *scratch) {
  const T *elements = static_cast<const T *>(row);
  if constexpr (std::is_same_v<T, Compute<T>>) return elements;
  else {
    widen(elements, scratch, count);
    return scratch;
  }
}

// Returns where results are written in the compute type: the row itself, or `scratch`, from which `finish` converts
// them.
template <class T> Compute<T> *unfinished(void *row, Compute<T> *scratch) {
  if constexpr (std::is_same_v<T, Compute<T>>) return static_cast<T *>(row);
  else return scratch;
}
template <class T> void finish(const Compute<T> *results, void *row, int64_t count) {
  if constexpr (!std::is_same_v<T, Compute<T>>) narrow(results, static_cast<T *>(row), count);
}

// ---------------------------------------------------------------- rows

// Returns x + residual, rounded to T.
template <class T> const Compute<T> *summed_rows(const NormalizeRow &row, Compute<T> *scratch) {
  using C = Compute<T>;
  const T *x = static_cast<const T *>(row.x), *residual = static_cast<const T *>(row.residual);
  T *__restrict sum = static_cast<T *>(row.sum);
  for (int64_t k = 0; k < row.length; k++) sum[k] = store<T>(C(load(x[k]) + load(residual[k])));
  return widened<T>(sum, row.length, scratch);
}

// Computes in float64, from the deviations from the unrounded mean.
template <class C> RowStatistics statistics_of(const C *s, const NormalizeRow &row) {
  Moments moments =
      row.is_centered ? moments_of(s, row.length) : Moments{double(row.length), 0, squares_around(0, s, row.length)};
  return {moments.mean, 1 / std::sqrt(moments.squares / moments.count + row.eps)};
}

// The mean is used in two parts, since far from zero its rounding error would exceed small deviations.
template <class C>
void write_out(const C *__restrict s, const NormalizeRow &row, RowStatistics statistics, C *__restrict out) {
  C mean = C(statistics.mean), lost = C(statistics.mean - double(mean)), scale = C(statistics.scale);
  if (!std::isfinite(mean)) lost = 0;
  const C *weight = static_cast<const C *>(row.weight), *bias = static_cast<const C *>(row.bias);
  auto each = [=](auto result) {
    for (int64_t k = 0; k < row.length; k++) out[k] = result(k, ((s[k] - mean) - lost) * scale);
  };
  if (weight && bias) each([=](int64_t k, C n) { return n * weight[k] + bias[k]; });
  else if (weight) each([=](int64_t k, C n) { return n * weight[k]; });
  else if (bias) each([=](int64_t k, C n) { return n + bias[k]; });
  else each([=](int64_t, C n) { return n; });
}

template <class T> RowStatistics normalize(const NormalizeRow &row) {
  using C = Compute<T>;
  C *scratch = static_cast<C *>(row.scratch), *out = unfinished<T>(row.out, scratch + row.length);
  const C *s = row.residual ? summed_rows<T>(row, scratch) : widened<T>(row.x, row.length, scratch);
  RowStatistics statistics = statistics_of(s, row);
  write_out(s, row, statistics, out);
  finish<T>(out, row.out, row.length);
  return statistics;
}

// ---------------------------------------------------------------- gradients

// Computes n and v = gradient · weight, and the means of v (if rows are centered) and of v n.
template <class C> struct RowMeans {
  double average, projection;
};

template <class C>
RowMeans<C> means_of(const C *x, const C *gradient, const GradientRow &row, C *__restrict normalized, C *__restrict v) {
  C mean = C(row.statistics.mean), scale = C(row.statistics.scale);
  const C *weight = static_cast<const C *>(row.weight);
  for (int64_t k = 0; k < row.length; k++) normalized[k] = (x[k] - mean) * scale;
  if (weight)
    for (int64_t k = 0; k < row.length; k++) v[k] = gradient[k] * weight[k];
  const C *weighted = weight ? v : gradient, *n = normalized;
  double count = double(row.length);
  double average = row.is_centered ? summed(row.length, [=](int64_t k) { return double(weighted[k]); }) / count : 0;
  return {average, summed(row.length, [=](int64_t k) { return double(weighted[k]) * double(n[k]); }) / count};
}

template <class T>
void write_gradient(const Compute<T> *v, const Compute<T> *n, const GradientRow &row, Compute<T> average,
                    Compute<T> projection) {
  using C = Compute<T>;
  C scale = C(row.statistics.scale);
  const T *incoming = static_cast<const T *>(row.grad_sum);
  T *__restrict out = static_cast<T *>(row.grad_x);
  if (incoming)
    for (int64_t k = 0; k < row.length; k++)
      out[k] = store<T>(C(scale * ((v[k] - average) - n[k] * projection) + load(incoming[k])));
  else
    for (int64_t k = 0; k < row.length; k++) out[k] = store<T>(C(scale * ((v[k] - average) - n[k] * projection)));
}

template <class C> void add_to_sums(const C *gradient, const C *n, const GradientRow &row) {
  C *__restrict weight_sums = static_cast<C *>(row.weight_sums);
  C *__restrict bias_sums = static_cast<C *>(row.bias_sums);
  if (weight_sums)
    for (int64_t k = 0; k < row.length; k++) weight_sums[k] += gradient[k] * n[k];
  if (bias_sums)
    for (int64_t k = 0; k < row.length; k++) bias_sums[k] += gradient[k];
}

template <class T> void gradient(const GradientRow &row) {
  using C = Compute<T>;
  C *normalized = static_cast<C *>(row.scratch), *v = normalized + row.length;
  const C *x = widened<T>(row.x, row.length, v + row.length);
  const C *grad_out = widened<T>(row.grad_out, row.length, v + 2 * row.length);
  RowMeans<C> means = means_of(x, grad_out, row, normalized, v);
  if (row.grad_x) write_gradient<T>(row.weight ? v : grad_out, normalized, row, C(means.average), C(means.projection));
  add_to_sums(grad_out, static_cast<const C *>(normalized), row);
}

// ---------------------------------------------------------------- weight and bias

template <class T> void widen_any(const void *from, int64_t stride, int64_t count, void *to) {
  const T *elements = static_cast<const T *>(from);
  Compute<T> *wide = static_cast<Compute<T> *>(to);
  for (int64_t k = 0; k < count; k++) wide[k] = load(elements[k * stride]);
}

template <class T> void collect(void *sums, int64_t count, double *totals) {
  Compute<T> *elements = static_cast<Compute<T> *>(sums);
  for (int64_t k = 0; k < count; k++) totals[k] += double(elements[k]);
  for (int64_t k = 0; k < count; k++) elements[k] = 0;
}

template <class T> void total(const double *parts, int64_t step, int64_t count, int64_t length, void *out) {
  using C = Compute<T>;
  for (int64_t first = 0; first < length; first += total_columns) {
    int64_t width = std::min(total_columns, length - first);
    double sums[total_columns] = {};
    for (int64_t part = 0; part < count; part++)
      for (int64_t k = 0; k < width; k++) sums[k] += parts[part * step + first + k];
    for (int64_t k = 0; k < width; k++) static_cast<T *>(out)[first + k] = store<T>(C(sums[k]));
  }
}

template <class T> constexpr NormalizationKernel kernel() {
  return {normalize<T>, gradient<T>, widen_any<T>, collect<T>, total<T>};
}

} // namespace

extern const Normalizations normalizations = {
    {kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
