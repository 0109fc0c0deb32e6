// Rows of up to three operands with the same shape, read as dense rows.
#pragma once

#include "../elementwise/stream.h"
#include "../functions.h"
#include "normalization.h"
#include "tuning.h"

#include <algorithm>

namespace orchard {

using tuning::normalization::rows_together;

// The parameters common to both passes.
struct NormalizationCall {
  static constexpr int operands = normalization_operands;

  // `row_operands` are the indices of the operands with rows, or −1. The first `needed` of them must be present.
  NormalizationCall(const NormalizationHead &block, const Operands &buffers, const int (&row_operands)[operands],
                    int needed);

  DType dtype, vector_dtype; // of rows; of weight and bias
  bool is_centered;
  double eps;
  Slices<operands> slices; // the rows
  int64_t length, rows;
  const char *first[operands]; // the first row; null if the operand is absent

  // The extent of results, whose rows are contiguous, and the dtype of statistics, which have one number per row.
  Extent extent() const { return Extent(length).along(rows, length); }
  DType statistic_dtype() const { return dtype == DType::float64 ? DType::float64 : DType::float32; }

  int64_t size() const { return dtype_sizes[static_cast<int>(dtype)]; }
  int64_t compute_size() const { return dtype == DType::float64 ? 8 : 4; }
  bool is_dense(int operand) const { return slices.along[operand] == 1 || length == 1; }
  const NormalizationKernel &kernel() const { return normalizations().kernels[static_cast<int>(dtype)]; }
  const NormalizationKernel &vector_kernel() const { return normalizations().kernels[static_cast<int>(vector_dtype)]; }
};

// Returns the size of RowReader's memory in bytes.
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
  // Returns one of the rows read last; null if the operand is absent.
  const char *row(int operand, int64_t index) const { return rows_[operand][index]; }

private:
  void gather(int operand, const int64_t (&offsets)[rows_together], int64_t count);

  const NormalizationCall &call_;
  char *gathered_[NormalizationCall::operands] = {};
  const char *rows_[NormalizationCall::operands][rows_together] = {};
};

// Writes the rows of a result: in place, or with nontemporal stores if the result is larger than the caches.
class RowWriter {
public:
  // `buffer` has room for one row.
  RowWriter(const NormalizationCall &call, void *result, char *buffer);
  // Returns the address where a row is to be written; null if the result is absent.
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
