// Layer and RMS normalization of rows, and their gradients; src/ops/normalization/problem.ts has the formulas.
#pragma once

#include "../../.build/generated/normalize_block.h"
#include "../../.build/generated/normalize_gradient_block.h"

// The common first fields of both blocks. They describe the rows of up to three operands with the shape of x: x and
// residual in the forward pass; x, gradOut and gradSum in the backward pass.
// - dtype: of x
// - vector_dtype: of weight, bias and their gradients
// - is_present: absent operands may have any address
#include "../../.build/generated/normalization_head.h"

#include "../short_slices.h"
#include "../slices.h"

namespace orchard {

// The number of operands with the shape of x.
constexpr int normalization_operands = std::extent_v<decltype(NormalizationHead::is_present)>;

// One row, dense in every operand. C is double for rows of float64, else float; absent operands are null.
struct NormalizeRow {
  int64_t length;
  bool is_centered;
  double eps;
  const void *x, *residual;  // T
  const void *weight, *bias; // C
  void *out, *sum;           // T
  void *scratch;             // of C, with normalize_scratch rows
};

struct RowStatistics {
  double mean, scale;
};

struct GradientRow {
  int64_t length;
  bool is_centered;
  RowStatistics statistics;
  const void *x, *grad_out, *grad_sum; // T
  const void *weight;                  // C
  void *grad_x;                        // T
  void *weight_sums, *bias_sums;       // of C: the gradients of this row are added
  void *scratch;                       // of C, with gradient_scratch rows
};

constexpr int64_t normalize_scratch = 2, gradient_scratch = 4;

struct NormalizationKernel {
  RowStatistics (*normalize)(const NormalizeRow &);
  void (*gradient)(const GradientRow &);
  // Converts elements of T with any stride to C.
  void (*widen)(const void *from, int64_t stride, int64_t count, void *to);
  // Adds sums of C to totals, then sets the sums to 0.
  void (*collect)(void *sums, int64_t count, double *totals);
  // Writes the sum of `count` parts, added in order, as T.
  void (*total)(const double *parts, int64_t step, int64_t count, int64_t length, void *out);
};

struct Normalizations {
  NormalizationKernel kernels[4]; // by dtype: float64, float32, float16, bfloat16
};

// A block of short rows of the operands, in the order of NormalizationHead; absent ones are null. Results are
// row-major, from the first row of the block on. `means` and `scales` have a number for each row: results of the
// forward pass, operands of the backward pass, where they are 0 for the rows that fill up the last unit.
struct ShortRowsBlock {
  const char *operands[normalization_operands];
  ShortSlices slices[normalization_operands];
  bool is_centered, is_streamed;
  const void *weight, *bias; // C
  double means[most_short_slices], scales[most_short_slices];
};

struct ShortNormalize : ShortRowsBlock {
  double eps;
  void *out, *sum; // T
};

// The gradients of these rows are added to `weight_sums` and `bias_sums`.
struct ShortGradient : ShortRowsBlock {
  void *grad_x; // T
  double *weight_sums, *bias_sums;
};

// Indexed by dtype, as above.
struct ShortNormalizations {
  void (*normalize[4])(ShortNormalize &);
  void (*gradient[4])(const ShortGradient &);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Normalizations, normalizations)
ORCHARD_ISA_TABLE(ShortNormalizations, short_normalizations)
