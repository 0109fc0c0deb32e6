// Device memory as the runtime's own code sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mrt {

// Fresh memory is filled with this word of two bytes, at even addresses: a quiet NaN as half, bfloat and float, and as
// an integer a number that programs hardly use (-1 and 255 are all too common), since the checker takes what still
// holds it for memory that nothing wrote.
constexpr uint16_t poison_word = 0xffe9;
void poison(void *memory, size_t size);
bool is_poison(const void *memory, size_t size);

// One buffer's memory. A record outlives its memory for a while, so that a stale address can be named.
struct Allocation {
  uintptr_t address = 0;
  size_t length = 0;   // exact
  size_t capacity = 0; // what was allocated: the length may be less, where a pool gave it to something smaller
  uint64_t serial = 0; // unique for the life of the process
  bool freed = false;
  bool wrapped = false; // the caller's own memory, outside the arena
  std::string label;    // read with allocation_label

  bool contains(uintptr_t at, size_t size) const { return at >= address && at + size <= address + length; }
};

// The region in which all allocations lie that are not wrapped: the checker's shadow is indexed by the distance from
// its start.
struct ArenaBounds {
  uintptr_t address;
  size_t size;
};
ArenaBounds arena_bounds();

// The allocation to which an address belongs, or in whose guard range it lies; null where there is none. Inside the
// arena that is two loads and no lock.
const Allocation *find_allocation(const void *address);

// The allocation that is nearest to an address, by its bytes' distance; null where nothing is allocated.
const Allocation *nearest_allocation(const void *address, size_t *distance);

std::string allocation_label(const Allocation *allocation);

// What a parameter points to that its function constant leaves out: poison that cannot be written. A kernel may read it
// before it reads the constant, since a compiler that knows the constant drops a read whose value nothing uses.
void *absent_argument();
bool is_absent_argument(uintptr_t address);

// "17 bytes past the end of buffer 'x' (4096 bytes)": where an address lies, for messages.
std::string describe_address(const void *address, const Allocation *allocation);

// The label of what setBytes copied: no pointer leads there but the argument's own.
bool is_label_of_inline_bytes(const std::string &label);

} // namespace mrt
