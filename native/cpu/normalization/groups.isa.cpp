#include "groups.h"

#include "../lanes.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

template <class T>
void normalize_group(const void *given, int64_t channels, int64_t inner, double eps, const void *weight,
                     const void *bias, void *result) {
  using C = Compute<T>;
  const T *x = static_cast<const T *>(given);
  const C *factors = static_cast<const C *>(weight), *terms = static_cast<const C *>(bias);
  T *out = static_cast<T *>(result);
  const int64_t count = channels * inner;
  const double mean = summed(count, [x](int64_t i) { return double(load(x[i])); }) / double(count);
  const double variance = summed(count, [x, mean](int64_t i) {
                            const double apart = double(load(x[i])) - mean;
                            return apart * apart;
                          }) /
                          double(count);
  const double scale = 1 / std::sqrt(variance + eps);
  for (int64_t channel = 0; channel < channels; channel++) {
    const double factor = scale * (factors ? double(factors[channel]) : 1), term = terms ? double(terms[channel]) : 0;
    const T *from = x + channel * inner;
    T *to = out + channel * inner;
    for (int64_t i = 0; i < inner; i++) to[i] = store<T>(C((double(load(from[i])) - mean) * factor + term));
  }
}

} // namespace

extern const GroupNorms group_norms = {
    {normalize_group<double>, normalize_group<float>, normalize_group<Float16>, normalize_group<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
