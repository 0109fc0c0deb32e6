// Products of many rows of x in 8 bits (fast.h) with rows of weights, by instructions that take bytes: AMX's tiles, or
// AVX512_VNNI. Both give the same bits: sums of a part are exact, and those over the parts are in their order.
#pragma once

#include "weights.h"

namespace orchard {

constexpr int64_t rows_of_block = 16; // of x, and of weights

// Blocks of 16 rows of x; where there are fewer rows, zeros.
struct ByteBlocks {
  int64_t parts;      // of a row
  int8_t *levels;     // of a block: of a part, of a row, 32
  float *scales;      // of a part, one of each row
  int32_t *sums;      // of a part, of its first 16 levels and of the others, one of each row: Σ level
  float *scaled_sums; // the same: scale · Σ level

  ByteBlocks block(int64_t at) const {
    const int64_t first = at * parts * rows_of_block;
    return {parts, levels + first * 32, scales + first, sums + first * 2, scaled_sums + first * 2};
  }
};

// Computes out[i, n] for `count` rows of x and the rows n from `begin` to `end` of the weights, which have levels.
using ManyRowsProduct = void (*)(const Weights &, const ByteBlocks &x, int64_t count, int64_t begin, int64_t end,
                                 float *out);

// What an instruction set has; null where it has none of these instructions.
struct ManyRowsKernels {
  // Up to 16 rows, of which `out` is the block.
  void (*pack)(const float *x, int64_t rows, int64_t columns, const ByteBlocks &out);
  ManyRowsProduct by_vectors, by_tiles;
};

} // namespace orchard

ORCHARD_ISA_TABLE(ManyRowsKernels, many_rows_kernels)

namespace orchard {

// The one for the present instruction set, or null.
inline ManyRowsProduct many_rows_product() {
#if defined(__x86_64__)
  if (current_isa() == Isa::amx) return many_rows_kernels().by_tiles;
  if (current_isa() >= Isa::avx512 && has_vnni()) return many_rows_kernels().by_vectors;
#endif
  return nullptr;
}

} // namespace orchard
