// The function "rowPairs". Sums are in float64 and rounded once, so results do not depend on the number of threads.
#include "row_pairs.h"

#include "../functions.h"
#include "../parallel.h"
#include "../reduction/short_rows.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>

using namespace orchard;

namespace {

using namespace tuning::distance;

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

// The sums of pairs whose vectors are side by side, or short enough to be copied so. Whether they are depends on the
// call only, since it affects the order of additions.
class SideBySide {
public:
  SideBySide(const Slices<4> &slices, DType dtype) : slices_(slices), dtype_(dtype) {
    const bool is_short = slices.length <= longest_pair;
    are_pairs_ = slices.length > 0 && slices.nest.rank > 0 && slices.nest.run_length() >= fewest_pairs;
    for (int operand = 0; operand < 2; operand++) {
      const int64_t across = slices.nest.rank > 0 ? slices.nest.run_stride(operand) : 0;
      is_adjacent_[operand] = across == 1;
      are_pairs_ = are_pairs_ && (across == 1 || (is_short && slices.along[operand] == 1 && across >= 0));
    }
  }

  bool are_pairs() const { return are_pairs_; }
  int64_t together() const { return std::clamp(pairs_elements / slices_.length / 8 * 8, int64_t(8), pairs_together); }

  void sum(RowPair function, const char *a, const char *b, int64_t count, double eps, RowPairSums *sums) const {
    alignas(64) char columns[2][pairs_elements * sizeof(double)];
    PairColumns pairs{a, b, {slices_.along[0], slices_.along[1]}, count, slices_.length};
    if (!is_adjacent_[0]) pairs.a = copied(0, a, count, columns[0], pairs.pitches[0]);
    if (!is_adjacent_[1]) pairs.b = copied(1, b, count, columns[1], pairs.pitches[1]);
    row_pairs().sum_columns[static_cast<int>(dtype_)](function, pairs, eps, sums);
  }

private:
  const Slices<4> &slices_;
  const DType dtype_;
  bool are_pairs_, is_adjacent_[2];

  const char *copied(int operand, const char *from, int64_t count, char *columns, int64_t &pitch) const {
    const int64_t size = dtype_sizes[static_cast<int>(dtype_)];
    const ShortRowsBlock rows{from, slices_.nest.run_stride(operand), count, slices_.length, 0};
    short_row_copies().to_columns[size == 2 ? 1 : size == 4 ? 2 : 3](rows, columns);
    pitch = count;
    return columns;
  }
};

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
  const SideBySide side_by_side(slices, dtype);
  const int64_t together = side_by_side.are_pairs() ? side_by_side.together() : 1;
  const int64_t grain = std::max<int64_t>(1, pair_task_elements / std::max<int64_t>(1, slices.length));
  parallel_for(slices.count(), grain, [&](int64_t begin, int64_t end) {
    RowPairSums sums[pairs_together];
    for_each_run(slices.nest, begin, end, [&](const int64_t (&offsets)[4], int64_t, int64_t length) {
      const auto at = [&](int operand, int64_t i) { return offsets[operand] + i * slices.nest.run_stride(operand); };
      for (int64_t first = 0; first < length; first += together) {
        const int64_t count = std::min(together, length - first);
        const char *x = element(a, dtype, at(0, first)), *y = element(b, dtype, at(1, first));
        if (side_by_side.are_pairs()) side_by_side.sum(function, x, y, count, eps, sums);
        else sum(function, x, y, slices.length, slices.along[0], slices.along[1], eps, sums[0]);
        for (int64_t i = 0; i < count; i++) {
          const double target = targets ? double(targets[at(2, first + i)]) : 0;
          out[at(3, first + i)] = C(value_of(function, sums[i], target, eps, margin));
        }
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
