// Quantized weights as passed to functions: a matrix [rows, columns]. Kernels unpack some adjacent values at a time.
#pragma once

// The common first fields of all blocks. `bits` and `group` apply to affine and symmetric weights; `offsets` are the
// offsets of packed values, scales and biases.
#include "../../.build/generated/weight_head.h"

#include "../block.h"
#include "../functions.h"
#include "tuning.h"

namespace orchard {

using tuning::quant::transposed_columns;

struct Weights {
  Packing packing;
  int64_t rows, columns;
  const uint8_t *packed;
  int64_t row_bytes;
  // For affine and symmetric weights.
  int64_t bits, group;
  DType scale_dtype;
  const void *scales, *biases; // biases are null for symmetric weights

  // Returns rows `first` to `first + count - 1`.
  Weights part(int64_t first, int64_t count) const;
};

// Reads weights from operands `first` to `first + 2` of a call.
Weights weights_of(const WeightHead &head, const Operands &operands, int first);

struct QuantKernels {
  // Unpacks the values of a row from column `first` on. `first` and `count` are multiples of 32, except at the end of a
  // row of f16 or bf16.
  void (*unpack)(const Weights &, int64_t row, int64_t first, int64_t count, float *out);
  // out[i, n] = Σ x[i, k] W[n, k] for rows n of the weights from `begin` to `end`; x is [count, columns].
  void (*multiply)(const Weights &, const float *x, int64_t count, int64_t begin, int64_t end, float *out);
  // out[i, k] = Σ g[i, n] W[n, k] for columns k from `begin` to `end`, at most `transposed_columns` of them; g is
  // [count, rows].
  void (*multiply_transposed)(const Weights &, const float *g, int64_t count, int64_t begin, int64_t end, float *out);
  // Convert from a dtype to float32, and back.
  void (*widen)(const void *in, DType dtype, float *out, int64_t count);
  void (*narrow)(const float *in, DType dtype, void *out, int64_t count);
};

// Throws Failure for dtypes other than float32, float16 and bfloat16.
void check_narrow_float(DType dtype);

} // namespace orchard

ORCHARD_ISA_TABLE(QuantKernels, quant_kernels)
