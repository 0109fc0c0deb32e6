#include "fast.h"

#include "fast_rows.h"
#include "fast_rows_neon.h"
#include "round.h"

#include <algorithm>
#include <cstring>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t part_values = 32;

void pack(const float *x, int64_t columns, const ByteRows &out) {
  const int64_t parts = (columns + part_values - 1) / part_values;
  for (int64_t part = 0; part < 2 * out.pairs; part++) {
    int8_t *to = out.levels + part / 2 * 64 + part % 2 * 16;
    if (part >= parts) {
      std::fill_n(to, 16, int8_t(0));
      std::fill_n(to + 32, 16, int8_t(0));
      out.scales[part] = out.first_sums[part] = out.second_sums[part] = 0;
      continue;
    }
    const float *from = x + part * part_values;
    const PartScale part_scale = scale_of(from, part_values);
    out.scales[part] = part_scale.scale;
    for (int64_t i = 0; i < 16; i++) to[i] = level_of(from[i], part_scale.inverse);
    for (int64_t i = 0; i < 16; i++) to[32 + i] = level_of(from[16 + i], part_scale.inverse);
    int32_t sums[2] = {};
    for (int64_t i = 0; i < 16; i++) sums[0] += to[i], sums[1] += to[32 + i];
    out.first_sums[part] = part_scale.scale * float(sums[0]);
    out.second_sums[part] = part_scale.scale * float(sums[1]);
  }
}

void round(const float *x, int64_t columns, float *out) {
  for (int64_t first = 0; first < columns; first += part_values) {
    const int64_t count = std::min(part_values, columns - first);
    const PartScale part_scale = scale_of(x + first, count);
    for (int64_t i = first; i < first + count; i++)
      out[i] = part_scale.scale * float(level_of(x[i], part_scale.inverse));
  }
}

#if defined(__AVX2__)

#if defined(__AVX512F__)
using Dots = VnniDots;
#else
using Dots = PlainDots;
#endif

void multiply(const Weights &weights, const ByteRows &x, int64_t count, int64_t begin, int64_t end, float *out) {
#if defined(__AVX512F__)
  if (!has_vnni()) return avx2::fast_kernels.multiply(weights, x, count, begin, end, out);
#endif
  with_level_rows(weights, [&](auto type) {
    multiply_bytes<Dots, typename decltype(type)::type>(weights, x, count, begin, end, out);
  });
}

constexpr auto multiply_here = multiply;
#elif defined(__aarch64__)
void multiply(const Weights &weights, const ByteRows &x, int64_t count, int64_t begin, int64_t end, float *out) {
  with_level_rows(
      weights, [&](auto type) { multiply_bytes<typename decltype(type)::type>(weights, x, count, begin, end, out); });
}

constexpr auto multiply_here = multiply;
#else
constexpr void (*multiply_here)(const Weights &, const ByteRows &, int64_t, int64_t, int64_t, float *) = nullptr;
#endif

} // namespace

extern const FastKernels fast_kernels = {pack, round, multiply_here};

} // namespace orchard::ORCHARD_ISA
