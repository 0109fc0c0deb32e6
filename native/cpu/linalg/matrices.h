// What the functions of linear algebra share. Matrices are row-major without gaps, float32 or float64; batches are
// divided among threads.
#pragma once

#include "../functions.h"

#include <algorithm>

namespace orchard {

// The kernels for each type in which linear algebra is computed.
template <template <class> class Kernel> struct OfReals {
  Kernel<double> float64;
  Kernel<float> float32;
  template <class T> const Kernel<T> &of() const {
    if constexpr (sizeof(T) == 8) return float64;
    else return float32;
  }
};

// Calls use(T{}) for the type in which a dtype is computed.
template <class Use> void with_real(DType dtype, Use &&use) {
  if (dtype == DType::float64) return use(double{});
  if (dtype == DType::float32) return use(float{});
  fail(ORCHARD_CPU_UNSUPPORTED,
       std::string("expected float32 or float64, got ") + dtype_names[static_cast<int>(dtype)]);
}

// Matrices that one task takes, where each costs about `operations`: a task should be worth 10 µs.
inline int64_t matrices_of_task(int64_t operations) { return std::max<int64_t>(1, (1 << 16) / (operations + 1)); }

// `batch` matrices, one after the other.
inline Extent matrices(int64_t batch, int64_t rows, int64_t columns) {
  Extent own = Extent(columns).along(rows, columns);
  return own.along(batch, own.count());
}

} // namespace orchard
