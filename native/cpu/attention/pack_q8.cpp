// The function "packQ8": packs rows of float32 into q8_0 blocks, bit for bit as src/quant/ggml/simple.ts does.
//
//   scale = max|x| / 127, as a float16, followed by 32 bytes of x / scale, rounded, halves away from 0
#include "pack_q8.h"

#include "../dtypes.h"
#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

using namespace orchard;

namespace {

constexpr int64_t values = q8_values, block_bytes = q8_bytes;

// Returns false if a value, or the scale as a float16, is not finite.
bool pack_block(const float *x, char *out) {
  float largest = 0;
  bool is_finite = true;
  for (int64_t i = 0; i < values; i++) {
    is_finite &= std::isfinite(x[i]);
    largest = std::max(largest, std::fabs(x[i]));
  }
  const float scale = largest / 127, factor = scale == 0 ? 0 : 1 / scale;
  const Float16 half = ORCHARD_ISA::store<Float16>(scale);
  if (!is_finite || !std::isfinite(ORCHARD_ISA::load(half))) return false;
  std::memcpy(out, &half, sizeof half);
  for (int64_t i = 0; i < values; i++) {
    const float level = x[i] * factor;
    out[2 + i] = std::isfinite(level) ? char(int(std::round(level))) : char(0);
  }
  return true;
}

} // namespace

bool orchard::pack_q8_row(const float *x, int64_t count, char *out) {
  bool is_finite = true;
  for (; count >= values; count -= values, x += values, out += block_bytes) is_finite &= pack_block(x, out);
  return is_finite;
}

namespace {

void pack_q8(const PackQ8Block &block, Operands operands) {
  const int64_t columns = block.columns, blocks = columns / values, row_bytes = blocks * block_bytes;
  if (columns < 0 || columns % values != 0) refuse_number(block.columns.value, "columns in blocks of 32");
  Extent extent(columns);
  for (int axis = 0; axis < 3; axis++) extent.along(block.sizes[axis], block.strides[axis]);
  const float *x = operands.inputs<float>(0, block.offset, extent);
  if (extent.is_empty()) return;
  const int64_t rows = extent.count() / columns;
  char *out = operands.result(1, 1, block.out_offset, Extent(scratch_product({rows, row_bytes})));
  const int64_t inner = block.sizes[2], middle = block.sizes[1],
                strides[3] = {block.strides[0], block.strides[1], block.strides[2]};
  std::atomic<bool> is_finite{true};
  parallel_for(rows, std::max<int64_t>(1, (1 << 13) / columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const float *from =
          x + row / inner / middle * strides[0] + row / inner % middle * strides[1] + row % inner * strides[2];
      if (!pack_q8_row(from, columns, out + row * row_bytes)) is_finite = false;
    }
  });
  if (!is_finite) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected finite values with scales that a float16 has");
}

ORCHARD_FUNCTION("packQ8", pack_q8, PackQ8Block, 2)

} // namespace
