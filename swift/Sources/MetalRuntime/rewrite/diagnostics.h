// Diagnostics in the form of Metal's compiler: "program_source:LINE:COLUMN: error: …", followed by the line and a
// caret.
#pragma once

#include "rewrite/edits.h"
#include "rewrite/lexer.h"

#include <string>
#include <vector>

namespace mrt {

struct Diagnostic {
  enum Severity { error, warning, note } severity;
  std::string file;
  uint32_t line = 0, column = 0; // 0: unknown
  std::string message;
};

// The lines of the user's text, as diagnostics refer to them; `#line` directives change file names and numbers.
class SourceLines {
public:
  explicit SourceLines(const std::string &source);
  // Returns null if there is no such line.
  const std::string *line(const std::string &file, uint32_t number) const;

private:
  struct Run { // the lines that follow one directive
    std::string file;
    uint32_t first;
    std::vector<std::string> lines;
  };
  std::vector<Run> runs;
};

// Returns the position of a token in the user's line, since preprocessing collapses white space and expands macros.
uint32_t source_column(const TokenList &tokens, uint32_t token, const SourceLines &lines);
Diagnostic diagnostic_at(const TokenList &tokens, uint32_t token, const SourceLines &lines,
                         Diagnostic::Severity severity, std::string message);

// Parses clang's output for `printed`, with the user's positions and in Metal's terms. If the location is in a header
// of the library, uses the location of the first note within the program.
std::vector<Diagnostic> parse_clang(const std::string &output, const TokenList &tokens, const Printed &printed,
                                    const SourceLines &lines, bool strict = false);
// Parses the preprocessor's output; its positions are already the user's.
std::vector<Diagnostic> parse_preprocessor(const std::string &output);

// The message for a call that closes a cycle of functions.
std::string recursion_message(const std::string &caller, const std::string &callee, bool is_itself);

bool has_errors(const std::vector<Diagnostic> &diagnostics);
// Prints diagnostics in the order of their lines, each once.
std::string render(std::vector<Diagnostic> diagnostics, const SourceLines &lines);

} // namespace mrt
