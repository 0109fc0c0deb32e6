// What a compiled kernel asks of other libraries.
#pragma once

#include <string>
#include <vector>

namespace mrt {

// The symbols that an object file (ELF, 64 bits) needs and does not define, but for those that the compiler itself
// needs and the loader or the kernel's own table gives. A file that is none has the symbol "?".
std::vector<std::string> undefined_symbols(const std::string &path);

} // namespace mrt
