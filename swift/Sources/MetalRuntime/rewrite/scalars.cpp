// Operations that the compiler's bfloat lacks in the flat text, in programs that use it: casts from and to half, and
// increments. metal/mrt/bfloat.h defines the macros; without MRT_SCALAR_BFLOAT they expand to the original text.
#include "rewrite/internal.h"

namespace mrt {
namespace {

class Scalars {
public:
  explicit Scalars(Rewriter &rewriter) : rewriter(rewriter), tokens(rewriter.tokens) {}

  void run() {
    if (!collect_types()) return;
    for (const Declaration &declaration : rewriter.program.declarations)
      if (declaration.kind == DeclarationKind::function && declaration.body.exists()) check_body(declaration.body);
  }

private:
  // Collects half, bfloat, template parameters and names of aliases. Returns false if the program does not use bfloat.
  bool collect_types() {
    bool found = false;
    types = {"half", "bfloat"};
    for (uint32_t index = 0; index + 2 < tokens.size(); index++) {
      found |= tokens.is(index, "bfloat") || tokens.is(index, "bfloat16_t");
      if (tokens.is(index, "using") && tokens.is(index + 2, "=")) types.insert(tokens[index + 1].text);
      if (one_of(tokens[index].text, {"typename", "class"}) && tokens.is_identifier(index + 1) &&
          one_of(tokens[index + 2].text, {",", ">", "="}))
        types.insert(tokens[index + 1].text);
      if (tokens.is(index, "typedef") && tokens.is_identifier(index + 2) && tokens.is(index + 3, ";"))
        types.insert(tokens[index + 2].text);
    }
    return found;
  }

  void check_body(Range body) {
    for (uint32_t index = body.first + 1; index + 2 < body.last; index++) {
      if (types.count(tokens[index].text) && opens_operand(index - 1)) check_cast(index);
      if (one_of(tokens[index].text, {"++", "--"})) check_step(index, body);
    }
  }

  // Returns whether the token may precede an operand: it is neither a name, a type nor the end of another operand.
  bool opens_operand(uint32_t index) const {
    if (one_of(tokens[index].text, {"return", "case"})) return true;
    return tokens[index].kind == TokenKind::punctuator &&
           !one_of(tokens[index].text, {")", "]", "}", ";", "::", ".", "->", "{", "~", "<", ">"});
  }

  // Rewrites `T(x)` and `(T)x`.
  void check_cast(uint32_t index) {
    if (tokens.is(index + 1, "(")) return rewriter.flat().replace(index, "MRT_CALL_CAST(" + rewriter.text(index) + ")");
    const bool is_cast = tokens.is(index - 1, "(") && tokens.is(index + 1, ")") && index >= 2 &&
                         takes_cast(index - 2) &&
                         (tokens.is(index + 2, "(") || tokens[index + 2].kind == TokenKind::identifier ||
                          tokens[index + 2].kind == TokenKind::number || tokens.is(index + 2, "-"));
    if (!is_cast) return;
    rewriter.flat().replace(index - 1, "MRT_C_CAST(" + rewriter.text(index) + ")");
    rewriter.flat().erase(index, index + 2);
    last_cast = index + 1;
  }

  // Excludes casts after a unary operator, which has the same precedence.
  bool takes_cast(uint32_t index) const {
    if (index == last_cast || one_of(tokens[index].text, {";", "{"})) return true;
    const bool has_left = tokens.is_identifier(index - 1) || tokens[index - 1].kind == TokenKind::number ||
                          one_of(tokens[index - 1].text, {")", "]"});
    return opens_operand(index) && (has_left || !one_of(tokens[index].text, {"-", "+", "!", "&", "*"}));
  }

  bool is_part(uint32_t index) const {
    return (tokens.is_identifier(index) && !one_of(tokens[index].text, {"return", "else", "do"})) ||
           one_of(tokens[index].text, {".", "->", "::"});
  }

  // Rewrites statements `x[i]++;` and `++x[i];`, also those of a loop.
  void check_step(uint32_t index, Range body) {
    const std::string kind = tokens.is(index, "++") ? "UP" : "DOWN";
    uint32_t first = index, last = index + 1;
    while (first > body.first && (tokens.is(first - 1, "]") || is_part(first - 1)))
      first = tokens.is(first - 1, "]") ? tokens[first - 1].partner : first - 1;
    if (first < index && begins_statement(first - 1) && one_of(tokens[index + 1].text, {";", ")"}))
      return rewriter.flat().replace(index, "MRT_STEP_" + kind);
    while (last < body.last && (tokens.is(last, "[") || is_part(last)))
      last = tokens.is(last, "[") ? tokens[last].partner + 1 : last + 1;
    if (last == index + 1 || !begins_statement(index - 1) || !one_of(tokens[last].text, {";", ")"})) return;
    rewriter.flat().replace(index, "MRT_BEFORE_" + kind + " ");
    rewriter.flat().insert_after(last - 1, " MRT_AFTER_" + kind);
  }

  bool begins_statement(uint32_t index) const {
    return one_of(tokens[index].text, {";", "{", "}"}) || tokens.is(index, "else");
  }

  Rewriter &rewriter;
  const TokenList &tokens;
  std::set<std::string_view> types;
  uint32_t last_cast = none; // the `)` of the previous cast
};

} // namespace

void rewrite_scalars(Rewriter &rewriter) { Scalars(rewriter).run(); }

} // namespace mrt
