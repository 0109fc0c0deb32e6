// The functions that TypeScript calls through `orchard_cpu_run…`, by name.
//
//   static void scan(const ScanBlock &block, Operands operands) { … }
//   ORCHARD_FUNCTION("scan", scan, ScanBlock, 3)
//
// A function fails by `fail`. It stands in a .cpp, never in an .isa.cpp, whose code must not run while the dylib is
// loaded.
#pragma once

#include "bounds.h"

#include <cstddef>

namespace orchard {

// The operands of a call: the address of each storage and how many bytes it has. What an operand is asked for are the
// elements around an offset that the call visits; it fails where one of them lies outside. Nothing else gives an
// address.
class Operands {
public:
  // `bytes` of an operand that the call leaves out are negative.
  Operands(void *const *addresses, const Whole *bytes) : addresses_(addresses), bytes_(bytes) {}

  // Where the element at `offset` lies, elements being of so many bytes (or of that dtype or type).
  const char *input(int index, int64_t size, int64_t offset, const Extent &extent) const {
    return find(index, size, offset, extent, false);
  }
  // The same of a result, in which no two of the visited elements are the same.
  char *result(int index, int64_t size, int64_t offset, const Extent &extent) const {
    return find(index, size, offset, extent, true);
  }

  const char *input(int index, DType dtype, int64_t offset, const Extent &extent) const {
    return input(index, dtype_sizes[static_cast<int>(dtype)], offset, extent);
  }
  char *result(int index, DType dtype, int64_t offset, const Extent &extent) const {
    return result(index, dtype_sizes[static_cast<int>(dtype)], offset, extent);
  }
  template <class T> const T *inputs(int index, int64_t offset, const Extent &extent) const {
    return reinterpret_cast<const T *>(input(index, int64_t(sizeof(T)), offset, extent));
  }
  template <class T> T *results(int index, int64_t offset, const Extent &extent) const {
    return reinterpret_cast<T *>(result(index, int64_t(sizeof(T)), offset, extent));
  }

private:
  char *find(int index, int64_t size, int64_t offset, const Extent &extent, bool is_result) const {
    const int64_t bytes = bytes_[index];
    char *address = static_cast<char *>(addresses_[index]);
    if (extent.is_possible() && extent.is_empty()) return no_elements();
    int64_t first, end, distinct = 0;
    bool is_refused = !extent.is_possible();
    is_refused |= __builtin_add_overflow(offset, extent.low(), &first);
    is_refused |= __builtin_add_overflow(offset, extent.high(), &end);
    is_refused |= __builtin_mul_overflow(end, size, &end);
    if (is_result) is_refused |= __builtin_mul_overflow(extent.count(), size, &distinct);
    is_refused |= first < 0 || end > bytes - size || distinct > bytes;
    is_refused |= !address || reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(size) != 0;
    if (__builtin_expect(is_refused, false)) refuse_operand(index, bytes, address, size, offset, extent);
    return address + offset * size;
  }

  void *const *addresses_;
  const Whole *bytes_;
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
