#include "mask.h"

#include "../dtypes.h"

#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

template <class T, class Stride> int64_t find_flags(const T *x, Stride stride, int64_t count, uint8_t *flags) {
  for (int64_t i = 0; i < count; i++) flags[i] = load(x[i * stride]) != Compute<T>(0);
  int64_t total = 0;
  for (int64_t i = 0; i < count; i++) total += flags[i];
  return total;
}

template <class T> int64_t find_flags(const void *x, int64_t stride, int64_t count, uint8_t *flags) {
  const T *first = static_cast<const T *>(x);
  return stride == 1 ? find_flags(first, std::integral_constant<int64_t, 1>(), count, flags)
                     : find_flags(first, stride, count, flags);
}

template <int... dtype> constexpr MaskKernels all(std::integer_sequence<int, dtype...>) {
  return {{find_flags<Storage<DType(dtype)>>...}};
}

} // namespace

extern const MaskKernels mask_kernels = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
