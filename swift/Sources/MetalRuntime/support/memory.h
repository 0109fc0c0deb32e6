// Device memory, as used by the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mrt {

// New memory is filled with this two-byte word, at even addresses. It is a quiet NaN as half, bfloat and float, and as
// an integer a number that programs rarely use (-1 and 255 are too common). The checker treats memory that still
// contains it as unwritten.
constexpr uint16_t poison_word = 0xffe9;
void poison(void *memory, size_t size);
bool is_poison(const void *memory, size_t size);

// The memory of one buffer. A record outlives its memory for some time, so that a stale address can be attributed to
// it.
struct Allocation {
  uintptr_t address = 0;
  size_t length = 0;   // exact
  size_t capacity = 0; // the allocated size; the length is less if a pool reuses the memory for a smaller buffer
  uint64_t serial = 0; // unique within the process
  bool freed = false;
  bool wrapped = false; // the caller's memory, outside the arena
  std::string label;    // to be read with allocation_label

  bool contains(uintptr_t at, size_t size) const { return at >= address && at + size <= address + length; }
};

// The region of all allocations that are not wrapped. The checker's shadow memory is indexed by the distance from its
// start.
struct ArenaBounds {
  uintptr_t address;
  size_t size;
};
ArenaBounds arena_bounds();

// Returns the allocation that contains an address, or whose guard range does; null if there is none. Within the arena
// this takes two loads and no lock.
const Allocation *find_allocation(const void *address);

// Returns the allocation nearest to an address; null if nothing is allocated.
const Allocation *nearest_allocation(const void *address, size_t *distance);

std::string allocation_label(const Allocation *allocation);

// The memory of a parameter that a function constant disables: poison that cannot be written. A kernel may read it
// before it tests the constant; a compiler that knows the constant would remove a read whose value is not used.
void *absent_argument();
bool is_absent_argument(uintptr_t address);

// Describes the position of an address, for messages: "17 bytes past the end of buffer 'x' (4096 bytes)".
std::string describe_address(const void *address, const Allocation *allocation);

// Returns whether this is the label of bytes copied by setBytes, which are reachable only through the argument's
// pointer.
bool is_label_of_inline_bytes(const std::string &label);

} // namespace mrt
