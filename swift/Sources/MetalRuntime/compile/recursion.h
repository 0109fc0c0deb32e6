// Functions that call themselves, directly or through others, in the calls of a compiled program: there each instance
// of a template and each overload is a separate function.
#pragma once

#include "rewrite/rewriter.h"

#include <string>
#include <vector>

namespace mrt {

// `code`: LLVM's text of the program before any optimization, with its lines. Each call that closes a cycle is an
// error.
std::vector<Diagnostic> find_recursion(const std::string &code, const TokenList &tokens, const SourceLines &lines);

} // namespace mrt
