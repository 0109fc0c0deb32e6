#include "rows.h"
#include "../streamed.h"

namespace orchard {
namespace {

DType checked(DType dtype) {
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected a float for a normalization, got ") + dtype_names[static_cast<int>(dtype)]);
  return dtype;
}

// Gathers rows element by element across rows: if the elements of a row are not adjacent, those of adjacent rows often
// are.
template <class T>
void gather_rows(const char *first, const int64_t *offsets, int64_t stride, int64_t count, int64_t length, char *to) {
  const T *from = reinterpret_cast<const T *>(first);
  T *rows = reinterpret_cast<T *>(to);
  for (int64_t k = 0; k < length; k++)
    for (int64_t row = 0; row < count; row++) rows[row * length + k] = from[offsets[row] + k * stride];
}

} // namespace

NormalizationCall::NormalizationCall(const NormalizationHead &block, const Operands &buffers,
                                     const int (&row_operands)[operands], int needed)
    : dtype(checked(block.dtype)), vector_dtype(checked(block.vector_dtype)), is_centered(block.is_centered),
      eps(block.eps), slices(block.rows), length(slices.length), rows(slices.count()) {
  if (length == 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected rows of at least 1 element, got 0");
  for (int operand = 0; operand < operands; operand++) {
    first[operand] = nullptr;
    const bool is_present = row_operands[operand] >= 0 && block.is_present[operand];
    if (is_present)
      first[operand] = buffers.input(row_operands[operand], dtype, slices.offsets[operand], slices.extent(operand));
    else if (operand < needed)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected operand " + std::to_string(row_operands[operand]) + ", got none");
    else slices.set_layout_of(operand, 0);
  }
}

RowReader::RowReader(const NormalizationCall &call, char *memory) : call_(call) {
  for (int operand = 0; operand < NormalizationCall::operands; operand++) {
    if (!call.first[operand] || call.is_dense(operand)) continue;
    gathered_[operand] = memory;
    memory += rows_together * call.length * call.size();
  }
}

void RowReader::read(int64_t first, int64_t count) {
  int64_t offsets[NormalizationCall::operands][rows_together];
  for (int64_t index = 0; index < count; index++) {
    int64_t row_offsets[NormalizationCall::operands];
    call_.slices.nest.find_offsets(first + index, row_offsets);
    for (int operand = 0; operand < NormalizationCall::operands; operand++)
      offsets[operand][index] = row_offsets[operand];
  }
  for (int operand = 0; operand < NormalizationCall::operands; operand++) {
    const char *base = call_.first[operand];
    if (!base) continue;
    if (gathered_[operand]) gather(operand, offsets[operand], count);
    else
      for (int64_t index = 0; index < count; index++)
        rows_[operand][index] = base + offsets[operand][index] * call_.size();
  }
}

void RowReader::gather(int operand, const int64_t (&offsets)[rows_together], int64_t count) {
  auto use = [&](auto element) {
    gather_rows<decltype(element)>(call_.first[operand], offsets, call_.slices.along[operand], count, call_.length,
                                   gathered_[operand]);
  };
  if (call_.size() == 2) use(uint16_t{});
  else if (call_.size() == 4) use(uint32_t{});
  else use(uint64_t{});
  for (int64_t index = 0; index < count; index++)
    rows_[operand][index] = gathered_[operand] + index * call_.length * call_.size();
}

RowWriter::RowWriter(const NormalizationCall &call, void *result, char *buffer)
    : result_(static_cast<char *>(result)), buffer_(buffer), bytes_(call.length * call.size()) {
  bool is_aligned = reinterpret_cast<uintptr_t>(result) % stream_line == 0 && bytes_ % stream_line == 0;
  is_streamed_ = result && streams().copy && is_aligned && call.rows * bytes_ >= tuning::streams::streamed_bytes;
}

} // namespace orchard
