#include "rows.h"

namespace orchard {
namespace {

// Bytes of a result from which on it is streamed.
constexpr int64_t streamed = 16 << 20;

DType read_float(BlockReader &reader) {
  DType dtype = reader.dtype();
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("normalization is for floats, not ") + dtype_names[static_cast<int>(dtype)]);
  return dtype;
}

// Element after element of all rows: adjacent rows' lie side by side where a row's don't.
template <class T> void gather_rows(const char *first, const int64_t *places, int64_t along, int64_t count, int64_t length, char *to) {
  const T *from = reinterpret_cast<const T *>(first);
  T *rows = reinterpret_cast<T *>(to);
  for (int64_t k = 0; k < length; k++)
    for (int64_t row = 0; row < count; row++) rows[row * length + k] = from[places[row] + k * along];
}

} // namespace

NormalizationCall read_normalization(BlockReader &reader, const void *const (&bases)[NormalizationCall::operands]) {
  NormalizationCall call;
  call.dtype = read_float(reader);
  call.vector_dtype = read_float(reader);
  call.is_centred = reader.whole() != 0;
  call.eps = reader.real();
  call.length = reader.whole();
  call.nest = read_nest<NormalizationCall::operands>(reader);
  call.rows = call.nest.count();
  for (int operand = 0; operand < NormalizationCall::operands; operand++) {
    bool is_there = reader.whole() != 0;
    int64_t offset = reader.whole();
    call.first[operand] = is_there ? element(bases[operand], call.dtype, offset) : nullptr;
    call.along[operand] = reader.whole();
  }
  return call;
}

RowReader::RowReader(const NormalizationCall &call, char *memory) : call_(call) {
  for (int operand = 0; operand < NormalizationCall::operands; operand++) {
    if (!call.first[operand] || call.is_dense(operand)) continue;
    gathered_[operand] = memory;
    memory += rows_together * call.length * call.size();
  }
}

void RowReader::read(int64_t first, int64_t count) {
  int64_t places[NormalizationCall::operands][rows_together];
  for (int64_t index = 0; index < count; index++) {
    int64_t own[NormalizationCall::operands];
    find_places(call_.nest, first + index, own);
    for (int operand = 0; operand < NormalizationCall::operands; operand++) places[operand][index] = own[operand];
  }
  for (int operand = 0; operand < NormalizationCall::operands; operand++) {
    if (!call_.first[operand]) continue;
    if (gathered_[operand]) gather(operand, places[operand], count);
    else
      for (int64_t index = 0; index < count; index++) rows_[operand][index] = call_.first[operand] + places[operand][index] * call_.size();
  }
}

void RowReader::gather(int operand, const int64_t (&places)[rows_together], int64_t count) {
  auto use = [&](auto element) {
    gather_rows<decltype(element)>(call_.first[operand], places, call_.along[operand], count, call_.length, gathered_[operand]);
  };
  if (call_.size() == 2) use(uint16_t{});
  else if (call_.size() == 4) use(uint32_t{});
  else use(uint64_t{});
  for (int64_t index = 0; index < count; index++) rows_[operand][index] = gathered_[operand] + index * call_.length * call_.size();
}

RowWriter::RowWriter(const NormalizationCall &call, void *result, char *buffer)
    : result_(static_cast<char *>(result)), buffer_(buffer), bytes_(call.length * call.size()) {
  bool is_aligned = reinterpret_cast<uintptr_t>(result) % stream_line == 0 && bytes_ % stream_line == 0;
  is_streamed_ = result && streams().copy && is_aligned && call.rows * bytes_ >= streamed;
}

} // namespace orchard
