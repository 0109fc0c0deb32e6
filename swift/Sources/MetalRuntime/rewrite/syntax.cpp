#include "rewrite/syntax.h"

#include <algorithm>

namespace mrt {
namespace {

bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

class Parser {
public:
  Parser(const TokenList &tokens, Program &program) : tokens(tokens), program(program) {}

  void parse_scope(uint32_t index, uint32_t end, uint32_t scope) {
    while (index < end) index = std::max(index + 1, parse_item(index, end, scope));
  }

private:
  uint32_t parse_item(uint32_t index, uint32_t end, uint32_t scope) {
    const Token &token = tokens[index];
    if (token.kind == TokenKind::directive || one_of(token.text, {";", "}"})) return index + 1;
    if (one_of(token.text, {"public", "private", "protected"}) && tokens.is(index + 1, ":")) return index + 2;
    uint32_t start = tokens.is(index, "inline") ? index + 1 : index;
    if (tokens.is(start, "namespace")) return parse_namespace(start, end, scope);
    if (tokens.is(index, "extern") && tokens[index + 1].kind == TokenKind::string && tokens.is(index + 2, "{")) {
      parse_scope(index + 3, tokens[index + 2].partner, scope);
      return tokens[index + 2].partner + 1;
    }
    if (tokens.is(index, "typedef") && defines_type(index + 1, end)) return parse_declaration(index, end, scope);
    if (one_of(token.text, {"using", "typedef", "static_assert", "_Static_assert"})) return after_semicolon(index, end);
    return parse_declaration(index, end, scope);
  }

  uint32_t after_semicolon(uint32_t index, uint32_t end) {
    while (index < end && !tokens.is(index, ";")) index = next(index);
    return std::min(index + 1, end);
  }

  uint32_t next(uint32_t index) { return uint32_t(tokens.after_group(index)); }

  uint32_t parse_namespace(uint32_t index, uint32_t end, uint32_t scope) {
    std::string path = program.scopes[scope].path;
    for (index++; index < end && !one_of(tokens[index].text, {"{", ";"}); index = next(index))
      if (tokens.is_identifier(index) && tokens[index].text != "inline") path += std::string(tokens[index].text) + "::";
    if (!tokens.is(index, "{") || tokens[index].partner == index) return index + 1;
    parse_scope(index + 1, tokens[index].partner, add_scope(scope, path, false));
    return tokens[index].partner + 1;
  }

  uint32_t add_scope(uint32_t parent, std::string path, bool is_class) {
    program.scopes.push_back({parent, std::move(path), is_class});
    return uint32_t(program.scopes.size() - 1);
  }

  uint32_t parse_declaration(uint32_t index, uint32_t end, uint32_t scope) {
    Declaration declaration;
    declaration.scope = scope;
    declaration.tokens.first = index;
    while (tokens.is(index, "template") && tokens.is(index + 1, "<")) {
      uint32_t after = after_angles(tokens, index + 1, end);
      declaration.templates.push_back({index, after});
      index = after;
    }
    if (tokens.is(index, "template")) {
      declaration.kind = DeclarationKind::instantiation;
      index++;
    }
    declaration.start = index;
    // An alias template or a friend class declares nothing that is rewritten.
    const uint32_t word = after_attributes(index, end);
    if (tokens.is(word, "typedef") && defines_type(word + 1, end)) index = word + 1;
    else if (tokens.is(word, "friend") && !names_class(word + 1)) index = word + 1, declaration.start = index;
    else if (one_of(tokens[word].text, {"using", "friend", "typedef"})) return after_semicolon(word, end);
    uint32_t position = uint32_t(program.declarations.size());
    program.declarations.push_back(declaration); // comes before the members of a class
    index = scan(declaration, index, end);
    declaration.tokens.last = std::min(index, end);
    program.declarations[position] = declaration;
    return index;
  }

  uint32_t after_attributes(uint32_t index, uint32_t end) {
    while (index < end) {
      if (opens_attribute(tokens, index)) index = next(index);
      else if (one_of(tokens[index].text, {"__attribute__", "__attribute", "__declspec"})) index = next(index + 1);
      else break;
    }
    return std::min(index, end - 1);
  }

  // Scans one declaration up to its end and records its parts.
  uint32_t scan(Declaration &declaration, uint32_t index, uint32_t end) {
    bool is_type = false;
    while (index < end) {
      std::string_view text = tokens[index].text;
      if (opens_attribute(tokens, index)) {
        declaration.attribute_groups.push_back({index, next(index)});
        parse_attributes(tokens, index + 2, tokens[index].partner - 1, declaration.attributes);
        index = next(index);
      } else if (text == ";") {
        return finish(declaration, index + 1);
      } else if (text == "}") {
        return finish(declaration, index);
      } else if (one_of(text, {"decltype", "alignas", "__attribute__", "__declspec", "explicit"}) &&
                 tokens.is(index + 1, "(")) {
        index = next(index + 1);
      } else if (one_of(text, {"struct", "class", "union", "enum"}) && declaration.name == none) {
        is_type = tokens.is(index, "enum") || opens_type(index + 1, end);
        index++;
        if (is_type) return type(declaration, index, end);
      } else if (text == "operator") {
        declaration.name = index++;
        if (tokens.is(index, "(")) index = next(index);
        while (index < end && !tokens.is(index, "(")) index++;
        return function(declaration, index, end);
      } else if (text == "<" && declaration.name != none && declaration.name + 1 == index) {
        uint32_t after = after_angles(tokens, index, end);
        declaration.template_arguments = {index, after};
        index = after;
        if (tokens.is(index, "(")) return function(declaration, index, end);
      } else if (text == "(") {
        if (declaration.name != none) return function(declaration, index, end);
        index = next(index);
      } else if (text == "=" || text == "{") {
        declaration.initializer = index;
        declaration.kind = DeclarationKind::variable;
        return after_semicolon(index, end);
      } else {
        if (tokens.is_identifier(index) || text == "~") {
          declaration.name = tokens.is(index, "~") ? index + 1 : index;
          declaration.template_arguments = {};
          if (text == "~") index++;
        }
        index = next(index);
      }
    }
    return finish(declaration, index);
  }

  uint32_t finish(Declaration &declaration, uint32_t index) {
    if (declaration.kind == DeclarationKind::other) declaration.kind = DeclarationKind::variable;
    return index;
  }

  // Recognizes `struct X { … } X;` after a `typedef`.
  bool defines_type(uint32_t index, uint32_t end) {
    return one_of(tokens[index].text, {"struct", "class", "union"}) && opens_type(index + 1, end);
  }

  // Recognizes `friend struct X;` and `friend X;`.
  bool names_class(uint32_t index) {
    return one_of(tokens[index].text, {"struct", "class", "union"}) || tokens.is(index + 1, ";");
  }

  // Returns whether, after `struct`, `{` comes before anything that would follow the type of a variable or function.
  bool opens_type(uint32_t index, uint32_t end) {
    for (; index < end; index = next(index)) {
      std::string_view text = tokens[index].text;
      if (one_of(text, {"alignas", "__attribute__", "__declspec"})) index++;
      else if (text == "<") index = after_angles(tokens, index, end) - 1;
      else if (text == "{") return true;
      else if (one_of(text, {";", "(", "=", "*", "&"})) return false;
    }
    return false;
  }

  uint32_t type(Declaration &declaration, uint32_t index, uint32_t end) {
    bool is_enum = tokens.is(index - 1, "enum");
    if (declaration.kind == DeclarationKind::other) declaration.kind = DeclarationKind::type;
    for (; index < end && !one_of(tokens[index].text, {"{", ";"}); index = next(index)) {
      std::string_view text = tokens[index].text;
      if (text == "<") {
        uint32_t after = after_angles(tokens, index, end);
        if (declaration.name != none && declaration.name + 1 == index) declaration.template_arguments = {index, after};
        index = after - 1;
      } else if (one_of(text, {"alignas", "__attribute__", "__declspec"})) {
        index++;
      } else if (text == ":") {
        while (index < end && !tokens.is(index + 1, "{") && !tokens.is(index + 1, ";")) index = next(index);
      } else if (tokens.is_identifier(index) && !one_of(text, {"class", "struct", "final"})) {
        declaration.name = index;
      }
    }
    if (!tokens.is(index, "{")) return index + 1;
    declaration.body = {index + 1, tokens[index].partner};
    if (!is_enum) {
      std::string name = declaration.name == none ? std::string() : std::string(tokens[declaration.name].text) + "::";
      parse_scope(index + 1, tokens[index].partner,
                  add_scope(declaration.scope, program.scopes[declaration.scope].path + name, true));
    }
    return after_semicolon(index, end);
  }

  uint32_t function(Declaration &declaration, uint32_t index, uint32_t end) {
    if (index >= end) return end;
    if (declaration.kind == DeclarationKind::other) declaration.kind = DeclarationKind::function;
    declaration.parameters = {index + 1, tokens[index].partner};
    for (index = next(index); index < end; index = next(index)) {
      if (opens_attribute(tokens, index)) {
        declaration.attribute_groups.push_back({index, next(index)});
        parse_attributes(tokens, index + 2, tokens[index].partner - 1, declaration.attributes);
      }
      if (tokens.is(index, ";")) return index + 1;
      if (tokens.is(index, ":")) index = skip_initializers(index + 1, end);
      if (tokens.is(index, "{")) {
        declaration.body = {index + 1, tokens[index].partner};
        return tokens[index].partner + 1;
      }
    }
    return end;
  }

  // Skips `a(1), b<T>{2} {`: returns the position of the body's brace.
  uint32_t skip_initializers(uint32_t index, uint32_t end) {
    while (index < end) {
      while (index < end && !one_of(tokens[index].text, {"(", "{"}))
        index = tokens.is(index, "<") ? after_angles(tokens, index, end) : index + 1;
      if (index >= end) return end;
      index = next(index);
      if (!tokens.is(index, ",")) return index;
      index++;
    }
    return end;
  }

  const TokenList &tokens;
  Program &program;
};

} // namespace

Program parse_program(const TokenList &tokens) {
  Program program;
  program.scopes.push_back({});
  Parser(tokens, program).parse_scope(0, uint32_t(tokens.size()), 0);
  return program;
}

bool opens_attribute(const TokenList &tokens, uint32_t index) {
  return tokens.is(index, "[") && tokens.is(index + 1, "[") && tokens[index].partner > index + 2 &&
         tokens[index + 1].partner + 1 == tokens[index].partner;
}

void parse_attributes(const TokenList &tokens, uint32_t first, uint32_t last, std::vector<Attribute> &attributes) {
  while (first < last) {
    Attribute attribute;
    for (; first < last && !tokens.is(first, ","); first = uint32_t(tokens.after_group(first))) {
      if (tokens.is_identifier(first)) attribute.name = first;
      if (tokens.is(first, "(")) attribute.arguments = {first + 1, tokens[first].partner};
    }
    if (attribute.name != none) attributes.push_back(attribute);
    first++;
  }
}

uint32_t after_angles(const TokenList &tokens, uint32_t index, uint32_t end) {
  int depth = 0;
  for (; index < end; index = uint32_t(tokens.after_group(index))) {
    std::string_view text = tokens[index].text;
    if (text == "<") depth++;
    if (text == ">" && --depth == 0) return index + 1;
    if (text == ";" || text == "}") return index;
  }
  return end;
}

std::vector<Range> split_commas(const TokenList &tokens, Range range) {
  std::vector<Range> parts;
  if (!range.size()) return parts;
  Range part{range.first, range.first};
  for (uint32_t index = range.first; index < range.last;) {
    bool names_template = tokens.is(index, "<") && index > range.first && tokens.is_identifier(index - 1);
    if (tokens.is(index, ",")) {
      parts.push_back({part.first, index});
      part.first = ++index;
    } else {
      index = names_template ? after_angles(tokens, index, range.last) : uint32_t(tokens.after_group(index));
    }
  }
  parts.push_back({part.first, range.last});
  return parts;
}

bool is_fraction(const TokenList &tokens, Range range) {
  return range.size() == 1 && tokens[range.first].kind == TokenKind::number &&
         tokens[range.first].text.find('.') != std::string_view::npos;
}

unsigned long literal(const TokenList &tokens, Range range) {
  if (range.size() != 1) return 1;
  const std::string text(tokens[range.first].text);
  char *end = nullptr;
  const unsigned long value = strtoul(text.c_str(), &end, 0);
  return end == text.c_str() || *end || value > 65536 ? 1 : value;
}

unsigned long array_count(const TokenList &tokens, Range range) {
  for (uint32_t index = range.first; index + 1 < range.last; index++) {
    if (!tokens.is(index, "array") || !tokens.is(index + 1, "<")) continue;
    const std::vector<Range> arguments =
        split_commas(tokens, {index + 2, after_angles(tokens, index + 1, range.last) - 1});
    return arguments.size() < 2 ? 1 : literal(tokens, arguments.back());
  }
  return 1;
}

} // namespace mrt
