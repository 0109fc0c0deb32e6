// The functions that TypeScript calls through `orchard_cpu_run…`, by name.
//
//   static void scan(const ScanBlock &block, Operands operands) { … }
//   ORCHARD_FUNCTION("scan", scan, ScanBlock, 3)
//
// A function fails by `fail`. It stands in a .cpp, never in an .isa.cpp, whose code must not run while the dylib is
// loaded.
#pragma once

#include "block.h"

#include <array>
#include <cstddef>
#include <utility>

namespace orchard {

// Base addresses of storages. An operand that a call leaves out may be any address.
class Operands {
public:
  explicit Operands(void *const *addresses) : addresses_(addresses) {}

  void *operator[](int index) const { return addresses_[index]; }

  // The first `count`, for structured bindings: auto [x, out] = operands.first<2>();
  template <size_t count> std::array<void *, count> first() const { return take(std::make_index_sequence<count>{}); }

private:
  template <size_t... index> std::array<void *, sizeof...(index)> take(std::index_sequence<index...>) const {
    return {addresses_[index]...};
  }
  void *const *addresses_;
};

struct ExportedFunction {
  using Call = void (*)(const void *block, Operands operands);
  ExportedFunction(const char *name, Call call, size_t block_bytes, int operands);

  const char *name;
  Call call;
  size_t block_bytes;
  int operands;
};

} // namespace orchard

#define ORCHARD_FUNCTION(name, function, Block, operand_count)                                                         \
  static const ::orchard::ExportedFunction function##_export{                                                          \
      name,                                                                                                            \
      [](const void *block, ::orchard::Operands operands) { function(*static_cast<const Block *>(block), operands); }, \
      sizeof(Block), operand_count};
