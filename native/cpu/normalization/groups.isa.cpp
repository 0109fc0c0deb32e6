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

} // namespace

extern const GroupNorms group_norms = {
    {normalize_group<double>, normalize_group<float>, normalize_group<Float16>, normalize_group<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
