// Finds which names in a function refer to its local variables, and where their scope ends: there they hide the
// program's declarations of the same name.
#include "rewrite/internal.h"

namespace mrt {
namespace {

// Words after which a name is used, or names a type, but is not declared.
constexpr std::string_view no_types[] = {
    "return",   "else",   "do",        "case",   "goto",     "sizeof", "typename",   "template",
    "not",      "and",    "or",        "new",    "delete",   "throw",  "operator",   "using",
    "typedef",  "struct", "class",     "union",  "enum",     "const",  "inline",     "extern",
    "volatile", "static", "constexpr", "device", "constant", "thread", "threadgroup"};

bool is_type_name(const TokenList &tokens, uint32_t index) {
  return tokens.is_identifier(index) && !one_of(tokens[index].text, no_types);
}

// Recognizes `T name` before a token that can follow the name of a variable, and `T *name =`, which can't be a product.
// An ambiguous name is not hidden.
bool declares(const TokenList &tokens, uint32_t index) {
  if (!tokens.is_identifier(index) || index < 2) return false;
  const std::string_view after = tokens[index + 1].text;
  if (is_type_name(tokens, index - 1)) return one_of(after, {"=", ";", ",", ")", "[", "{", "(", ":"});
  if (after != "=" || !one_of(tokens[index - 1].text, {"*", "&", ">"})) return false;
  return tokens.is(index - 1, ">") || is_type_name(tokens, index - 2) ||
         one_of(tokens[index - 2].text, {"*", "&", ">"});
}

// Returns the end of a statement that begins at `index`, or of a lambda's body.
uint32_t end_of_statement(const TokenList &tokens, uint32_t index, uint32_t end) {
  for (; index < end && !tokens.is(index, ";"); index = uint32_t(tokens.after_group(index)))
    if (tokens.is(index, "{")) return tokens[index].partner;
  return index;
}

// Returns the end of the enclosing block, or of the statement to which the parentheses belong, as in `for (int i = 0;
// …)`.
uint32_t end_of_scope(const TokenList &tokens, const std::vector<uint32_t> &closing, uint32_t end) {
  if (closing.empty()) return end;
  const uint32_t close = closing.back();
  return tokens.is(close, ")") ? end_of_statement(tokens, close + 1, end) : close;
}

} // namespace

// Parameters hide names in the whole function. Names in a default value are not declarations.
void Locals::take_parameters(Range range, std::initializer_list<std::string_view> ends) {
  if (!range.exists()) return;
  bool in_default = false;
  for (uint32_t index = range.first; index < range.last; index = uint32_t(tokens.after_group(index))) {
    if (tokens.is(index, ",")) in_default = false;
    if (tokens.is(index, "=")) in_default = true;
    if (in_default || index == range.first || !tokens.is_identifier(index)) continue;
    const bool has_type = is_type_name(tokens, index - 1) || one_of(tokens[index - 1].text, {"*", "&", "&&", ">"});
    if (has_type && one_of(tokens[index + 1].text, ends)) until[tokens[index].text] = end;
  }
}

Locals::Locals(const TokenList &tokens, const Declaration &function) : tokens(tokens), end(function.tokens.last) {
  for (Range parameters : function.templates) take_parameters({parameters.first + 2, parameters.last}, {",", ">", "="});
  take_parameters(function.parameters, {",", ")", "[", "="});
}

bool Locals::hide(uint32_t index) {
  while (!closing.empty() && closing.back() <= index) closing.pop_back();
  if (one_of(tokens[index].text, {"{", "(", "["}) && tokens[index].partner > index)
    closing.push_back(tokens[index].partner);
  if (!tokens.is_identifier(index)) return false;
  if (declares(tokens, index)) {
    uint32_t &last = until[tokens[index].text];
    last = std::max(last, end_of_scope(tokens, closing, end));
    return true;
  }
  // `object.name` and `space::name` do not refer to variables of the function.
  if (index > 0 && one_of(tokens[index - 1].text, {".", "->", "::", "template"})) return false;
  const auto hidden = until.find(tokens[index].text);
  return hidden != until.end() && index < hidden->second;
}

} // namespace mrt
