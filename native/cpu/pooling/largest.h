// The largest of adjacent elements, by lanes.
#pragma once

#include "../dtypes.h"
#include "../matmul/simd.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace orchard::ORCHARD_ISA {

// Returns whether any lane of a comparison of vectors is true.
template <class Mask> inline bool has_any(const Mask &mask) {
  uint64_t parts[sizeof(Mask) / sizeof(uint64_t)], all = 0;
  std::memcpy(parts, &mask, sizeof mask);
  for (uint64_t part : parts) all |= part;
  return all != 0;
}

// Calls use(vector) for all elements. The last vector is filled up with `other`; some elements may be used twice.
template <class T, class Use> inline void for_each_vector(const T *x, int64_t count, Compute<T> other, Use &&use) {
  using C = Compute<T>;
  int64_t i = 0;
  if constexpr (std::is_same_v<T, C>) {
    for (; i + lanes<C> <= count; i += lanes<C>) use(load_vector(x + i));
    if (i == count) return;
    if (count > lanes<C>) return use(load_vector(x + count - lanes<C>));
  }
  C tile[lanes<C>];
  for (; i < count; i += lanes<C>) {
    const int64_t some = std::min<int64_t>(lanes<C>, count - i);
    if (some < lanes<C>) std::fill_n(tile, lanes<C>, other);
    widen(x + i, tile, some);
    use(load_vector(tile));
  }
}

template <class T> class Largest {
  using C = Compute<T>;

public:
  void include(const T *x, int64_t count) {
    for_each_vector(x, count, -std::numeric_limits<C>::infinity(), [&](Vector<C> values) {
      nan_ |= values != values;
      largest_ = values > largest_ ? values : largest_;
    });
  }
  bool has_nan() const { return has_any(nan_); }
  // Returns the largest element, if none is NaN.
  C value() const {
    C found = largest_[0];
    for (int lane = 1; lane < lanes<C>; lane++) found = largest_[lane] > found ? largest_[lane] : found;
    return found;
  }

private:
  Vector<C> largest_ = Vector<C>{} - std::numeric_limits<C>::infinity();
  decltype(Vector<C>{} != Vector<C>{}) nan_ = {};
};

// Returns the position of the first element that equals `value`; `count` if none does.
template <class T> inline int64_t position_of(Compute<T> value, const T *x, int64_t count) {
  using C = Compute<T>;
  decltype(Vector<C>{} == Vector<C>{}) found = {};
  const C other = value == 0 ? C(1) : C(0);
  for_each_vector(x, count, other, [&](Vector<C> values) { found |= values == value; });
  int64_t at = 0;
  if (!has_any(found)) return count;
  while (load(x[at]) != value) at++;
  return at;
}

} // namespace orchard::ORCHARD_ISA
