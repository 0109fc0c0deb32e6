#include "batch_norm.h"

#include "../moments.h"
#include "../streamed.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::normalization::piece;

// The normalization of a channel: (x − mean) · factor + bias. The mean is stored in two parts, since far from zero its
// rounding error would exceed small deviations.
template <class C> struct Affine {
  C mean, lost, factor, bias;
};

template <class C> Affine<C> affine_of(double mean, double factor, C bias) {
  const C rounded = C(mean);
  return {rounded, std::isfinite(rounded) ? C(mean - double(rounded)) : C(0), C(factor), bias};
}

template <class C> C vector_at(const void *vector, int64_t at, C otherwise) {
  return vector ? static_cast<const C *>(vector)[at] : otherwise;
}

template <class C> double scale_of(C variance, double eps) { return 1 / std::sqrt(double(variance) + eps); }

// Returns elements in the compute type: x itself, or a widened copy.
template <class T> const Compute<T> *widened(const T *x, int64_t count, Compute<T> *scratch) {
  if constexpr (std::is_same_v<T, Compute<T>>) return x;
  else {
    widen(x, scratch, count);
    return scratch;
  }
}

// Calls use(number of the first element, count) for the pieces of a channel, in order.
template <class Use> void for_each_piece(const ChannelSlab &slab, int64_t channel, Use &&use) {
  for (int64_t row = 0; row < slab.batch; row++)
    for (int64_t first = 0; first < slab.inner; first += piece)
      use(row * slab.step + channel * slab.inner + first, std::min(piece, slab.inner - first));
}

// ---------------------------------------------------------------- channel by channel

// Writes the statistics, and returns the mean, factor and bias that normalize the channel.
template <class C> Affine<C> finish_statistics(const NormalizeChannels &call, int64_t channel, Moments moments) {
  C *mean = static_cast<C *>(call.mean) + channel, *variance = static_cast<C *>(call.variance) + channel;
  double scale;
  if (call.is_given) {
    moments.mean = double(*mean);
    scale = scale_of(*variance, call.slab.eps);
  } else {
    *mean = C(moments.mean), *variance = C(moments.squares / moments.count);
    scale = 1 / std::sqrt(moments.squares / moments.count + call.slab.eps);
  }
  return affine_of(moments.mean, scale * double(vector_at(call.weight, channel, C(1))),
                   vector_at(call.bias, channel, C(0)));
}

template <class C> void affine_row(const C *x, C *__restrict out, int64_t count, Affine<C> affine) {
  for (int64_t k = 0; k < count; k++) out[k] = ((x[k] - affine.mean) - affine.lost) * affine.factor + affine.bias;
}

template <class T> void normalize_channel(const NormalizeChannels &call, int64_t channel) {
  using C = Compute<T>;
  const T *x = static_cast<const T *>(call.x);
  T *out = static_cast<T *>(call.out);
  C wide[piece];
  Moments all;
  if (!call.is_given)
    for_each_piece(call.slab, channel, [&](int64_t first, int64_t count) {
      all = merged(all, moments_of(widened(x + first, count, wide), count));
    });
  const Affine<C> affine = finish_statistics<C>(call, channel, all);
  ResultRow<T, piece> results(call.is_streamed);
  for_each_piece(call.slab, channel, [&](int64_t first, int64_t count) {
    affine_row(widened(x + first, count, wide), results.begin(out + first), count, affine);
    results.end(out + first, count);
  });
  results.finish();
}

struct GradientSums {
  double bias = 0, weight = 0; // Σ g and Σ g n
};

template <class C> void write_sums(const ChannelGradients &call, int64_t channel, GradientSums sums) {
  if (call.grad_weight) static_cast<C *>(call.grad_weight)[channel] = C(sums.weight);
  if (call.grad_bias) static_cast<C *>(call.grad_bias)[channel] = C(sums.bias);
}

// The gradient of a channel's elements: scale · weight · (g − average − n · projection), with n = (x − mean) · scale.
template <class C> struct ChannelLine {
  C mean, scale, factor, average, projection;

  C gradient(C x, C g) const { return factor * ((g - average) - (x - mean) * scale * projection); }
};

template <class C> ChannelLine<C> line_of(const ChannelGradients &call, int64_t channel, GradientSums sums) {
  const double count = double(call.slab.batch) * double(call.slab.inner);
  const double scale = scale_of(static_cast<const C *>(call.variance)[channel], call.slab.eps);
  const double weight = double(vector_at(call.weight, channel, C(1)));
  return {static_cast<const C *>(call.mean)[channel], C(scale), C(scale * weight), C(sums.bias / count),
          C(sums.weight / count)};
}

template <class T> void channel_gradient(const ChannelGradients &call, int64_t channel) {
  using C = Compute<T>;
  const T *x = static_cast<const T *>(call.x), *gradient = static_cast<const T *>(call.grad_out);
  T *__restrict out = static_cast<T *>(call.grad_x);
  C wide_x[piece], wide_gradient[piece];
  const C mean = static_cast<const C *>(call.mean)[channel];
  const double scale = scale_of(static_cast<const C *>(call.variance)[channel], call.slab.eps);
  GradientSums sums;
  for_each_piece(call.slab, channel, [&](int64_t first, int64_t count) {
    const C *x_piece = widened(x + first, count, wide_x), *g = widened(gradient + first, count, wide_gradient);
    sums.bias += summed(count, [=](int64_t k) { return double(g[k]); });
    sums.weight += summed(count, [=](int64_t k) { return double(g[k]) * double(x_piece[k] - mean); });
  });
  sums.weight *= scale;
  write_sums<C>(call, channel, sums);
  if (!out) return;
  const ChannelLine<C> line = line_of<C>(call, channel, sums);
  for_each_piece(call.slab, channel, [&](int64_t first, int64_t count) {
    const C *x_piece = widened(x + first, count, wide_x), *g = widened(gradient + first, count, wide_gradient);
    T *to = out + first;
    for (int64_t k = 0; k < count; k++) to[k] = store<T>(line.gradient(x_piece[k], g[k]));
  });
}

// ---------------------------------------------------------------- columns side by side

// Calls use(first element, elements) for each run of a slab.
template <class T, class Use> void for_each_run(const ChannelSlab &slab, const void *x, Use &&use) {
  using C = Compute<T>;
  const int64_t width = slab.channels * slab.inner;
  C wide[slab_columns];
  for (int64_t row = 0; row < slab.batch; row++)
    use(row * slab.step, widened(static_cast<const T *>(x) + row * slab.step, width, wide));
}

template <class T> void normalize_columns(const NormalizeChannels &call) {
  using C = Compute<T>;
  const ChannelSlab &slab = call.slab;
  const int64_t width = slab.channels * slab.inner;
  const T *x = static_cast<const T *>(call.x);
  MomentColumns<C, slab_columns> columns(width);
  if (!call.is_given)
    for_each_row_block<T, slab_columns>(
        slab.batch, width, [&](int64_t row) { return x + row * slab.step; },
        [&](auto rows, const RowBlock<C> &block, int64_t) { columns.template include<rows>(block); });
  C mean[slab_columns], lost[slab_columns], factor[slab_columns], bias[slab_columns];
  for (int64_t channel = 0; channel < slab.channels; channel++) {
    Moments all;
    for (int64_t k = 0; k < slab.inner; k++) all = merged(all, columns.of(channel * slab.inner + k));
    const Affine<C> affine = finish_statistics<C>(call, channel, all);
    for (int64_t j = channel * slab.inner; j < (channel + 1) * slab.inner; j++)
      mean[j] = affine.mean, lost[j] = affine.lost, factor[j] = affine.factor, bias[j] = affine.bias;
  }
  T *__restrict out = static_cast<T *>(call.out);
  for_each_run<T>(slab, x, [&](int64_t first, const C *row) {
    T *to = out + first;
    for (int64_t j = 0; j < width; j++) to[j] = store<T>(C(((row[j] - mean[j]) - lost[j]) * factor[j] + bias[j]));
  });
}

// Adds Σ g and Σ g (x − mean) of each column.
template <class T, class C>
void add_columns(const ChannelGradients &call, const C *mean, double *__restrict of_bias,
                 double *__restrict of_weight) {
  const ChannelSlab &slab = call.slab;
  const int64_t width = slab.channels * slab.inner;
  const T *gradient = static_cast<const T *>(call.grad_out);
  C wide[slab_columns];
  for_each_run<T>(slab, call.x, [&](int64_t first, const C *row) {
    const C *g = widened(gradient + first, width, wide);
    for (int64_t j = 0; j < width; j++) {
      of_bias[j] += double(g[j]);
      of_weight[j] += double(g[j]) * double(row[j] - mean[j]);
    }
  });
}

template <class T> void column_gradients(const ChannelGradients &call) {
  using C = Compute<T>;
  const ChannelSlab &slab = call.slab;
  const int64_t width = slab.channels * slab.inner;
  C mean[slab_columns];
  for (int64_t j = 0; j < width; j++) mean[j] = static_cast<const C *>(call.mean)[j / slab.inner];
  double of_bias[slab_columns] = {}, of_weight[slab_columns] = {};
  add_columns<T>(call, mean, of_bias, of_weight);
  C scale[slab_columns], factor[slab_columns], average[slab_columns], projection[slab_columns];
  for (int64_t channel = 0; channel < slab.channels; channel++) {
    GradientSums sums;
    const int64_t begin = channel * slab.inner, end = begin + slab.inner;
    for (int64_t j = begin; j < end; j++) sums.bias += of_bias[j], sums.weight += of_weight[j];
    sums.weight *= scale_of(static_cast<const C *>(call.variance)[channel], slab.eps);
    write_sums<C>(call, channel, sums);
    const ChannelLine<C> line = line_of<C>(call, channel, sums);
    for (int64_t j = begin; j < end; j++)
      scale[j] = line.scale, factor[j] = line.factor, average[j] = line.average, projection[j] = line.projection;
  }
  T *__restrict out = static_cast<T *>(call.grad_x);
  if (!out) return;
  const T *gradient = static_cast<const T *>(call.grad_out);
  C wide[slab_columns];
  for_each_run<T>(slab, call.x, [&](int64_t first, const C *row) {
    const C *g = widened(gradient + first, width, wide);
    T *to = out + first;
    for (int64_t j = 0; j < width; j++) {
      const ChannelLine<C> line = {mean[j], scale[j], factor[j], average[j], projection[j]};
      to[j] = store<T>(line.gradient(row[j], g[j]));
    }
  });
}

// ---------------------------------------------------------------- dispatch between the two

template <class T> void normalize(const NormalizeChannels &call) {
  if (call.slab.inner < least_inner) return normalize_columns<T>(call);
  for (int64_t channel = 0; channel < call.slab.channels; channel++) normalize_channel<T>(call, channel);
}

template <class T> void gradients(const ChannelGradients &call) {
  if (call.slab.inner < least_inner) return column_gradients<T>(call);
  for (int64_t channel = 0; channel < call.slab.channels; channel++) channel_gradient<T>(call, channel);
}

template <class T> constexpr BatchNormKernel kernel() { return {normalize<T>, gradients<T>}; }

} // namespace

extern const BatchNorms batch_norms = {{kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
