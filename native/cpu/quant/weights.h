// Quantised weights as functions are given them: a matrix [rows, columns], of which some adjacent values at a time are
// unpacked.
#pragma once

#include "../block.h"
#include "../functions.h"

namespace orchard {

ORCHARD_NAMES(Packing, q4_0, q4_1, q5_0, q5_1, q8_0, q2_K, q3_K, q4_K, q5_K, q6_K, iq4_nl, mxfp4, f16, bf16, affine,
              symmetric)

// What every block begins with. `bits` and `group` are of affine and symmetric weights; `offsets` are those of packed
// values, scales and biases.
struct WeightHead {
  Name<Packing> packing;
  DTypeField scale_dtype;
  Whole bits, group, rows, columns;
  Whole offsets[3];
};

struct Weights {
  Packing packing;
  int64_t rows, columns;
  const uint8_t *packed;
  int64_t row_bytes;
  // Of affine and symmetric weights.
  int64_t bits, group;
  DType scale_dtype;
  const void *scales, *biases; // no biases where they are symmetric
};

// The operands `first` to `first + 2` of a call.
Weights weights_of(const WeightHead &head, const Operands &operands, int first);

// out[columns] = Σ values[i] · x[i] and the like take the values of a row from column `first` on, `first` and `count`
// multiples of 32 save at the end of a row of f16 or bf16.
struct QuantKernels {
  void (*unpack)(const Weights &, int64_t row, int64_t first, int64_t count, float *out);
  // out[row, n] = Σ x[row, k] W[n, k] for rows n from `begin` to `end` of the weights; x [count, columns], dense.
  void (*multiply)(const Weights &, const float *x, int64_t count, int64_t begin, int64_t end, float *out,
                   float *scratch);
  // out[row, k] = Σ g[row, n] W[n, k] for columns k from `begin` to `end`; g [count, rows], dense.
  void (*multiply_transposed)(const Weights &, const float *g, int64_t count, int64_t begin, int64_t end, float *out,
                              float *scratch);
  // Floats to a dtype.
  void (*narrow)(const float *in, DType dtype, void *out, int64_t count);
};

} // namespace orchard

ORCHARD_ISA_TABLE(QuantKernels, quant_kernels)
