#include "renorm.h"

#include "../few_lanes.h"
#include "../lanes.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::distance::shortest_with_lanes;

// Calls use(term) with the function of an element whose sum is needed. The order is not infinite.
template <class Use> void with_power(double order, Use &&use) {
  if (order == 2) return use([](double value) { return value * value; });
  if (order == 1) return use([](double value) { return std::fabs(value); });
  use([order](double value) { return std::pow(std::fabs(value), order); });
}

template <class T> double part(const void *from, int64_t count, double order) {
  const T *x = static_cast<const T *>(from);
  double total = 0;
  if (std::isinf(order)) {
    for (int64_t i = 0; i < count; i++) total = larger(total, std::fabs(double(load(x[i]))));
    return total;
  }
  with_power(order, [&](auto power) {
    if (count >= shortest_with_lanes) {
      total = summed(count, [=](int64_t i) { return power(double(load(x[i]))); });
      return;
    }
    total = few_summed(count, [=](int64_t i) { return power(double(load(x[i]))); });
  });
  return total;
}

template <class T> void add_row(const void *from, int64_t count, double order, double *__restrict sums) {
  const T *x = static_cast<const T *>(from);
  if (std::isinf(order)) {
    for (int64_t i = 0; i < count; i++) sums[i] = larger(sums[i], std::fabs(double(load(x[i]))));
    return;
  }
  with_power(order, [&](auto power) {
    for (int64_t i = 0; i < count; i++) sums[i] += power(double(load(x[i])));
  });
}

template <class T> void scale(const void *from, void *to, int64_t count, double factor) {
  const T *x = static_cast<const T *>(from);
  T *__restrict out = static_cast<T *>(to);
  const Compute<T> scaled = static_cast<Compute<T>>(factor);
  for (int64_t i = 0; i < count; i++) out[i] = store<T>(load(x[i]) * scaled);
}

template <class T> void scale_row(const void *from, void *to, int64_t count, int64_t repeats, const double *factors) {
  const T *x = static_cast<const T *>(from);
  T *__restrict out = static_cast<T *>(to);
  if (repeats == 1)
    for (int64_t i = 0; i < count; i++) out[i] = store<T>(load(x[i]) * static_cast<Compute<T>>(factors[i]));
  else
    for (int64_t i = 0; i < count; i += repeats)
      for (int64_t k = i; k < i + repeats; k++)
        out[k] = store<T>(load(x[k]) * static_cast<Compute<T>>(factors[i / repeats]));
}

template <class T>
void bound_rows(const void *from, void *to, int64_t count, int64_t length, double order, double largest, double eps) {
  const T *x = static_cast<const T *>(from);
  T *out = static_cast<T *>(to);
  for (int64_t row = 0; row < count; row++, x += length, out += length)
    scale<T>(x, out, length, renorm_factor<Compute<T>>(part<T>(x, length, order), order, largest, eps));
}

template <class T> constexpr RenormKernels all() {
  return {part<T>, add_row<T>, bound_rows<T>, scale<T>, scale_row<T>};
}

} // namespace

extern const Renorms renorms = {{all<double>(), all<float>(), all<Float16>(), all<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
