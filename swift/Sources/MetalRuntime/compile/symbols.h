// The symbols that a compiled kernel needs from other libraries.
#pragma once

#include <string>
#include <vector>

namespace mrt {

// Returns the symbols that an object file (ELF, 64 bits) needs and does not define, except those that the compiler
// itself needs and the loader or the kernel's table provides. A file of another kind has the symbol "?".
std::vector<std::string> undefined_symbols(const std::string &path);

} // namespace mrt
