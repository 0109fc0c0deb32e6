// Program counter → source line, from the line table (DWARF 4, section 6.2) of the kernel's object file.
#pragma once

#include <cstdint>
#include <string>

namespace mrt {

struct SourcePosition {
  std::string file;
  uint32_t line = 0, column = 0; // 0: unknown
};

// Returns the position of the call that returns to `program_counter`. Tables are decoded once for each object and kept;
// only the thread that runs a checked dispatch may call it.
SourcePosition source_position(const void *program_counter);

// The same from a file and the address inside it.
SourcePosition source_position_in(const std::string &object, uint64_t address);

// Returns the load address of the object that holds `program_counter`, 0 if there is none.
uint64_t module_base(const void *program_counter);

} // namespace mrt
