// Functions of two vectors, for all pairs of slices along an axis: their distance, and functions of their cosine.
#pragma once

// For vectors a and b, with sums over their elements:
//   distance    sqrt(Σ (a − b + eps)²)
//   similarity  Σ a b / (max(sqrt(Σ a²), eps) · max(sqrt(Σ b²), eps))
//   embedding   with c = Σ a b / sqrt((Σ a² + eps) (Σ b² + eps)): 1 − c for the target 1, max(0, c − margin) for the
//               target −1, and 0 for others
#include "../../.build/generated/row_pair.h"

// The target and the result have the compute type. Only `embedding` reads the target.
// - dtype: of the vectors; a float
// - slices: a, b, target, result
#include "../../.build/generated/row_pairs_block.h"

#include "../slices.h"

namespace orchard {

struct RowPairSums {
  double squares; // of a − b + eps; of `distance` only
  double of_a, of_b, products;
};

// Sums over the elements of two vectors, with their strides.
using SumRowPair = void (*)(RowPair function, const void *a, const void *b, int64_t count, int64_t step_a,
                            int64_t step_b, double eps, RowPairSums &sums);

// Pairs of vectors side by side: element k of vector j is `k · pitch + j` elements on.
struct PairColumns {
  const void *a, *b;
  int64_t pitches[2], count, length;
};
using SumPairColumns = void (*)(RowPair function, const PairColumns &pairs, double eps, RowPairSums *sums);

struct RowPairs {
  SumRowPair sum[4]; // by dtype: float64, float32, float16, bfloat16
  SumPairColumns sum_columns[4];
};

} // namespace orchard

ORCHARD_ISA_TABLE(RowPairs, row_pairs)
