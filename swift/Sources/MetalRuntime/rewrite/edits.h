// Edits of a token list, and the resulting text, in which every position can be mapped back to its token.
#pragma once

#include "rewrite/lexer.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace mrt {

// Inserted text must not contain a line break, since it belongs to the line of its token.
class Edits {
public:
  void erase(uint32_t first, uint32_t last) {
    for (; first < last; first++) replaced[first].clear();
  }
  void replace(uint32_t token, std::string text) { replaced[token] = std::move(text); }
  void insert_before(uint32_t token, const std::string &text) { before[token] += text; }
  void insert_after(uint32_t token, const std::string &text) { after[token] += text; }
  bool is_erased(uint32_t token) const {
    auto found = replaced.find(token);
    return found != replaced.end() && found->second.empty();
  }

  std::unordered_map<uint32_t, std::string> before, after, replaced;
};

struct Printed {
  struct Mapping {
    uint32_t line, column, token;
  };
  std::string text;
  std::vector<Mapping> mappings; // in the order of the text

  // Returns the token at or before a position of `text`; UINT32_MAX before the first token.
  uint32_t token_at(uint32_t line, uint32_t column) const;
};

// `prologue` is printed first, on separate lines. Line markers keep every token on its source line.
Printed print(const TokenList &tokens, const Edits &edits, const std::string &prologue, const std::string &epilogue);

} // namespace mrt
