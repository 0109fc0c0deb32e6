#include "rewrite/edits.h"

#include <algorithm>

namespace mrt {
namespace {

class Printer {
public:
  Printer(const TokenList &tokens, const Edits &edits) : tokens(tokens), edits(edits) {}

  Printed run(const std::string &prologue, const std::string &epilogue) {
    append(prologue);
    new_line();
    for (uint32_t index = 0; index < tokens.size(); index++) print_token(index);
    new_line();
    append("# 1 \"epilogue\"\n");
    append(epilogue);
    return std::move(printed);
  }

private:
  void append(std::string_view text) {
    for (char letter : text) {
      printed.text += letter;
      if (letter == '\n') line++, line_start = printed.text.size();
    }
  }

  void new_line() { append("\n"); }
  bool at_line_start() const { return printed.text.size() == line_start; }

  static const std::string *find(const std::unordered_map<uint32_t, std::string> &texts, uint32_t index) {
    auto found = texts.find(index);
    return found == texts.end() ? nullptr : &found->second;
  }

  void print_token(uint32_t index) {
    const Token &token = tokens[index];
    const std::string *before = find(edits.before, index), *after = find(edits.after, index),
                      *other = find(edits.replaced, index);
    if (other && other->empty() && !before && !after) return;
    go_to(token);
    if (token.first && at_line_start()) append(std::string(token.column - 1, ' '));
    else if (token.spaced || other || before || after) append(" ");
    printed.mappings.push_back({line, uint32_t(printed.text.size() - line_start + 1), index});
    if (before) append(*before + " ");
    append(other ? std::string_view(*other) : token.text);
    if (after) append(" " + *after + " ");
    if (token.kind == TokenKind::directive) new_line(), source_line++;
  }

  // Reaches a nearby line by line breaks, and others by a line marker.
  void go_to(const Token &token) {
    constexpr uint32_t near = 8;
    if (token.kind == TokenKind::directive && !at_line_start()) new_line(), source_line++;
    if (token.file == file && token.source_line >= source_line && token.source_line - source_line <= near) {
      for (; source_line < token.source_line; source_line++) new_line();
      return;
    }
    if (!at_line_start()) new_line();
    append("# " + std::to_string(token.source_line) + " \"" + tokens.files[token.file] + "\"\n");
    file = token.file;
    source_line = token.source_line;
  }

  const TokenList &tokens;
  const Edits &edits;
  Printed printed;
  uint32_t line = 1, file = UINT32_MAX, source_line = 0;
  size_t line_start = 0;
};

} // namespace

uint32_t Printed::token_at(uint32_t line, uint32_t column) const {
  auto after = std::upper_bound(
      mappings.begin(), mappings.end(), Mapping{line, column, 0},
      [](const Mapping &a, const Mapping &b) { return a.line != b.line ? a.line < b.line : a.column < b.column; });
  return after == mappings.begin() ? UINT32_MAX : std::prev(after)->token;
}

Printed print(const TokenList &tokens, const Edits &edits, const std::string &prologue, const std::string &epilogue) {
  return Printer(tokens, edits).run(prologue, epilogue);
}

} // namespace mrt
