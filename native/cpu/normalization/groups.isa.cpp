#include "groups.h"

#include "../moments.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::normalization::piece;

template <class T> Moments moments_of_group(const T *x, int64_t count) {
  if constexpr (std::is_same_v<T, Compute<T>>) return moments_of(x, count);
  else {
    Compute<T> wide[piece];
    Moments all;
    for (int64_t first = 0; first < count; first += piece) {
      const int64_t length = std::min(piece, count - first);
      widen(x + first, wide, length);
      all = merged(all, moments_of(wide, length));
    }
    return all;
  }
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
  for (int64_t channel = 0; channel < channels; channel++) {
    const C factor = factors ? factors[channel] : C(1), term = terms ? terms[channel] : C(0);
    for (int64_t i = channel * inner; i < (channel + 1) * inner; i++) {
      const C normalized = ((load(x[i]) - mean) - lost) * scale;
      const C scaled = factors ? normalized * factor : normalized;
      out[i] = store<T>(C(terms ? scaled + term : scaled));
    }
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
    const double plain = summed(inner, [=](int64_t i) { return double(load(slopes[i])); });
    const double scaled =
        summed(inner, [=](int64_t i) { return double(load(slopes[i])) * (double(load(from[i])) - mean); }) * scale;
    sums[2 * channel] = plain, sums[2 * channel + 1] = scaled;
    const double factor = factors ? double(factors[channel]) : 1;
    total += factor * plain, product += factor * scaled;
  }
  const double share = product / moments.count * scale * scale;
  const C rounded = C(mean), lost = std::isfinite(rounded) ? C(mean - double(rounded)) : C(0), slope = C(share);
  const C offset = C(total / moments.count * scale);
  for (int64_t channel = 0; channel < channels; channel++) {
    const C factor = C((factors ? double(factors[channel]) : 1) * scale);
    for (int64_t i = channel * inner; i < (channel + 1) * inner; i++) {
      const C centered = (load(x[i]) - rounded) - lost;
      out[i] = store<T>(C((load(gradient[i]) * factor - offset) - centered * slope));
    }
  }
}

} // namespace

extern const GroupNorms group_norms = {
    {normalize_group<double>, normalize_group<float>, normalize_group<Float16>, normalize_group<BFloat16>},
    {group_gradient<double>, group_gradient<float>, group_gradient<Float16>, group_gradient<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
