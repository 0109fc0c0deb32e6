// Links the files of a library, as Xcode links those of a target: a function may be declared in one file and defined in
// another. Each file is compiled as one text, so linking adds to it those declarations of the other files that it
// needs.
//
// The files stand in one source text, separated by lines that start with `link_mark` or, if all definitions of the
// library are to be compared, `library_mark`.
#pragma once

#include "rewrite/diagnostics.h"
#include "rewrite/lexer.h"

#include <string>
#include <vector>

namespace mrt {

constexpr char link_mark[] = "#pragma orchard link", library_mark[] = "#pragma orchard library";

struct LibraryFiles {
  std::vector<std::string> texts;    // the file that is compiled, then the others
  bool compares_definitions = false; // reports each function that two files define
};
LibraryFiles split_files(const std::string &source);

// Returns whether a preprocessed file declares a function or variable without defining it.
bool needs_definitions(const TokenList &tokens);

// Returns the preprocessed text of the first file, followed by the missing definitions and the declarations that these
// need. Functions of other files that are static, inline, templates or in a namespace without a name are not visible.
std::string link_files(const std::vector<TokenList> &files, bool compares_definitions, const SourceLines &lines,
                       std::vector<Diagnostic> &diagnostics);

} // namespace mrt
