// Overloads and specializations that differ in address spaces only are one and the same in the flat text: the first
// stays. So it is in the strict text with constructors that differ in the space of the object: there a constructor
// without a space makes objects in all of them, temporaries included.
#include "rewrite/internal.h"

namespace mrt {
namespace {

bool is_constructor(const Rewriter &rewriter, const Declaration &declaration) {
  if (declaration.kind != DeclarationKind::function || !rewriter.program.scopes[declaration.scope].is_class)
    return false;
  std::string suffix = "::" + rewriter.text(declaration.name) + "::", path = "::" + rewriter.path(declaration);
  return path.size() >= suffix.size() && !path.compare(path.size() - suffix.size(), suffix.size(), suffix);
}

class Signature {
public:
  Signature(const Rewriter &rewriter, const Declaration &declaration, bool keep_spaces)
      : rewriter(rewriter), tokens(rewriter.tokens), declaration(declaration), keep_spaces(keep_spaces) {}

  std::string text() {
    const Scope &scope = rewriter.program.scopes[declaration.scope];
    out = scope.is_class ? std::to_string(declaration.scope) : scope.path;
    for (Range header : declaration.templates) add_template(header);
    // With the class of a member that is defined outside of it.
    uint32_t first = declaration.name;
    while (first > declaration.start && (tokens.is(first - 1, "::") || tokens.is(first, "::")))
      first = before_name(first);
    add({first, declaration.name + 1});
    if (tokens.is(declaration.name, "operator")) add_operator();
    if (declaration.template_arguments.exists()) add(declaration.template_arguments);
    if (declaration.parameters.exists()) {
      for (Range part : split_commas(tokens, declaration.parameters)) add_parameter(part);
      if (!is_constructor(rewriter, declaration)) add_qualifiers();
    }
    return out;
  }

private:
  // A template's parameters are known by their position: their names may differ.
  void add_template(Range header) {
    out += "<";
    for (Range part : split_commas(tokens, {header.first + 2, header.last - 1})) {
      uint32_t end = part.first;
      while (end < part.last && !tokens.is(end, "="))
        end = tokens.is(end, "<") ? after_angles(tokens, end, part.last) : uint32_t(tokens.after_group(end));
      bool named = end - part.first >= 2 && tokens.is_identifier(end - 1) && !tokens.is(end - 2, "::");
      add({part.first, named ? end - 1 : end});
      if (named) names.push_back(tokens[end - 1].text);
      out += ",";
    }
    out += ">";
  }

  // The token before, or the first of `a<b>`.
  uint32_t before_name(uint32_t index) {
    index--;
    for (int depth = 0; index > declaration.start; index--) {
      depth += tokens.is(index, ">") ? 1 : tokens.is(index, "<") ? -1 : 0;
      if (depth == 0 && !tokens.is(index, "<")) break;
    }
    return index;
  }

  void add_operator() {
    for (uint32_t index = declaration.name + 1; index + 1 < declaration.parameters.first; index++)
      add({index, index + 1});
  }

  void add_parameter(Range part) {
    uint32_t end = part.first;
    while (end < part.last && !tokens.is(end, "=")) end = uint32_t(tokens.after_group(end));
    while (end > part.first && tokens.is(end - 1, "]") && opens_attribute(tokens, tokens[end - 1].partner))
      end = tokens[end - 1].partner;
    bool named = end - part.first >= 2 && tokens.is_identifier(end - 1) &&
                 !one_of(tokens[end - 2].text, {"::", "const", "constant", "device", "thread", "threadgroup",
                                                "unsigned", "signed", "typename"});
    add({part.first, named ? end - 1 : end});
    out += ",";
  }

  void add_qualifiers() {
    bool is_const = false;
    for (uint32_t index = declaration.parameters.last + 1;
         index < declaration.tokens.last && !one_of(tokens[index].text, {"{", ";", ":", "->", "="}); index++)
      is_const |= one_of(tokens[index].text, {"const", "constant"});
    if (is_const) out += " const";
  }

  void add(Range range) {
    bool is_const = false;
    for (uint32_t index = range.first; index < range.last; index++) {
      std::string_view text = tokens[index].text;
      if (text == "constant" && !keep_spaces) text = "const";
      if ((is_space(text) && !keep_spaces) || (text == "const" && is_const)) continue;
      is_const = text == "const" || (is_const && tokens.is_identifier(index));
      auto position = std::find(names.begin(), names.end(), text);
      out += " " + (position == names.end() ? std::string(text) : "$" + std::to_string(position - names.begin()));
    }
  }

  const Rewriter &rewriter;
  const TokenList &tokens;
  const Declaration &declaration;
  const bool keep_spaces;
  std::vector<std::string_view> names;
  std::string out;
};

bool may_collide(const Rewriter &rewriter, const Declaration &declaration) {
  if (declaration.name == none) return false;
  switch (declaration.kind) {
  case DeclarationKind::function:
    return declaration.body.exists() || rewriter.program.scopes[declaration.scope].is_class;
  case DeclarationKind::type: return declaration.body.exists() && declaration.template_arguments.exists();
  case DeclarationKind::variable: return declaration.template_arguments.exists();
  default: return false;
  }
}

// A conversion of objects of a thread must accept temporaries too, which in the strict text are in no space that it
// could name.
void strip_space(Rewriter &rewriter, const Declaration &method, bool constructs) {
  bool converts = rewriter.tokens.is(method.name, "operator") && rewriter.tokens.is_identifier(method.name + 1);
  for (uint32_t index = method.parameters.last + 1;
       index < method.tokens.last && !one_of(rewriter.tokens[index].text, {"{", ";", ":"}); index++)
    if ((constructs && is_space(rewriter.tokens[index].text)) || (converts && rewriter.tokens.is(index, "thread")))
      rewriter.erase(index, index + 1);
}

// Without an address space in its header a second definition is the program's own mistake, which clang reports.
bool has_space(const Rewriter &rewriter, const Declaration &declaration) {
  uint32_t end = declaration.body.exists() ? declaration.body.first : declaration.tokens.last;
  for (uint32_t index = declaration.tokens.first; index < end; index++)
    if (is_space(rewriter.tokens[index].text)) return true;
  return false;
}

} // namespace

void drop_duplicates(Rewriter &rewriter) {
  std::set<std::string> seen, constructors;
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (!may_collide(rewriter, declaration)) continue;
    bool constructs = is_constructor(rewriter, declaration), spaced = has_space(rewriter, declaration);
    bool is_method =
        rewriter.program.scopes[declaration.scope].is_class || rewriter.tokens.is(declaration.name - 1, "::");
    if (declaration.kind == DeclarationKind::function && is_method) strip_space(rewriter, declaration, constructs);
    if (constructs && !constructors.insert(Signature(rewriter, declaration, true).text()).second && spaced)
      rewriter.strict().erase(declaration.tokens.first, declaration.tokens.last);
    if (!seen.insert(Signature(rewriter, declaration, false).text()).second && spaced)
      rewriter.flat().erase(declaration.tokens.first, declaration.tokens.last);
  }
}

} // namespace mrt
