// Maps program counters to source lines by the line table (DWARF 4, section 6.2) of the kernel's object file.
#pragma once

#include <cstdint>
#include <string>

namespace mrt {

struct SourcePosition {
  std::string file;
  uint32_t line = 0, column = 0; // 0: unknown
};

// Returns the position of the call that returns to `program_counter`. Tables are decoded once per object and cached;
// only the thread that runs a checked dispatch may call it.
SourcePosition source_position(const void *program_counter);

// The same, given a file and an address within it.
SourcePosition source_position_in(const std::string &object, uint64_t address);

// Returns the load address of the object that contains `program_counter`; 0 if there is none.
uint64_t module_base(const void *program_counter);

} // namespace mrt
