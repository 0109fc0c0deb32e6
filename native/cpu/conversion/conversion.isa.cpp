#include "conversion.h"
#include "../tuning.h"

#include <algorithm>
#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::conversion::tile;

template <class From, class To> void convert_tiles(const From *in, To *out, int64_t count) {
  Compute<From> wide[tile];
  Compute<To> result[tile];
  for (int64_t start = 0; start < count; start += tile) {
    int64_t length = std::min(tile, count - start);
    widen(in + start, wide, length);
    for (int64_t i = 0; i < length; i++) result[i] = converted<Compute<To>>(wide[i]);
    narrow(result, out + start, length);
  }
}

template <class From, class To> void convert_row(const void *const *inputs, void *target, int64_t count) {
  const From *in = static_cast<const From *>(inputs[0]);
  To *out = static_cast<To *>(target);
  if constexpr (std::is_same_v<From, To>) {
    if (in != out) std::memcpy(out, in, count * sizeof(To));
  } else if constexpr (std::is_same_v<To, Compute<From>>) {
    widen(in, out, count);
  } else if constexpr (std::is_same_v<From, Compute<To>>) {
    narrow(in, out, count);
  } else {
    convert_tiles(in, out, count);
  }
}

template <int From, int... To> constexpr void fill(Conversions &table, std::integer_sequence<int, To...>) {
  ((table.rows[From][To] = convert_row<Storage<DType(From)>, Storage<DType(To)>>), ...);
}

template <int... From> constexpr Conversions all(std::integer_sequence<int, From...> dtypes) {
  Conversions table{};
  (fill<From>(table, dtypes), ...);
  return table;
}

} // namespace

extern const Conversions conversions = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
