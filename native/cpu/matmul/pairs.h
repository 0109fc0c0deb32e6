// Products of bfloat16 by instructions that multiply and add pairs of numbers:
//
//   sum[r][c] += a[r][2p] b[2p][c] + a[r][2p + 1] b[2p + 1][c]
//
// in float32, rounded once more for each pair. They take denormal numbers for zeros.
#pragma once

#include "kernel.h"

namespace orchard {

// The functions by instruction set; null where it has no such instructions.
struct PairProducts {
  void (*avx512_bf16)(const MatrixProduct &product);
  void (*amx)(const MatrixProduct &product);
};

// So many rows of floats that are multiplied where they lie take no longer than the packing of b.
constexpr int64_t most_rows_of_dots = 8;
// A smaller product is over before its operands are in the order that the instructions want.
constexpr double least_pair_operations = 2.0 * 32 * 32 * 32;

} // namespace orchard

ORCHARD_ISA_TABLE(PairProducts, pair_products)

namespace orchard {

// The one for the present instruction set, or null.
inline void (*pair_product(const MatrixProduct &product))(const MatrixProduct &) {
#if defined(__x86_64__)
  const bool is_for_pairs = product.dtype == DType::bfloat16 && product.operations() >= least_pair_operations &&
                            !(product.m <= most_rows_of_dots && is_for_dots(product));
  if (is_for_pairs && current_isa() == Isa::amx) return pair_products().amx;
  if (is_for_pairs && current_isa() == Isa::avx512_bf16) return pair_products().avx512_bf16;
#endif
  (void)product;
  return nullptr;
}

} // namespace orchard
