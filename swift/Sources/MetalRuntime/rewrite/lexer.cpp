#include "rewrite/lexer.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace mrt {
namespace {

bool starts_identifier(char letter) {
  return isalpha((unsigned char)letter) || letter == '_' || letter == '$' || (letter & 0x80);
}
bool continues_identifier(char letter) { return starts_identifier(letter) || isdigit((unsigned char)letter); }

// Longest first, except `>>` and `>>=` (see the header).
constexpr std::string_view punctuators[] = {"<<=", "...", "->*", "::", "->", "++", "--", "<<", "<=", ">=", "==", "!=",
                                            "&&",  "||",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", ".*", "##"};

class Lexer {
public:
  explicit Lexer(TokenList &list) : list(list), text(*list.text) {
    list.files.push_back("program_source");
    list.tokens.reserve(text.size() / 4);
  }

  void run() {
    while (position < text.size()) {
      char letter = text[position];
      if (letter == '\n') next_line();
      else if (isspace((unsigned char)letter)) spaced = true, position++;
      else if (letter == '#' && at_line_start) read_directive();
      else read_token();
    }
    match_brackets();
  }

private:
  void next_line() {
    line_start = ++position;
    line++;
    source_line++;
    at_line_start = spaced = true;
  }

  void add(size_t length, TokenKind kind) {
    uint32_t index = uint32_t(list.tokens.size());
    list.tokens.push_back({std::string_view(text).substr(position, length), kind, spaced, at_line_start, line,
                           uint32_t(position - line_start + 1), file, source_line, index});
    list.tokens.back().pragma = std::exchange(pragma, {});
    position += length;
    at_line_start = spaced = false;
  }

  void read_directive() {
    size_t end = std::min(text.find('\n', position), text.size());
    const char *cursor = text.c_str() + position + 1;
    char *after = nullptr;
    unsigned long marked = strtoul(cursor, &after, 10);
    if (after == cursor && guides_loops(text.substr(position, end - position))) {
      pragma = std::string_view(text).substr(position + strlen("#pragma "), end - position - strlen("#pragma "));
      return void(position = end);
    }
    if (after == cursor) return add(end - position, TokenKind::directive);
    size_t open = text.find('"', position), close = open < end ? text.find('"', open + 1) : open;
    if (close < end) set_file(text.substr(open + 1, close - open - 1));
    source_line = uint32_t(marked) - 1; // the end of this line adds one
    position = end;
  }

  // Pragmas that only affect how a loop is compiled (loops.cpp).
  static bool guides_loops(const std::string &directive) {
    const std::string pragma = "#pragma ";
    if (directive.compare(0, pragma.size(), pragma) != 0) return false;
    for (const char *name : {"unroll", "nounroll", "clang loop"})
      if (directive.compare(pragma.size(), strlen(name), name) == 0) return true;
    return false;
  }

  void set_file(const std::string &name) {
    for (file = 0; file < list.files.size(); file++)
      if (list.files[file] == name) return;
    list.files.push_back(name);
  }

  void read_token() {
    std::string_view remaining = std::string_view(text).substr(position);
    char letter = remaining[0];
    size_t quote = quote_after_prefix(remaining);
    if (quote < remaining.size()) {
      add(quoted_length(remaining, quote), remaining[quote] == '"' ? TokenKind::string : TokenKind::character);
    } else if (starts_identifier(letter)) {
      size_t length = 1;
      while (length < remaining.size() && continues_identifier(remaining[length])) length++;
      // Only an optimization hint; nothing here depends on it.
      const std::string_view word = remaining.substr(0, length);
      if (word == "__restrict" || word == "__restrict__") position += length, spaced = true;
      else add(length, TokenKind::identifier);
    } else if (isdigit((unsigned char)letter) ||
               (letter == '.' && remaining.size() > 1 && isdigit((unsigned char)remaining[1]))) {
      add(number_length(remaining), TokenKind::number);
    } else {
      size_t length = 1;
      for (std::string_view punctuator : punctuators)
        if (remaining.substr(0, punctuator.size()) == punctuator) {
          length = punctuator.size();
          break;
        }
      add(length, TokenKind::punctuator);
    }
  }

  // Returns the position of the opening quote of a literal that starts here with an optional encoding prefix; otherwise
  // a position past the end.
  static size_t quote_after_prefix(std::string_view remaining) {
    for (std::string_view prefix : {"", "u8", "u", "U", "L"})
      if (remaining.substr(0, prefix.size()) == prefix && remaining.size() > prefix.size() &&
          (remaining[prefix.size()] == '"' || remaining[prefix.size()] == '\''))
        return prefix.size();
    return remaining.size();
  }

  static size_t quoted_length(std::string_view remaining, size_t quote) {
    size_t index = quote + 1;
    while (index < remaining.size() && remaining[index] != remaining[quote] && remaining[index] != '\n')
      index += remaining[index] == '\\' ? 2 : 1;
    return std::min(index + 1, remaining.size());
  }

  static size_t number_length(std::string_view remaining) {
    size_t length = 1;
    bool hexadecimal = remaining.size() > 1 && (remaining[1] == 'x' || remaining[1] == 'X');
    for (; length < remaining.size(); length++) {
      char letter = remaining[length], before = remaining[length - 1];
      bool sign = (letter == '+' || letter == '-') &&
                  (hexadecimal ? before == 'p' || before == 'P' : before == 'e' || before == 'E');
      bool separator = letter == '\'' && length + 1 < remaining.size() && isalnum((unsigned char)remaining[length + 1]);
      if (!continues_identifier(letter) && letter != '.' && !sign && !separator) break;
    }
    return length;
  }

  void match_brackets() {
    std::vector<uint32_t> open;
    for (uint32_t index = 0; index < list.tokens.size(); index++) {
      Token &token = list.tokens[index];
      if (token.kind != TokenKind::punctuator || token.text.size() != 1) continue;
      size_t kind = std::string_view("([{").find(token.text[0]), closing = std::string_view(")]}").find(token.text[0]);
      if (kind != std::string_view::npos) open.push_back(index);
      if (closing == std::string_view::npos || open.empty()) continue;
      Token &opener = list.tokens[open.back()];
      if (opener.text[0] != "([{"[closing]) continue;
      opener.partner = index;
      token.partner = open.back();
      open.pop_back();
    }
  }

  TokenList &list;
  const std::string &text;
  size_t position = 0, line_start = 0;
  uint32_t line = 1, source_line = 1, file = 0;
  bool at_line_start = true, spaced = true;
  std::string_view pragma; // before the next token
};

} // namespace

TokenList tokenize(std::string text) {
  TokenList list;
  list.text = std::make_shared<const std::string>(std::move(text));
  Lexer(list).run();
  return list;
}

std::string TokenList::join(size_t first, size_t last) const {
  std::string out;
  for (size_t index = first; index < last; index++) {
    if (index > first && tokens[index].spaced) out += ' ';
    out += tokens[index].text;
  }
  return out;
}

} // namespace mrt
