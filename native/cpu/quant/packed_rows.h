// Rows of x in the forms in which products with quantized weights read them: in float32, or quantized to 8 bits.
#pragma once

#include "../matmul/product.h"
#include "../memory.h"
#include "../parallel.h"
#include "eight.h"
#include "many.h"
#include "tuning.h"

#include <algorithm>

namespace orchard {

// Returns the number of rows per task, for tasks that make one pass over the rows.
inline int64_t value_rows(int64_t columns) { return std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(columns, 1)); }

inline char *address(const float *values) { return reinterpret_cast<char *>(const_cast<float *>(values)); }

// Rows of x in float32. They are dense if there are few of them, or if they are rounded.
struct WideRows {
  const float *values;
  int64_t row_stride, column_stride;

  const float *row(int64_t at) const { return values + at * row_stride; }
  Matrix from_column(int64_t first) const {
    return {address(values + first * column_stride), row_stride, column_stride};
  }
};

// Few rows of x, quantized to 8 bits. In a group of eight rows, each vector lane sums for one row. For each remaining
// row, the lanes of a vector have sums of this row only.
class PackedRows {
public:
  PackedRows(const WideRows &x, int64_t count, int64_t columns)
      : count_(count), pairs_(pairs_of_parts(columns)), levels_(scratch_product({count, pairs_, 64})),
        numbers_(scratch_product({count, pairs_, 6})), groups_(groups_of_lanes(count)), parts_(columns / 32),
        lane_levels_(scratch_product({groups_, parts_, 32 * lanes_of_rows})),
        lane_sums_(scratch_product({groups_, parts_, 2 * lanes_of_rows})),
        lane_numbers_(scratch_product({groups_, parts_, 3 * lanes_of_rows})) {
    const int64_t parts = count * pairs_ * 2;
    float *scales = numbers_.data();
    rows_ = {pairs_, levels_.data(), scales, scales + parts, scales + 2 * parts};
    parallel_for(count, value_rows(columns), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at++) fast_kernels().pack(x.row(at), columns, rows_.row(at));
    });
    lanes_ = {parts_, lane_levels_.data(), lane_numbers_.data(), lane_sums_.data(),
              lane_numbers_.data() + groups_ * parts_ * lanes_of_rows};
    for (int64_t group = 0; group < groups_; group++) {
      const int64_t at = group * lanes_of_rows;
      eight_rows_kernels().arrange(rows_.row(at), std::min(lanes_of_rows, count - at), lanes(group));
    }
  }

  // Like `FastKernels::multiply`, with all rows of x.
  void multiply(const Weights &weights, int64_t begin, int64_t end, float *out) const {
    for (int64_t group = 0; group < groups_; group++) {
      const int64_t at = group * lanes_of_rows, rows = std::min(lanes_of_rows, count_ - at);
      eight_rows_kernels().multiply(weights, lanes(group), rows, begin, end, out + at * weights.rows);
    }
    const int64_t at = groups_ * lanes_of_rows;
    if (at < count_) fast_kernels().multiply(weights, rows_.row(at), count_ - at, begin, end, out + at * weights.rows);
  }

private:
  static int64_t groups_of_lanes(int64_t count) {
    if (!eight_rows_kernels().multiply) return 0;
    return count / lanes_of_rows + (count % lanes_of_rows >= tuning::quant::least_lanes);
  }
  ByteLanes lanes(int64_t group) const {
    const int64_t first = group * parts_ * lanes_of_rows;
    return {parts_, lanes_.levels + first * 32, lanes_.scales + first, lanes_.sums + first * 2,
            lanes_.scaled_sums + first * 2};
  }

  int64_t count_, pairs_;
  Scratch<int8_t> levels_;
  Scratch<float> numbers_;
  ByteRows rows_;
  int64_t groups_, parts_;
  Scratch<int8_t> lane_levels_;
  Scratch<int32_t> lane_sums_;
  Scratch<float> lane_numbers_;
  ByteLanes lanes_;
};

// Many rows of x, quantized to 8 bits.
class PackedBlocks {
public:
  PackedBlocks(const WideRows &x, int64_t count, int64_t columns)
      : parts_(columns / 32), rows_((count + rows_of_block - 1) / rows_of_block * rows_of_block),
        levels_(scratch_product({rows_, parts_, 32})), numbers_(scratch_product({rows_, parts_, 3})),
        sums_(scratch_product({rows_, parts_, 2})) {
    float *scales = numbers_.data();
    blocks_ = {parts_, levels_.data(), scales, sums_.data(), scales + rows_ * parts_};
    parallel_for(rows_ / rows_of_block, 1, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at++) {
        const int64_t first = at * rows_of_block, rows = std::min(rows_of_block, count - first);
        many_rows_kernels().pack(x.row(first), rows, columns, blocks_.block(at));
      }
    });
  }
  const ByteBlocks &blocks() const { return blocks_; }

private:
  int64_t parts_, rows_;
  Scratch<int8_t> levels_;
  Scratch<float> numbers_;
  Scratch<int32_t> sums_;
  ByteBlocks blocks_;
};

} // namespace orchard
