// The function "vander".
#include "vander.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::exponential::vander_elements;

// Powers are carried in float64, as by cumprod; those of int64 wrap around.
template <class T> using Power = std::conditional_t<std::is_floating_point_v<Compute<T>>, double, uint64_t>;

template <class T> void powers(const VanderBlock &block, const Operands &operands) {
  const int64_t rows = block.rows, columns = block.columns;
  const T *x = operands.inputs<T>(0, block.offset, Extent(rows));
  const Extent all = Extent(columns).along(rows, columns);
  T *out = operands.results<T>(1, 0, all);
  if (all.is_empty()) return;
  parallel_for(rows, std::max<int64_t>(1, vander_elements / columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const auto base = static_cast<Power<T>>(ORCHARD_ISA::load(x[row]));
      Power<T> power = 1;
      for (int64_t j = 0; j < columns; j++, power *= base)
        out[row * columns + j] = ORCHARD_ISA::store<T>(static_cast<Compute<T>>(power));
    }
  });
}

// out[i, j] = x[i]ʲ
void vander(const VanderBlock &block, Operands operands) {
  switch (DType(block.dtype)) {
  case DType::float64: return powers<double>(block, operands);
  case DType::float32: return powers<float>(block, operands);
  case DType::float16: return powers<Float16>(block, operands);
  case DType::bfloat16: return powers<BFloat16>(block, operands);
  case DType::int64: return powers<int64_t>(block, operands);
  case DType::int32:
  case DType::uint32:
  case DType::int8:
  case DType::uint8:
  case DType::boolean: break;
  }
  fail(ORCHARD_CPU_UNSUPPORTED, "expected floats or int64");
}

ORCHARD_FUNCTION("vander", vander, VanderBlock, 2)

} // namespace
