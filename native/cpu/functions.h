// Functions that TypeScript calls by name through `orchard_cpu_run…`.
//
//   static void scan(const ScanBlock &block, Operands operands) { … }
//   ORCHARD_FUNCTION("scan", scan, ScanBlock, 3)
//
// A function that does many computations in one call takes rows, each with a block and its operands
// (orchard_cpu_run_rows):
//
//   static void update(const Rows<UpdateBlock> &rows) { … }
//   ORCHARD_ROWS_FUNCTION("update", update, UpdateBlock, 5)
//
// A function reports errors with `fail`. Define it in a .cpp file, never in an .isa.cpp file: it is registered while
// the dylib is being loaded, when no code of an .isa.cpp file may run, since the processor may lack the instruction
// set.
#pragma once

#include "bounds.h"

#include <cstddef>

namespace orchard {

// The operands of a call: the address and size in bytes of each storage. A function requests an address together with
// the extent of elements that it visits around an offset; the request fails if one of these elements is out of bounds.
class Operands {
public:
  // `bytes` is negative for an omitted operand.
  Operands(void *const *addresses, const Whole *bytes) : addresses_(addresses), bytes_(bytes) {}

  // Returns the address of the element at `offset`, for elements of `size` bytes (or of that dtype or type).
  const char *input(int index, int64_t size, int64_t offset, const Extent &extent) const {
    return find(index, size, offset, extent, false);
  }
  // Returns the address in a result. The visited elements must be distinct.
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

  // Returns all addresses, unchecked, to be passed on.
  void *const *addresses() const { return addresses_; }

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

// The rows of a call: consecutive blocks, each followed by the sizes of its operands in bytes, and the addresses of all
// operands.
struct RowTable {
  const char *blocks;
  void *const *addresses;
  int64_t count;
};

struct ExportedFunction {
  using Call = void (*)(const void *block, Operands operands);
  ExportedFunction(const char *name, Call call, size_t block_bytes, int operands);

  const char *name;
  Call call;
  size_t block_bytes;
  int operands;
};

// Marks the last exported function as one that takes rows.
struct ExportedRows {
  using Call = void (*)(const RowTable &table);
  explicit ExportedRows(Call call);
};

// The rows of a call, which all have the same number of operands.
template <class Block> class Rows {
public:
  Rows(const RowTable &table, int operands) : table_(table), operands_(operands) {}

  int64_t count() const { return table_.count; }
  const Block &block(int64_t row) const { return *reinterpret_cast<const Block *>(begin(row)); }
  Operands operands(int64_t row) const {
    return {table_.addresses + row * operands_, reinterpret_cast<const Whole *>(begin(row) + sizeof(Block))};
  }

private:
  const char *begin(int64_t row) const {
    return table_.blocks + row * int64_t(sizeof(Block) + sizeof(Whole) * size_t(operands_));
  }

  RowTable table_;
  int operands_;
};

// Calls read(block, operands) for each row. If there is more than one row, an error message names the row.
template <class Block, class Read> void for_each_row(const Rows<Block> &rows, Read read) {
  for (int64_t row = 0; row < rows.count(); row++) {
    try {
      read(rows.block(row), rows.operands(row));
    } catch (const Failure &failure) {
      if (rows.count() == 1) throw;
      fail(failure.status, "row " + std::to_string(row) + ": " + failure.message);
    }
  }
}

} // namespace orchard

#define ORCHARD_FUNCTION(name, function, Block, operand_count)                                                         \
  static const ::orchard::ExportedFunction function##_export{                                                          \
      name,                                                                                                            \
      [](const void *block, ::orchard::Operands operands) { function(*static_cast<const Block *>(block), operands); }, \
      sizeof(Block), operand_count};

#define ORCHARD_ROWS_FUNCTION(name, function, Block, operand_count)                                                    \
  static const ::orchard::ExportedFunction function##_export{                                                          \
      name,                                                                                                            \
      [](const void *block, ::orchard::Operands operands) {                                                            \
        const ::orchard::RowTable one{static_cast<const char *>(block), operands.addresses(), 1};                      \
        function(::orchard::Rows<Block>(one, operand_count));                                                          \
      },                                                                                                               \
      sizeof(Block), operand_count};                                                                                   \
  static const ::orchard::ExportedRows function##_rows{                                                                \
      [](const ::orchard::RowTable &table) { function(::orchard::Rows<Block>(table, operand_count)); }};
