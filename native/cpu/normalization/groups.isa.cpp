#include "groups.h"

#include "../moments.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::normalization::piece;

// Sums of deviations from `shift`, and of their squares, in float64. Partial sums are those of `summed`.
struct Deviations {
  double sums[sum_lanes] = {}, squares[sum_lanes] = {};

  template <class C> void include(const C *x, int64_t count, double shift) {
    int64_t i = 0;
    for (; i + sum_lanes <= count; i += sum_lanes)
      for (int lane = 0; lane < sum_lanes; lane++) {
        const double deviation = double(x[i + lane]) - shift;
        sums[lane] += deviation, squares[lane] += deviation * deviation;
      }
    for (int lane = 0; i < count; i++, lane++) {
      const double deviation = double(x[i]) - shift;
      sums[lane] += deviation, squares[lane] += deviation * deviation;
    }
  }
};

// Floats of at most 32 bits are read once: deviations from the first of n elements, whose square is at most n times the
// variance, lose at most a factor of n of float64's precision.
template <class T> Moments moments_of_group(const T *x, int64_t count) {
  using C = Compute<T>;
  if constexpr (sizeof(C) == 8) return moments_of(x, count);
  else {
    const double shift = double(load(x[0]));
    Deviations all;
    if constexpr (std::is_same_v<T, C>) all.include(x, count, shift);
    else {
      C wide[piece];
      for (int64_t first = 0; first < count; first += piece) {
        const int64_t length = std::min(piece, count - first);
        widen(x + first, wide, length);
        all.include(wide, length, shift);
      }
    }
    const double sum = lanes_summed(all.sums), squares = lanes_summed(all.squares);
    const double rest = squares - sum * (sum / double(count));
    return {double(count), shift + sum / double(count), rest < 0 ? 0 : rest};
  }
}

// Σ g and Σ g · (x − mean) of a channel.
struct Slopes {
  double plain, centered;
};
template <class T> Slopes slopes_of(const T *x, const T *gradient, int64_t count, double mean) {
  double plain[sum_lanes] = {}, centered[sum_lanes] = {};
  const auto include = [&](int64_t i, int lane) {
    const double slope = double(load(gradient[i]));
    plain[lane] += slope, centered[lane] += slope * (double(load(x[i])) - mean);
  };
  if (count < sum_lanes) {
    for (int64_t i = 0; i < count; i++) include(i, 0);
    return {plain[0], centered[0]};
  }
  int64_t i = 0;
  for (; i + sum_lanes <= count; i += sum_lanes)
    for (int lane = 0; lane < sum_lanes; lane++) include(i + lane, lane);
  for (int lane = 0; i < count; i++, lane++) include(i, lane);
  return {lanes_summed(plain), lanes_summed(centered)};
}

// The rounded steps are those of the operations that compute the same with gradients (normalization.isa.cpp).
template <class T>
void normalize_group(const void *given, int64_t channels, int64_t inner, double eps, const void *weight,
                     const void *bias, void *result) {
  using C = Compute<T>;
  const T *x = static_cast<const T *>(given);
  const C *factors = static_cast<const C *>(weight), *terms = static_cast<const C *>(bias);
  T *__restrict out = static_cast<T *>(result);
  const Moments moments = moments_of_group(x, channels * inner);
  const C mean = C(moments.mean), lost = std::isfinite(mean) ? C(moments.mean - double(mean)) : C(0);
  const C scale = C(1 / std::sqrt(moments.squares / moments.count + eps));
  const auto write = [=](int64_t i, C factor, C term) {
    const C normalized = ((load(x[i]) - mean) - lost) * scale;
    const C scaled = factors ? normalized * factor : normalized;
    out[i] = store<T>(C(terms ? scaled + term : scaled));
  };
  if (inner == 1)
    for (int64_t i = 0; i < channels; i++) write(i, factors ? factors[i] : C(1), terms ? terms[i] : C(0));
  else
    for (int64_t channel = 0; channel < channels; channel++) {
      const C factor = factors ? factors[channel] : C(1), term = terms ? terms[channel] : C(0);
      for (int64_t i = channel * inner; i < (channel + 1) * inner; i++) write(i, factor, term);
    }
}

// With n = (x − mean)·scale and v = gradient·weight: scale·(v − ⟨v⟩ − n·⟨v·n⟩), where ⟨⟩ is the mean of the group.
template <class T>
void group_gradient(const void *given, const void *given_gradient, int64_t channels, int64_t inner, double eps,
                    const void *weight, void *result, double *sums) {
  using C = Compute<T>;
  const T *x = static_cast<const T *>(given), *gradient = static_cast<const T *>(given_gradient);
  const C *factors = static_cast<const C *>(weight);
  T *__restrict out = static_cast<T *>(result);
  const Moments moments = moments_of_group(x, channels * inner);
  const double mean = moments.mean, scale = 1 / std::sqrt(moments.squares / moments.count + eps);
  double total = 0, product = 0; // Σ v and Σ v·n
  for (int64_t channel = 0; channel < channels; channel++) {
    const T *from = x + channel * inner, *slopes = gradient + channel * inner;
    const auto [plain, centered] = slopes_of(from, slopes, inner, mean);
    const double scaled = centered * scale;
    sums[2 * channel] = plain, sums[2 * channel + 1] = scaled;
    const double factor = factors ? double(factors[channel]) : 1;
    total += factor * plain, product += factor * scaled;
  }
  const double share = product / moments.count * scale * scale;
  const C rounded = C(mean), lost = std::isfinite(rounded) ? C(mean - double(rounded)) : C(0), slope = C(share);
  const C offset = C(total / moments.count * scale);
  const auto factor_of = [=](int64_t channel) { return C((factors ? double(factors[channel]) : 1) * scale); };
  const auto write = [=](int64_t i, C factor) {
    const C centered = (load(x[i]) - rounded) - lost;
    out[i] = store<T>(C((load(gradient[i]) * factor - offset) - centered * slope));
  };
  if (inner >= short_channel) {
    for (int64_t channel = 0; channel < channels; channel++) {
      const C factor = factor_of(channel);
      for (int64_t i = channel * inner; i < (channel + 1) * inner; i++) write(i, factor);
    }
    return;
  }
  // The factors of short channels are repeated for each element, so that the loop over elements is vectorized.
  C repeated[piece];
  for (int64_t first = 0, together = piece / inner; first < channels; first += together) {
    const int64_t count = std::min(together, channels - first);
    for (int64_t channel = 0; channel < count; channel++)
      std::fill_n(repeated + channel * inner, inner, factor_of(first + channel));
    for (int64_t i = 0; i < count * inner; i++) write(first * inner + i, repeated[i]);
  }
}

} // namespace

extern const GroupNorms group_norms = {
    {normalize_group<double>, normalize_group<float>, normalize_group<Float16>, normalize_group<BFloat16>},
    {group_gradient<double>, group_gradient<float>, group_gradient<Float16>, group_gradient<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
