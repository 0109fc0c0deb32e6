// The first lanes of a vector of floats: loads and stores that leave the memory of the other lanes alone.
#pragma once

#include "simd.h"

#include <type_traits>

namespace orchard::ORCHARD_ISA {

// For `count` lanes, from none to all. The other lanes of a loaded vector are 0.
template <class T> class SomeLanes {
public:
#if defined(__AVX512F__)
  explicit SomeLanes(int64_t count) : mask_((1u << count) - 1) {}
  Vector<T> load(const T *from) const {
    if constexpr (sizeof(T) == 4) return (Vector<T>)_mm512_maskz_loadu_ps(__mmask16(mask_), from);
    else return (Vector<T>)_mm512_maskz_loadu_pd(__mmask8(mask_), from);
  }
  void store(Vector<T> vector, T *to) const {
    if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(to, __mmask16(mask_), vector);
    else _mm512_mask_storeu_pd(to, __mmask8(mask_), vector);
  }

private:
  uint32_t mask_;
#else
  explicit SomeLanes(int64_t count) : count_(count) {
#if defined(__AVX2__)
    for (int lane = 0; lane < lanes<T>; lane++) mask_[lane] = lane < count ? -1 : 0;
#endif
  }
  Vector<T> load(const T *from) const {
#if defined(__AVX2__)
    if constexpr (sizeof(T) == 4) return _mm256_maskload_ps(from, (__m256i)mask_);
    else return _mm256_maskload_pd(from, (__m256i)mask_);
#else
    if (count_ == lanes<T>) return load_vector(from);
    Vector<T> vector = {};
    for (int64_t lane = 0; lane < count_; lane++) vector[lane] = from[lane];
    return vector;
#endif
  }
  void store(Vector<T> vector, T *to) const {
    if (count_ == lanes<T>) return store_vector<T>(vector, to);
    T numbers[lanes<T>];
    store_vector<T>(vector, numbers);
    for (int64_t lane = 0; lane < count_; lane++) to[lane] = numbers[lane];
  }

private:
  int64_t count_;
#if defined(__AVX2__)
  typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Word;
  typedef Word Mask __attribute__((vector_size(vector_bytes)));
  Mask mask_;
#endif
#endif
};

} // namespace orchard::ORCHARD_ISA
