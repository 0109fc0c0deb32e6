// The functions and names that the dylib exports, and the calls through orchard_cpu.h.
#include "../functions.h"
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
  for (const ExportedFunction &function : functions())
    text += (&function == functions().data() ? "" : ", ") + ("{ \"name\": " + quoted(function.name)) +
            ", \"blockBytes\": " + std::to_string(function.block_bytes) +
            ", \"operands\": " + std::to_string(function.operands) + " }";
  text += "], \"names\": {";
  for (const ExportedNames *names = first_names(); names; names = names->next)
    text += (names == first_names() ? "" : ", ") + quoted(names->type) + ": " + quoted(names->names());
  return text + "} }";
}

std::string name_of(const ExportedFunction &function) { return std::string(function.name) + ": "; }

// The block, behind which the bytes of each operand lie.
Operands read_operands(const ExportedFunction &function, const char *block, int32_t block_bytes, void *const *addresses,
                       size_t room) {
  if (static_cast<size_t>(function.operands) > room)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, name_of(function) + "expected room for " + std::to_string(function.operands) +
                                           " operands, got " + std::to_string(room));
  const size_t expected = function.block_bytes + function.operands * sizeof(Whole);
  if (block_bytes < 0 || static_cast<size_t>(block_bytes) != expected)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, name_of(function) + "expected a block of " + std::to_string(expected) +
                                           " bytes, got " + std::to_string(block_bytes));
  if (!block || reinterpret_cast<uintptr_t>(block) % alignof(Whole) != 0)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, name_of(function) + "expected a block at a multiple of 8 bytes");
  return {addresses, reinterpret_cast<const Whole *>(block + function.block_bytes)};
}

template <size_t room>
int32_t run(int32_t function, const void *block, int32_t block_bytes, void *const (&addresses)[room]) noexcept {
  return guarded([&] {
    if (function < 0 || static_cast<size_t>(function) >= functions().size())
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no function with the ordinal " + std::to_string(function));
    const ExportedFunction &found = functions()[static_cast<size_t>(function)];
    found.call(block, read_operands(found, static_cast<const char *>(block), block_bytes, addresses, room));
  });
}

} // namespace

ExportedFunction::ExportedFunction(const char *name, Call call, size_t block_bytes, int operands)
    : name(name), call(call), block_bytes(block_bytes), operands(operands) {
  functions().push_back(*this);
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
