// Products of 16-bit floats by instructions that read them without conversion and accumulate in float32. Most are for
// bfloat16: they multiply and add pairs of numbers, with one more rounding per pair, and treat subnormal numbers as
// zeros:
//
//   sum[r][c] += a[r][2p] b[2p][c] + a[r][2p + 1] b[2p + 1][c]
//
// Arm's BFMMLA rounds both additions to odd: an inexact sum gets an odd last bit, so the error is below 2^-23 of the
// value. Over k products the error is at most (k + 2) 2^-24 Σ |terms|; with k roundings to nearest it is k 2^-24 Σ
// |terms|. (Arm Architecture Reference Manual for A-profile, shared/functions/float/bfloat: BFDotAdd, BFRound.)
//
// Arm's FMLAL is for float16: it adds each product with one rounding, like a fused multiply-add of widened numbers.
#pragma once

#include "kernel.h"
#include "tuning.h"

namespace orchard {

// The functions for each instruction set; null if the build's target lacks the instructions.
struct PairProducts {
  void (*avx512_bf16)(const MatrixProduct &product);
  void (*amx)(const MatrixProduct &product);
  void (*bfmmla)(const MatrixProduct &product);
  void (*fmlal)(const MatrixProduct &product);
};

} // namespace orchard

ORCHARD_ISA_TABLE(PairProducts, pair_products)

namespace orchard {

// Returns the function for the current instruction set, or null.
inline void (*pair_product(const MatrixProduct &product))(const MatrixProduct &) {
  const bool is_large = product.operations() >= tuning::matmul::least_pair_operations;
  if (!is_large || (product.m <= tuning::matmul::most_rows_of_dots && is_for_dots(product))) return nullptr;
  const bool is_bfloat16 = product.dtype == DType::bfloat16;
#if defined(__x86_64__)
  if (is_bfloat16 && current_isa() == Isa::amx) return pair_products().amx;
  if (is_bfloat16 && current_isa() == Isa::avx512_bf16) return pair_products().avx512_bf16;
#elif defined(__aarch64__)
  if (is_bfloat16 && current_isa() == Isa::bf16) return pair_products().bfmmla;
  if (product.dtype == DType::float16 && current_isa() >= Isa::fhm) return pair_products().fmlal;
#endif
  (void)is_bfloat16;
  return nullptr;
}

} // namespace orchard
