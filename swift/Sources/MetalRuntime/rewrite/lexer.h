// Tokens of a preprocessed source with their positions: in the preprocessed text and, according to line markers, in the
// user's file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mrt {

enum class TokenKind : uint8_t { identifier, number, string, character, punctuator, directive };

struct Token {
  std::string_view text;
  TokenKind kind;
  bool spaced;                  // preceded by white space
  bool first;                   // first of its line
  uint32_t line, column;        // in the preprocessed text, from 1
  uint32_t file;                // index into TokenList::files
  uint32_t source_line;         // in that file
  uint32_t partner;             // for a bracket: the matching one; else the token's index
  bool coherent = false;        // preceded by `coherent(device)`
  std::string_view pragma = {}; // before it, one that only affects how a loop is compiled: without "#pragma"
};

struct TokenList {
  std::shared_ptr<const std::string> text; // the text to which the tokens refer
  std::vector<std::string> files;
  std::vector<Token> tokens;

  size_t size() const { return tokens.size(); }
  // Beyond the last token, returns an empty one: programs may end anywhere.
  const Token &operator[](size_t index) const { return index < tokens.size() ? tokens[index] : end; }
  bool is(size_t index, std::string_view text) const { return index < tokens.size() && tokens[index].text == text; }
  bool is_identifier(size_t index) const {
    return index < tokens.size() && tokens[index].kind == TokenKind::identifier;
  }
  // Returns the token after `open … close`, or after the token itself if it is not a bracket.
  size_t after_group(size_t index) const {
    const Token &token = (*this)[index];
    return token.partner >= index && token.partner < tokens.size() ? token.partner + 1 : index + 1;
  }
  // Returns the text of [first, last) with its spaces.
  std::string join(size_t first, size_t last) const;

  static const Token end;
};

inline const Token TokenList::end = {"", TokenKind::punctuator, false, false, 0, 0, 0, 0, UINT32_MAX - 1};

// Comments must have been removed, as preprocessing does. `>` is always a separate token, so that template argument
// lists can be matched; two of them without a space between are printed as `>>`.
TokenList tokenize(std::string text);

} // namespace mrt
