// The structure of a program: which tokens form which declaration. It contains no types and no expressions, only what
// the rewriter needs to know about declarations outside function bodies.
#pragma once

#include "rewrite/lexer.h"

#include <string>
#include <vector>

namespace mrt {

constexpr uint32_t none = UINT32_MAX;

// A range of tokens [first, last).
struct Range {
  uint32_t first = none, last = none;
  bool exists() const { return first != none; }
  uint32_t size() const { return exists() ? last - first : 0; }
};

struct Attribute {
  uint32_t name = none; // the token of the name, after a prefix such as `clang::`
  Range arguments;      // without the parentheses
};

enum class DeclarationKind { function, variable, type, instantiation, other };

struct Declaration {
  DeclarationKind kind = DeclarationKind::other;
  Range tokens;                 // the whole declaration, including `;` or `}`
  std::vector<Range> templates; // each `template <…>` header
  uint32_t start = none;        // the first token after the template headers
  uint32_t name = none;
  Range template_arguments;    // `<…>` after the name
  Range parameters;            // the tokens between ( and )
  Range body;                  // the tokens between { and }, of a function or a type
  uint32_t initializer = none; // the `=` or `{` of a variable
  std::vector<Attribute> attributes;
  std::vector<Range> attribute_groups; // each `[[…]]` outside the parameters
  uint32_t scope = 0;
};

struct Scope {
  uint32_t parent = none;
  std::string path; // such as "a::b::"; empty outside all namespaces
  bool is_class = false;
};

struct Program {
  std::vector<Scope> scopes;
  std::vector<Declaration> declarations; // in namespaces and classes, in the order of the text
};

Program parse_program(const TokenList &tokens);

// Parses the attributes inside `[[…]]`, whose tokens are [first, last).
void parse_attributes(const TokenList &tokens, uint32_t first, uint32_t last, std::vector<Attribute> &attributes);
bool opens_attribute(const TokenList &tokens, uint32_t index); // whether there is a `[[`
// Returns the token after the `>` that closes the `<` at `index`; `end` if there is none.
uint32_t after_angles(const TokenList &tokens, uint32_t index, uint32_t end);
// Splits [first, last) at the commas outside of brackets and template argument lists.
std::vector<Range> split_commas(const TokenList &tokens, Range range);

// Whether a range is one number with a fraction, such as 1.5.
bool is_fraction(const TokenList &tokens, Range range);
// Returns a range's whole number, or 1 if it is anything else.
unsigned long literal(const TokenList &tokens, Range range);
// Returns N of the first `array<T, N>`, or 1 without one.
unsigned long array_count(const TokenList &tokens, Range range);

} // namespace mrt
