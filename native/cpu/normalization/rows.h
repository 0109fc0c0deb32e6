// Rows of up to three operands of one shape, read as dense rows.
#pragma once

#include "../elementwise/stream.h"
#include "../functions.h"
#include "normalization.h"

#include <algorithm>

namespace orchard {

// The part that both passes share.
struct NormalizationCall {
  static constexpr int operands = RowsBlock::operands;

  // `row_operands`: the call's operands that hold the rows, −1 for none. The first `needed` must be present.
  NormalizationCall(const RowsBlock &block, const Operands &buffers, const int (&row_operands)[operands], int needed);

  DType dtype, vector_dtype; // of rows; of weight and bias
  bool is_centred;
  double eps;
  Slices<operands> slices; // the rows
  int64_t length, rows;
  const char *first[operands]; // the first row; null if the operand is absent

  // The extent of results, whose rows are adjacent, and the dtype of statistics, which have one number per row.
  Extent extent() const { return Extent(length).along(rows, length); }
  DType statistic_dtype() const { return dtype == DType::float64 ? DType::float64 : DType::float32; }

  int64_t size() const { return dtype_sizes[static_cast<int>(dtype)]; }
  int64_t compute_size() const { return dtype == DType::float64 ? 8 : 4; }
  bool is_dense(int operand) const { return slices.along[operand] == 1 || length == 1; }
  const NormalizationKernel &kernel() const { return normalizations().kernels[static_cast<int>(dtype)]; }
  const NormalizationKernel &vector_kernel() const { return normalizations().kernels[static_cast<int>(vector_dtype)]; }
};

// Rows that are gathered at once: if the elements of a row are not adjacent, those of adjacent rows often are.
constexpr int64_t rows_together = 16;

// Returns the bytes that RowReader needs.
inline int64_t reader_bytes(const NormalizationCall &call) {
  int64_t gathered = 0;
  for (int operand = 0; operand < NormalizationCall::operands; operand++)
    gathered += call.first[operand] && !call.is_dense(operand);
  return gathered * rows_together * call.length * call.size();
}

// Reads up to rows_together adjacent rows at a time.
class RowReader {
public:
  RowReader(const NormalizationCall &call, char *memory);
  void read(int64_t first, int64_t count);
  // Returns a row of the last ones read; null if the operand is absent.
  const char *row(int operand, int64_t index) const { return rows_[operand][index]; }

private:
  void gather(int operand, const int64_t (&offsets)[rows_together], int64_t count);

  const NormalizationCall &call_;
  char *gathered_[NormalizationCall::operands] = {};
  const char *rows_[NormalizationCall::operands][rows_together] = {};
};

// Writes rows of a result: in place, or past the caches if the result is too large for them.
class RowWriter {
public:
  // `buffer`: memory of a row.
  RowWriter(const NormalizationCall &call, void *result, char *buffer);
  // Returns where to write a row; null if there is no such result.
  char *row(int64_t number) const { return !result_ ? nullptr : is_streamed_ ? buffer_ : result_ + number * bytes_; }
  void finish_row(int64_t number) const {
    if (is_streamed_) streams().copy(buffer_, result_ + number * bytes_, bytes_);
  }
  void finish() const {
    if (is_streamed_) streams().finish();
  }

private:
  char *result_, *buffer_;
  int64_t bytes_;
  bool is_streamed_;
};

} // namespace orchard
