// The functions and enumerations that the dylib exports, and their calls through orchard_cpu.h.
#include "table.h"
#include "text.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace orchard {
namespace {

std::vector<ExportedFunction> &functions() {
  static std::vector<ExportedFunction> all;
  return all;
}

// Indexed by ordinal; null for a function that doesn't take rows.
std::vector<ExportedRows::Call> &row_calls() {
  static std::vector<ExportedRows::Call> all;
  return all;
}

const ExportedNames *&first_names() {
  static const ExportedNames *first = nullptr;
  return first;
}

std::string dtype_list() {
  std::string list;
  for (const char *name : dtype_names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}
const ExportedNames dtypes{"DType", dtype_list};

std::string tables() {
  std::string text = "{ \"functions\": [";
  for (size_t ordinal = 0; ordinal < functions().size(); ordinal++) {
    const ExportedFunction &function = functions()[ordinal];
    text += (ordinal == 0 ? "" : ", ") + ("{ \"name\": " + quoted(function.name)) +
            ", \"blockBytes\": " + std::to_string(function.block_bytes) +
            ", \"operands\": " + std::to_string(function.operands) +
            ", \"takesRows\": " + (rows_of(static_cast<int32_t>(ordinal)) ? "true" : "false") + " }";
  }
  text += "], \"names\": {";
  for (const ExportedNames *names = first_names(); names; names = names->next)
    text += (names == first_names() ? "" : ", ") + quoted(names->type) + ": " + quoted(names->names());
  return text + "} }";
}

std::string name_of(const ExportedFunction &function) { return std::string(function.name) + ": "; }

// Checks that there are `count` blocks, each followed by the sizes of its operands.
void check_blocks(const ExportedFunction &function, const void *blocks, int32_t bytes, int64_t count) {
  const int64_t expected = count * int64_t(function.block_bytes + function.operands * sizeof(Whole));
  if (bytes != expected)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, name_of(function) + "expected a block of " + std::to_string(expected) +
                                           " bytes, got " + std::to_string(bytes));
  if (!blocks || reinterpret_cast<uintptr_t>(blocks) % alignof(Whole) != 0)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, name_of(function) + "expected a block at a multiple of 8 bytes");
}

template <size_t room>
int32_t run(int32_t function, const void *block, int32_t block_bytes, void *const (&addresses)[room]) noexcept {
  return guarded([&] {
    const ExportedFunction &found = function_of(function);
    if (static_cast<size_t>(found.operands) > room)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, name_of(found) + "expected room for " + std::to_string(found.operands) +
                                             " operands, got " + std::to_string(room));
    check_blocks(found, block, block_bytes, 1);
    const auto *bytes = reinterpret_cast<const Whole *>(static_cast<const char *>(block) + found.block_bytes);
    found.call(block, Operands(addresses, bytes));
  });
}

// Converts addresses stored as doubles, which are integers below 2^53.
std::vector<void *> addresses_of(const double *numbers, int64_t count) {
  std::vector<void *> addresses(static_cast<size_t>(count));
  for (int64_t at = 0; at < count; at++)
    addresses[static_cast<size_t>(at)] = reinterpret_cast<void *>(static_cast<uintptr_t>(int64_t(Whole{numbers[at]})));
  return addresses;
}

} // namespace

const ExportedFunction &function_of(int32_t ordinal) {
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= functions().size())
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no function with the ordinal " + std::to_string(ordinal));
  return functions()[static_cast<size_t>(ordinal)];
}

ExportedRows::Call rows_of(int32_t ordinal) {
  const auto at = static_cast<size_t>(ordinal);
  return at < row_calls().size() ? row_calls()[at] : nullptr;
}

ExportedFunction::ExportedFunction(const char *name, Call call, size_t block_bytes, int operands)
    : name(name), call(call), block_bytes(block_bytes), operands(operands) {
  functions().push_back(*this);
}

ExportedRows::ExportedRows(Call call) {
  row_calls().resize(functions().size());
  row_calls().back() = call;
}

ExportedNames::ExportedNames(const char *type, std::string (*names)()) : type(type), names(names), next(first_names()) {
  first_names() = this;
}

} // namespace orchard

using namespace orchard;

int32_t orchard_cpu_tables(char *buffer, int32_t capacity) {
  int32_t length = 0;
  guarded([&] { length = copy_text(tables(), buffer, capacity); });
  return length;
}

int32_t orchard_cpu_run3(int32_t function, const void *block, int32_t block_bytes, void *o0, void *o1, void *o2) {
  void *const operands[] = {o0, o1, o2};
  return run(function, block, block_bytes, operands);
}

int32_t orchard_cpu_run6(int32_t function, const void *block, int32_t block_bytes, void *o0, void *o1, void *o2,
                         void *o3, void *o4, void *o5) {
  void *const operands[] = {o0, o1, o2, o3, o4, o5};
  return run(function, block, block_bytes, operands);
}

int32_t orchard_cpu_run16(int32_t function, const void *block, int32_t block_bytes, void *o0, void *o1, void *o2,
                          void *o3, void *o4, void *o5, void *o6, void *o7, void *o8, void *o9, void *o10, void *o11,
                          void *o12, void *o13, void *o14, void *o15) {
  void *const operands[] = {o0, o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, o13, o14, o15};
  return run(function, block, block_bytes, operands);
}

int32_t orchard_cpu_run29(int32_t function, const void *block, int32_t block_bytes, void *o0, void *o1, void *o2,
                          void *o3, void *o4, void *o5, void *o6, void *o7, void *o8, void *o9, void *o10, void *o11,
                          void *o12, void *o13, void *o14, void *o15, void *o16, void *o17, void *o18, void *o19,
                          void *o20, void *o21, void *o22, void *o23, void *o24, void *o25, void *o26, void *o27,
                          void *o28) {
  void *const operands[] = {o0,  o1,  o2,  o3,  o4,  o5,  o6,  o7,  o8,  o9,  o10, o11, o12, o13, o14,
                            o15, o16, o17, o18, o19, o20, o21, o22, o23, o24, o25, o26, o27, o28};
  return run(function, block, block_bytes, operands);
}

int32_t orchard_cpu_run_rows(int32_t function, const void *blocks, int32_t block_bytes, int32_t rows,
                             const double *addresses) {
  return guarded([&] {
    const ExportedFunction &found = function_of(function);
    const ExportedRows::Call call = rows_of(function);
    if (!call || rows < 1)
      fail(ORCHARD_CPU_INVALID_ARGUMENT,
           name_of(found) + "expected " + (call ? "at least 1" : "no") + " rows, got " + std::to_string(rows));
    check_blocks(found, blocks, block_bytes, rows);
    if (!addresses) fail(ORCHARD_CPU_INVALID_ARGUMENT, name_of(found) + "expected addresses, got none");
    const std::vector<void *> operands = addresses_of(addresses, int64_t(rows) * found.operands);
    call({static_cast<const char *>(blocks), operands.data(), rows});
  });
}
