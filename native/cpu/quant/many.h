// Products of many 8-bit rows of x (fast.h) with rows of weights by AMX's tiles or AVX512_VNNI. Both give the same
// bits: the sum of a part is exact, and parts are added in order.
#pragma once

#include "weights.h"

namespace orchard {

constexpr int64_t rows_of_block = 16; // of x, and of weights

// Blocks of 16 rows of x. Missing rows are zeros.
struct ByteBlocks {
  int64_t parts;      // parts per row
  int8_t *levels;     // [block][part][row][32]
  float *scales;      // [block][part][row]
  int32_t *sums;      // [block][part][2][row]: Σ level of the first 16 levels, and of the others
  float *scaled_sums; // in the same layout: scale · Σ level

  ByteBlocks block(int64_t at) const {
    const int64_t first = at * parts * rows_of_block;
    return {parts, levels + first * 32, scales + first, sums + first * 2, scaled_sums + first * 2};
  }
};

// Computes out[i, n] for `count` rows of x and the rows n from `begin` to `end` of the weights, which have levels.
using ManyRowsProduct = void (*)(const Weights &, const ByteBlocks &x, int64_t count, int64_t begin, int64_t end,
                                 float *out);

// The kernels of an instruction set; null if it has neither AMX nor AVX512_VNNI.
struct ManyRowsKernels {
  // Packs up to 16 rows into the block `out`.
  void (*pack)(const float *x, int64_t rows, int64_t columns, const ByteBlocks &out);
  ManyRowsProduct by_vectors, by_tiles;
};

} // namespace orchard

ORCHARD_ISA_TABLE(ManyRowsKernels, many_rows_kernels)

namespace orchard {

// Returns the product for the current instruction set, or null.
inline ManyRowsProduct many_rows_product() {
#if defined(__x86_64__)
  if (current_isa() == Isa::amx) return many_rows_kernels().by_tiles;
  if (current_isa() >= Isa::avx512 && has_vnni()) return many_rows_kernels().by_vectors;
#endif
  return nullptr;
}

} // namespace orchard
