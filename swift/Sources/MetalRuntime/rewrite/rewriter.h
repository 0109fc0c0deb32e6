// Rewrites preprocessed Metal source to the two texts that clang compiles: the flat text, which runs, and the strict
// text, in which address spaces are part of types.
#pragma once

#include "rewrite/declared_constant.h"
#include "rewrite/diagnostics.h"
#include "rewrite/edits.h"
#include "rewrite/syntax.h"

#include <memory>
#include <string>
#include <vector>

namespace mrt {

struct EntryPoint {
  std::string name;                        // host name
  uint32_t position;                       // the token after which its record is inserted
  uint32_t location;                       // the token to which diagnostics about it refer
  std::string record;                      // the text of the record
  std::vector<DeclaredConstant> constants; // the constants that it uses, in the order of their declarations
};

struct Rewritten {
  TokenList tokens;
  std::vector<EntryPoint> entries;
  std::vector<Diagnostic> diagnostics;
  Edits flat, strict;
  std::string flat_epilogue;
  bool spaced = false;      // the flat text keeps its address spaces (MRT_SPACED)
  bool may_recurse = false; // judged by names of functions; the compiled calls decide

  // Returns the flat text with only the entries [first, last), since a large library is compiled in parts.
  Printed flat_text(size_t first, size_t last, const std::string &prologue = {}) const;
  Printed strict_text() const;
};

// `version` is __METAL_VERSION__, such as 310.
Rewritten rewrite(TokenList tokens, const SourceLines &lines, uint32_t version);

} // namespace mrt
