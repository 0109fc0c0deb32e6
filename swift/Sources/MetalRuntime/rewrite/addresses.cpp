// `&object.x` is not allowed if the object is a vector, whose elements have no address (MSL 2.2.1), but only types tell
// whether it is. So the strict text tests it: `(mrt::address_of_member(object), &object.x)`, which vec.h declares for
// everything except vectors.
#include "rewrite/internal.h"

namespace mrt {
namespace {

constexpr std::string_view elements[] = {"x", "y", "z", "w", "r", "g", "b", "a"};
// Tokens that precede an operand. After any other token, `&` is a binary operator or part of a type.
constexpr std::string_view openings[] = {"(",      ",", "=", "{", ";",  "}",  "?", ":",
                                         "return", "[", "+", "-", "&&", "||", "!"};

// Returns the last token of a postfix expression that begins at `first`, or `none`.
uint32_t last_of_operand(const TokenList &tokens, uint32_t first) {
  uint32_t last = first;
  if (tokens.is(first, "(")) last = tokens[first].partner;
  else if (!tokens.is_identifier(first)) return none;
  while (last != none && last + 1 < tokens.size()) {
    const uint32_t next = last + 1;
    if (one_of(tokens[next].text, {".", "->", "::"}) && tokens.is_identifier(next + 1)) last = next + 1;
    else if (one_of(tokens[next].text, {"[", "("}) && tokens[next].partner > next) last = tokens[next].partner;
    else break;
  }
  return last;
}

// Returns whether a copy of these tokens has the same meaning in the strict text, where other passes rewrite address
// spaces, literals and lambdas.
bool is_plain(const TokenList &tokens, uint32_t first, uint32_t last) {
  for (uint32_t index = first; index < last; index++) {
    const Token &token = tokens[index];
    if (is_space(token.text) || one_of(token.text, {"{", "template"})) return false;
    if (token.kind == TokenKind::number && token.text.find_first_not_of("0123456789u") != std::string_view::npos)
      return false;
    if (token.kind == TokenKind::string || token.kind == TokenKind::directive) return false;
  }
  return true;
}

} // namespace

void check_addresses(Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  for (uint32_t index = 1; index + 2 < tokens.size(); index++) {
    if (!tokens.is(index, "&") || !one_of(tokens[index - 1].text, openings)) continue;
    const uint32_t last = last_of_operand(tokens, index + 1);
    if (last == none || last < index + 3 || !one_of(tokens[last].text, elements)) continue;
    const bool by_pointer = tokens.is(last - 1, "->");
    if ((!by_pointer && !tokens.is(last - 1, ".")) || !is_plain(tokens, index + 1, last - 1)) continue;
    rewriter.strict().insert_before(index, std::string("(mrt::address_of_member(") + (by_pointer ? "*" : "") +
                                               tokens.join(index + 1, last - 1) + "), ");
    rewriter.strict().insert_after(last, ")");
  }
}

} // namespace mrt
