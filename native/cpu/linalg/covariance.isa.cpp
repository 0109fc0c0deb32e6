#include "covariance.h"

#include "../lanes.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> void center(const T *x, T *out, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; row++, x += columns, out += columns) {
    const T mean = T(summed(columns, [=](int64_t i) { return double(x[i]); }) / double(columns));
    for (int64_t i = 0; i < columns; i++) out[i] = x[i] - mean;
  }
}

// out = row / factor, or with deviations out = (row / factor) / deviations, limited to [-1, 1]; NaN stays.
template <class T> void scale(const T *row, T *__restrict out, int64_t count, double factor, const T *deviations) {
  const T divisor = T(factor);
  if (!deviations) {
    for (int64_t i = 0; i < count; i++) out[i] = row[i] / divisor;
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    const T value = row[i] / divisor / deviations[i];
    const T bounded = value > 1 ? T(1) : value;
    out[i] = bounded < -1 ? T(-1) : bounded;
  }
}

} // namespace

extern const Covariances covariances = {{center<double>, scale<double>}, {center<float>, scale<float>}};

} // namespace orchard::ORCHARD_ISA
