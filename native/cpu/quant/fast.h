// Products with x quantized to 8 bits: each 32 adjacent values of a row have a scale, and bytes are multiplied with
// bytes.
//
//   scale = max|x| / 127, level = round(x / scale), y = Σ over parts of scale · (scale_W · Σ level · level_W + …)
//
// The sum of a part is exact, in integers; parts are added in float32. If the scale would be subnormal, the values of a
// part are 0; if one of them is not finite, they are NaN.
#pragma once

#include "weights.h"

namespace orchard {

// Rows of x in the order in which bytes are multiplied. Two parts p and q of 32 values are stored as p[0, 16), q[0,
// 16), p[16, 32), q[16, 32). If a row has an odd number of parts, the last one is paired with zeros.
struct ByteRows {
  int64_t pairs; // pairs of parts per row
  int8_t *levels;
  // Each array has one element per part. The sums are scale · Σ level, of the first and of the last 16 levels.
  float *scales, *first_sums, *second_sums;

  ByteRows row(int64_t at) const {
    const int64_t part = at * pairs * 2;
    return {pairs, levels + part * 32, scales + part, first_sums + part, second_sums + part};
  }
};

inline int64_t pairs_of_parts(int64_t columns) { return (columns + 63) / 64; }

struct FastKernels {
  // Packs a row of x. `out` points to that row's part of `ByteRows`.
  void (*pack)(const float *x, int64_t columns, const ByteRows &out);
  // Dequantizes x: computes the float value of each level, for products of floats.
  void (*round)(const float *x, int64_t columns, float *out);
  // Like `QuantKernels::multiply`; null if the instruction set lacks the vectors for it. Weights may have any format
  // with levels: all but f16 and bf16.
  void (*multiply)(const Weights &, const ByteRows &x, int64_t count, int64_t begin, int64_t end, float *out);
};

inline bool has_levels(const Weights &weights) {
  return weights.packing != Packing::f16 && weights.packing != Packing::bf16;
}

} // namespace orchard

ORCHARD_ISA_TABLE(FastKernels, fast_kernels)
