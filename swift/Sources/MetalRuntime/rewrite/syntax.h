// The structure of a program: which tokens form which declaration. No types and no expressions, only what the rewriter
// needs to know about declarations outside of function bodies.
#pragma once

#include "rewrite/lexer.h"

#include <string>
#include <vector>

namespace mrt {

constexpr uint32_t none = UINT32_MAX;

// [first, last) of tokens
struct Range {
  uint32_t first = none, last = none;
  bool exists() const { return first != none; }
  uint32_t size() const { return exists() ? last - first : 0; }
};

struct Attribute {
  uint32_t name = none; // the token, after a `clang::` or similar
  Range arguments;      // without the parentheses
};

enum class DeclarationKind { function, variable, type, instantiation, other };

struct Declaration {
  DeclarationKind kind = DeclarationKind::other;
  Range tokens;                 // all of it, with its `;` or `}`
  std::vector<Range> templates; // each `template <…>`
  uint32_t start = none;        // the first token after the templates
  uint32_t name = none;
  Range template_arguments;    // `<…>` after the name
  Range parameters;            // the tokens inside ( )
  Range body;                  // the tokens inside { }, of a function or a type
  uint32_t initializer = none; // the `=` or `{` of a variable
  std::vector<Attribute> attributes;
  std::vector<Range> attribute_groups; // each `[[…]]` outside of the parameters
  uint32_t scope = 0;
};

struct Scope {
  uint32_t parent = none;
  std::string path; // "a::b::", empty outside of all namespaces
  bool is_class = false;
};

struct Program {
  std::vector<Scope> scopes;
  std::vector<Declaration> declarations; // of namespaces and of classes, in the order of the text
};

Program parse_program(const TokenList &tokens);

// The attributes inside of `[[…]]`, whose tokens lie in [first, last).
void parse_attributes(const TokenList &tokens, uint32_t first, uint32_t last, std::vector<Attribute> &attributes);
bool opens_attribute(const TokenList &tokens, uint32_t index); // `[[`
// Returns the token after the `>` that closes the `<` at `index`; `end` if there is none.
uint32_t after_angles(const TokenList &tokens, uint32_t index, uint32_t end);
// Splits [first, last) at the commas outside of brackets and template argument lists.
std::vector<Range> split_commas(const TokenList &tokens, Range range);

} // namespace mrt
