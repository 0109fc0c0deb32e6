// Complex transforms of rows and columns, on all threads.
#pragma once

#include "fft.h"

namespace orchard {

template <class T> inline const FftKernels<T> &fft_kernels() {
  if constexpr (sizeof(T) == sizeof(double)) return fft_table().float64;
  else return fft_table().float32;
}

// Rows of complex numbers; strides are in numbers. A row of `out` may not overlap another row of `in`.
template <class T> struct Batch {
  const T *in;
  T *out;
  int64_t in_stride, out_stride;
  int64_t count;
  bool inverse;
  T scale;
};

// Returns the plan of a length, from a cache. Throws Failure if there is too little memory.
template <class T> std::shared_ptr<const Plan<T>> plan_of(int64_t length);

template <class T> void transform_rows(const Plan<T> &plan, const Batch<T> &batch);

} // namespace orchard
