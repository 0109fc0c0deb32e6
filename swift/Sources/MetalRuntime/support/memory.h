// Device memory, for the runtime's code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mrt {

// Fresh memory is filled with this two-byte word, at even addresses: a quiet NaN as half, bfloat and float, and as an
// integer a number that programs hardly use (-1 and 255 are too common). The checker treats memory that still holds it
// as unwritten.
constexpr uint16_t poison_word = 0xffe9;
void poison(void *memory, size_t size);
bool is_poison(const void *memory, size_t size);

// One buffer's memory. A record outlives its memory for a while, so that a stale address can be named.
struct Allocation {
  uintptr_t address = 0;
  size_t length = 0;   // exact
  size_t capacity = 0; // the allocated size: the length may be less if a pool reuses it for a smaller buffer
  uint64_t serial = 0; // unique for the life of the process
  bool freed = false;
  bool wrapped = false; // the caller's own memory, outside the arena
  std::string label;    // read with allocation_label

  bool contains(uintptr_t at, size_t size) const { return at >= address && at + size <= address + length; }
};

// The region of all allocations that are not wrapped: the checker's shadow is indexed by the distance from its start.
struct ArenaBounds {
  uintptr_t address;
  size_t size;
};
ArenaBounds arena_bounds();

// Returns the allocation to which an address belongs, or in whose guard range it lies; null if there is none. Inside
// the arena this takes two loads and no lock.
const Allocation *find_allocation(const void *address);

// Returns the allocation nearest to an address, by its bytes' distance; null if nothing is allocated.
const Allocation *nearest_allocation(const void *address, size_t *distance);

std::string allocation_label(const Allocation *allocation);

// The target of a parameter that its function constant disables: poison that cannot be written. A kernel may read it
// before it reads the constant; a compiler that knows the constant drops a read whose value is not used.
void *absent_argument();
bool is_absent_argument(uintptr_t address);

// Describes where an address lies, for messages: "17 bytes past the end of buffer 'x' (4096 bytes)".
std::string describe_address(const void *address, const Allocation *allocation);

// The label of bytes that setBytes copied: only the argument's pointer leads there.
bool is_label_of_inline_bytes(const std::string &label);

} // namespace mrt
