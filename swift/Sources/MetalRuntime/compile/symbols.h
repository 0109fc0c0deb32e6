// The symbols that a compiled kernel needs from other libraries.
#pragma once

#include <string>
#include <vector>

namespace mrt {

// Returns the undefined symbols of a 64-bit ELF object file, except those to which the compiler itself generates
// references and which the loader or the kernel's table provides. For any other file, returns "?".
std::vector<std::string> undefined_symbols(const std::string &path);

} // namespace mrt
