#include "eight.h"

#include "eight_rows.h"

namespace orchard::ORCHARD_ISA {

#if defined(__AVX2__)

namespace {

#if defined(__AVX512F__)
using Dots = VnniDots;
#else
using Dots = PlainDots;
#endif

void multiply(const Weights &weights, const ByteLanes &x, int64_t count, int64_t begin, int64_t end, float *out) {
#if defined(__AVX512F__)
  if (!has_vnni()) return avx2::eight_rows_kernels.multiply(weights, x, count, begin, end, out);
#endif
  with_level_rows(weights, [&](auto type) {
    multiply_lanes<Dots, typename decltype(type)::type>(weights, x, count, begin, end, out);
  });
}

} // namespace

extern const EightRowsKernels eight_rows_kernels = {arrange_lanes, multiply};

#else

extern const EightRowsKernels eight_rows_kernels = {};

#endif

} // namespace orchard::ORCHARD_ISA
