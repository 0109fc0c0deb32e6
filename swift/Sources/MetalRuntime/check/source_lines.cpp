#include "check/source_lines.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

namespace mrt {
namespace {

struct Row {
  uint64_t address;
  uint32_t file, line, column;
  bool end; // first address after the sequence
};

struct LineTable {
  std::vector<std::string> files;
  std::vector<Row> rows; // in order of address
};

// Reads little-endian fields, never past the end of its bytes.
class Reader {
public:
  Reader(const char *begin, const char *end) : at_(begin), end_(end) {}
  bool done() const { return at_ >= end_; }
  const char *position() const { return at_; }
  void skip(uint64_t bytes) { at_ += std::min<uint64_t>(bytes, uint64_t(end_ - at_)); }
  Reader part(uint64_t bytes) {
    const char *begin = at_;
    skip(bytes);
    return Reader(begin, at_);
  }

  template <typename T> T fixed() {
    T value{};
    if (size_t(end_ - at_) >= sizeof value) memcpy(&value, at_, sizeof value);
    skip(sizeof value);
    return value;
  }

  uint64_t unsigned_number() { // LEB128
    uint64_t value = 0;
    for (unsigned shift = 0; !done(); shift += 7) {
      const uint8_t byte = fixed<uint8_t>();
      if (shift < 64) value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80)) break;
    }
    return value;
  }

  int64_t signed_number() {
    uint64_t value = 0;
    unsigned shift = 0;
    for (uint8_t byte = 0x80; byte & 0x80 && !done() && shift < 64;) {
      byte = fixed<uint8_t>();
      value |= uint64_t(byte & 0x7f) << shift;
      shift += 7;
      if (!(byte & 0x80) && byte & 0x40 && shift < 64) value |= ~uint64_t(0) << shift;
    }
    return int64_t(value);
  }

  std::string text() {
    const char *begin = at_;
    while (!done() && *at_) at_++;
    std::string text(begin, at_);
    skip(1);
    return text;
  }

private:
  const char *at_, *end_;
};

// Opcodes of a line-number program.
enum : uint8_t {
  op_copy = 1,
  op_advance_pc,
  op_advance_line,
  op_set_file,
  op_set_column,
  op_negate_statement,
  op_basic_block,
  op_const_add_pc,
  op_fixed_advance_pc,
  op_prologue_end,
  op_epilogue_begin,
  op_set_isa
};
enum : uint8_t { extended_end_sequence = 1, extended_set_address = 2 };

struct Header {
  uint8_t minimum_length = 1, line_range = 1, opcode_base = 1;
  int8_t line_base = 0;
  std::vector<uint8_t> operands; // the number of LEB128 operands of each standard opcode
};

// A state machine with these registers runs the program of one unit; each copy of the registers is a row.
class Machine {
public:
  Machine(const Header &header, uint32_t first_file, std::vector<Row> &rows)
      : header_(header), first_file_(first_file), rows_(rows) {}

  void run(Reader program) {
    while (!program.done()) {
      const uint8_t opcode = program.fixed<uint8_t>();
      if (opcode >= header_.opcode_base) special(opcode);
      else if (opcode == 0) extended(program);
      else standard(opcode, program);
    }
  }

private:
  struct Registers {
    uint64_t address = 0;
    uint32_t file = 1, line = 1, column = 0;
  };

  void emit(bool end = false) {
    rows_.push_back({registers_.address, first_file_ + registers_.file - 1, registers_.line, registers_.column, end});
  }
  void advance(uint64_t operations) { registers_.address += operations * header_.minimum_length; }

  void special(uint8_t opcode) {
    const uint8_t adjusted = uint8_t(opcode - header_.opcode_base);
    advance(adjusted / header_.line_range);
    registers_.line += uint32_t(header_.line_base + adjusted % header_.line_range);
    emit();
  }

  void extended(Reader &program) {
    Reader operands = program.part(program.unsigned_number());
    const uint8_t opcode = operands.fixed<uint8_t>();
    if (opcode == extended_set_address) registers_.address = operands.fixed<uint64_t>();
    if (opcode != extended_end_sequence) return;
    emit(true);
    registers_ = {};
  }

  void standard(uint8_t opcode, Reader &program) {
    switch (opcode) {
    case op_copy: return emit();
    case op_advance_pc: return advance(program.unsigned_number());
    case op_advance_line: registers_.line += uint32_t(program.signed_number()); return;
    case op_set_file: registers_.file = uint32_t(program.unsigned_number()); return;
    case op_set_column: registers_.column = uint32_t(program.unsigned_number()); return;
    case op_const_add_pc: return advance((255u - header_.opcode_base) / header_.line_range);
    case op_fixed_advance_pc: registers_.address += program.fixed<uint16_t>(); return;
    default:
      for (uint8_t i = 0; i < header_.operands[opcode - 1u]; i++) program.unsigned_number();
    }
  }

  const Header &header_;
  uint32_t first_file_;
  std::vector<Row> &rows_;
  Registers registers_;
};

void decode_unit(Reader unit, LineTable &table) {
  if (unit.fixed<uint16_t>() > 4) return;
  Reader fields = unit.part(unit.fixed<uint32_t>());
  Header header;
  header.minimum_length = fields.fixed<uint8_t>();
  fields.skip(2); // operations per instruction (1 on x86-64 and arm64), and whether rows start as statements
  header.line_base = fields.fixed<int8_t>();
  header.line_range = std::max<uint8_t>(1, fields.fixed<uint8_t>());
  header.opcode_base = std::max<uint8_t>(1, fields.fixed<uint8_t>());
  for (unsigned i = 1; i < header.opcode_base; i++) header.operands.push_back(fields.fixed<uint8_t>());
  while (!fields.text().empty()) {
  } // folders are skipped: a kernel's file is identified by the name in its text
  const uint32_t first_file = uint32_t(table.files.size());
  for (std::string name; !(name = fields.text()).empty();) {
    table.files.push_back(name);
    for (int i = 0; i < 3; i++) fields.unsigned_number(); // folder, time, length
  }
  Machine(header, first_file, table.rows).run(unit);
}

LineTable decode(Reader section) {
  LineTable table;
  while (!section.done()) decode_unit(section.part(section.fixed<uint32_t>()), table);
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const Row &a, const Row &b) {
    return a.address != b.address ? a.address < b.address : a.end > b.end;
  });
  return table;
}

// Returns the bytes of a section of an ELF object, empty if there is none.
Reader find_section(const std::string &object, const char *name) {
  const Reader none(nullptr, nullptr);
  Elf64_Ehdr header;
  if (object.size() < sizeof header) return none;
  memcpy(&header, object.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (header.e_shstrndx >= sections.size() || header.e_shoff > object.size() ||
      object.size() - header.e_shoff < sections.size() * sizeof(Elf64_Shdr))
    return none;
  memcpy(sections.data(), object.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const uint64_t names = sections[header.e_shstrndx].sh_offset;
  for (const Elf64_Shdr &section : sections) {
    if (names + section.sh_name >= object.size() || section.sh_offset > object.size()) continue;
    if (strcmp(object.c_str() + names + section.sh_name, name) != 0) continue;
    const char *begin = object.data() + section.sh_offset;
    return Reader(begin, begin + std::min<uint64_t>(section.sh_size, object.size() - section.sh_offset));
  }
  return none;
}

const LineTable &line_table(const std::string &path) {
  static std::map<std::string, LineTable> tables;
  const auto known = tables.find(path);
  if (known != tables.end()) return known->second;
  std::ifstream file(path, std::ios::binary);
  const std::string object{std::istreambuf_iterator<char>(file), {}};
  return tables.emplace(path, decode(find_section(object, ".debug_line"))).first->second;
}

} // namespace

SourcePosition source_position_in(const std::string &object, uint64_t address) {
  const LineTable &table = line_table(object);
  auto after = std::upper_bound(table.rows.begin(), table.rows.end(), address,
                                [](uint64_t value, const Row &row) { return value < row.address; });
  // Line 0 marks instructions without a line; the nearest earlier row has one.
  while (after != table.rows.begin()) {
    const Row &row = *--after;
    if (row.end) break;
    if (row.line && row.file < table.files.size()) return {table.files[row.file], row.line, row.column};
  }
  return {};
}

SourcePosition source_position(const void *program_counter) {
  Dl_info info;
  if (!dladdr(program_counter, &info) || !info.dli_fname) return {};
  const uint64_t address = uint64_t(program_counter) - uint64_t(info.dli_fbase);
  return source_position_in(info.dli_fname, address - 1); // the call is before its return address
}

uint64_t module_base(const void *program_counter) {
  Dl_info info;
  return dladdr(program_counter, &info) ? uint64_t(info.dli_fbase) : 0;
}

} // namespace mrt
