// Files of recorded calls, written by src/backend/cpu/record.ts: "ORCALLS1", followed by the records. A record has
// these fields, little-endian and without padding:
//
//   u32 bytes of the record   i32 status   u16 bytes of the name   u16 operands   u32 bytes of the block
//   the function's name
//   each operand: i16 place (-1: has contents, -2: omitted, else the earlier operand with the same memory)
//                 u16 offset of its address from a multiple of 64   u32 bytes of its contents   f64 its bytes
//   the block
//   the contents of the operands, in order
//
// Contents that are shorter than the operand are repeated. An operand with a size but without contents means that the
// call was too large to be recorded.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace replay {

constexpr std::string_view signature = "ORCALLS1";
constexpr int recorded = -1, left_out = -2;
constexpr size_t alignment = 64;

struct Operand {
  int place;
  size_t shift, bytes;
  std::string_view contents;
};

struct Record {
  std::string_view name, block;
  int32_t status;
  std::vector<Operand> operands;

  bool has_contents() const {
    for (const Operand &operand : operands)
      if (operand.place == recorded && operand.bytes > 0 && operand.contents.empty()) return false;
    return true;
  }
  bool is_shortened() const {
    for (const Operand &operand : operands)
      if (operand.place == recorded && operand.contents.size() < operand.bytes) return true;
    return false;
  }
};

// Reads numbers and strings from the front of a byte string.
class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::string_view text(size_t count) {
    if (count > bytes_.size()) throw std::runtime_error("a record ends before its end");
    std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  template <class T> T number() {
    T value;
    std::memcpy(&value, text(sizeof value).data(), sizeof value);
    return value;
  }
  bool is_at_end() const { return bytes_.empty(); }

private:
  std::string_view bytes_;
};

inline Record read_record(Reader &file) {
  uint32_t bytes = file.number<uint32_t>();
  if (bytes < sizeof bytes) throw std::runtime_error("a record is shorter than its head");
  Reader reader(file.text(bytes - sizeof bytes));
  Record record;
  record.status = reader.number<int32_t>();
  auto name_bytes = reader.number<uint16_t>(), operands = reader.number<uint16_t>();
  auto block_bytes = reader.number<uint32_t>();
  record.name = reader.text(name_bytes);
  std::vector<uint32_t> contents;
  for (int index = 0; index < operands; index++) {
    int place = reader.number<int16_t>();
    size_t shift = reader.number<uint16_t>();
    contents.push_back(reader.number<uint32_t>());
    record.operands.push_back({place, shift, static_cast<size_t>(reader.number<double>()), {}});
  }
  record.block = reader.text(block_bytes);
  for (int index = 0; index < operands; index++) record.operands[index].contents = reader.text(contents[index]);
  return record;
}

// Returns the records of a file, which must stay in memory.
inline std::vector<Record> read_records(std::string_view file) {
  Reader reader(file);
  if (reader.text(signature.size()) != signature) throw std::runtime_error("this is not a file of recorded calls");
  std::vector<Record> records;
  while (!reader.is_at_end()) records.push_back(read_record(reader));
  return records;
}

} // namespace replay
