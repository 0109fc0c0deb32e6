// The function "rowPairs". Sums are in float64 and rounded once, so results do not depend on the number of threads.
#include "row_pairs.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <cmath>

using namespace orchard;

namespace {

using tuning::distance::pair_task_elements;

ORCHARD_EXPORT_NAMES(RowPair)

double value_of(RowPair function, const RowPairSums &sums, double target, double eps, double margin) {
  switch (function) {
  case RowPair::distance: return std::sqrt(sums.squares);
  case RowPair::similarity: {
    const double a = std::sqrt(sums.of_a), b = std::sqrt(sums.of_b); // not std::max, which would lose a NaN
    return sums.products / ((a < eps ? eps : a) * (b < eps ? eps : b));
  }
  case RowPair::embedding: {
    if (target != 1 && target != -1) return 0;
    const double cosine = sums.products / std::sqrt((sums.of_a + eps) * (sums.of_b + eps));
    if (target == 1) return 1 - cosine;
    return cosine - margin < 0 ? 0 : cosine - margin;
  }
  case RowPair::count: break;
  }
  return 0;
}

template <class C> void compute(const RowPairsBlock &block, const Operands &operands) {
  const DType dtype = block.dtype;
  Slices<4> slices = block.slices;
  const RowPair function = block.function;
  if (function != RowPair::embedding) slices.set_layout_of(2, 3);
  const char *a = operands.input(0, dtype, slices.offsets[0], slices.extent(0));
  const char *b = operands.input(1, dtype, slices.offsets[1], slices.extent(1));
  const C *targets =
      function == RowPair::embedding ? operands.inputs<C>(2, slices.offsets[2], slices.nest.extent(2)) : nullptr;
  C *out = operands.results<C>(3, slices.offsets[3], slices.nest.extent(3));
  const SumRowPair sum = row_pairs().sum[static_cast<int>(dtype)];
  const double eps = block.eps, margin = block.margin;
  const int64_t grain = std::max<int64_t>(1, pair_task_elements / std::max<int64_t>(1, slices.length));
  parallel_for(slices.count(), grain, [&](int64_t begin, int64_t end) {
    for_each_run(slices.nest, begin, end, [&](const int64_t (&offsets)[4], int64_t, int64_t length) {
      for (int64_t i = 0; i < length; i++) {
        int64_t at[4];
        for (int operand = 0; operand < 4; operand++)
          at[operand] = offsets[operand] + i * slices.nest.run_stride(operand);
        RowPairSums sums;
        sum(function, element(a, dtype, at[0]), element(b, dtype, at[1]), slices.length, slices.along[0],
            slices.along[1], eps, sums);
        out[at[3]] = C(value_of(function, sums, targets ? double(targets[at[2]]) : 0, eps, margin));
      }
    });
  });
}

void compute_row_pairs(const RowPairsBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("expected floats, got ") + dtype_names[static_cast<int>(dtype)]);
  if (dtype == DType::float64) compute<double>(block, operands);
  else compute<float>(block, operands);
}

ORCHARD_FUNCTION("rowPairs", compute_row_pairs, RowPairsBlock, 4)

} // namespace
