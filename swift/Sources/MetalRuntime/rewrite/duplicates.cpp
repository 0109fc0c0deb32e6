// Overloads and specializations that differ only in address spaces. If they are otherwise identical, they are
// duplicates in a flat text without address spaces, and only the first is kept. If not, the flat text keeps its address
// spaces, and clang chooses between them. Methods that differ only in the address space of their object are
// distinguished at run time (objects.cpp). In the strict text, only one of the constructors that differ in the address
// space of the object is kept: a constructor without an address space constructs objects in all address spaces,
// including temporaries.
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
  // `keep_spaces` applies to parameters and template arguments, never to the object of a method.
  Signature(const Rewriter &rewriter, const Declaration &declaration, bool keep_spaces)
      : rewriter(rewriter), tokens(rewriter.tokens), declaration(declaration), keep_spaces(keep_spaces) {}

  std::string text() {
    const Scope &scope = rewriter.program.scopes[declaration.scope];
    out = scope.is_class ? std::to_string(declaration.scope) : scope.path;
    for (Range header : declaration.templates) add_template(header);
    // Includes the class of a member that is defined outside it.
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
  // The parameters of a template are identified by position, since their names may differ.
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

  // Returns the token before `index`, or the first token of `a<b>`.
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
    add(type_of_parameter(tokens, part));
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

// A conversion of objects in the thread's address space must also accept temporaries, which have no address space that
// the strict text could give.
void strip_space(Rewriter &rewriter, const Declaration &method, bool constructs) {
  bool converts = rewriter.tokens.is(method.name, "operator") && rewriter.tokens.is_identifier(method.name + 1);
  for (uint32_t index = method.parameters.last + 1;
       index < method.tokens.last && !one_of(rewriter.tokens[index].text, {"{", ";", ":"}); index++)
    if ((constructs && is_space(rewriter.tokens[index].text)) || (converts && rewriter.tokens.is(index, "thread")))
      rewriter.erase(index, index + 1);
}

// Excludes friends, which have no object, and destructors, since only objects of a thread are destroyed.
bool is_method(const Rewriter &rewriter, const Declaration &declaration) {
  return declaration.kind == DeclarationKind::function && rewriter.program.scopes[declaration.scope].is_class &&
         !rewriter.tokens.is(declaration.start - 1, "friend") && !rewriter.tokens.is(declaration.name - 1, "~") &&
         !is_constructor(rewriter, declaration);
}

// If there is no address space in its header, a second definition is a mistake of the program, which clang reports.
bool has_space(const Rewriter &rewriter, const Declaration &declaration) {
  uint32_t end = declaration.body.exists() ? declaration.body.first : declaration.tokens.last;
  for (uint32_t index = declaration.tokens.first; index < end; index++)
    if (is_space(rewriter.tokens[index].text)) return true;
  return false;
}

// While a kernel runs, only objects of the thread are constructed.
bool constructs_in_thread(const Rewriter &rewriter, const Declaration &declaration) {
  if (!may_collide(rewriter, declaration) || !is_constructor(rewriter, declaration)) return false;
  for (uint32_t index = declaration.parameters.last + 1;
       index < declaration.tokens.last && !one_of(rewriter.tokens[index].text, {"{", ";", ":"}); index++)
    if (one_of(rewriter.tokens[index].text, {"device", "threadgroup", "constant"})) return false;
  return true;
}

// ---------------------------------------------------------------- overloads that differ in address spaces

// Returns the tokens of a range without address spaces.
std::string tokens_without_spaces(const TokenList &tokens, Range range) {
  std::string out;
  bool is_const = false;
  for (uint32_t index = range.first; index < range.last; index++) {
    std::string_view text = tokens[index].text == "constant" ? "const" : tokens[index].text;
    if (is_space(text) || (text == "const" && is_const)) continue;
    is_const = text == "const";
    out += " " + std::string(text);
  }
  return out;
}

} // namespace

Range type_of_parameter(const TokenList &tokens, Range part) {
  uint32_t end = part.first;
  while (end < part.last && !tokens.is(end, "=")) end = uint32_t(tokens.after_group(end));
  while (end > part.first && tokens.is(end - 1, "]") && opens_attribute(tokens, tokens[end - 1].partner))
    end = tokens[end - 1].partner;
  const bool named = end - part.first >= 2 && tokens.is_identifier(end - 1) &&
                     !one_of(tokens[end - 2].text, {"::", "const", "constant", "device", "thread", "threadgroup",
                                                    "unsigned", "signed", "typename"});
  return {part.first, named ? end - 1 : end};
}

// Returns a declaration without its address spaces and the qualifiers of its object.
std::string shape(const TokenList &tokens, const Declaration &declaration) {
  if (declaration.kind != DeclarationKind::function) return tokens_without_spaces(tokens, declaration.tokens);
  const uint32_t close = declaration.parameters.last;
  uint32_t rest = close + 1;
  while (rest < declaration.tokens.last && (is_space(tokens[rest].text) || tokens.is(rest, "const"))) rest++;
  return tokens_without_spaces(tokens, {declaration.tokens.first, close}) +
         tokens_without_spaces(tokens, {rest, declaration.tokens.last});
}

namespace {

std::string_view space_in(const TokenList &tokens, Range range) {
  for (uint32_t index = range.first; index < range.last; index++)
    if (is_space(tokens[index].text)) return tokens[index].text;
  return {};
}

// Determines whether a call could refer to either of two functions that differ in an address space: their parameters at
// one position point to the same type, or to a type that a template deduces, in different address spaces.
class Rivals {
public:
  Rivals(const Rewriter &rewriter, const Declaration &a, const Declaration &b)
      : tokens(rewriter.tokens), a(a), b(b), first(split_commas(tokens, a.parameters)),
        second(split_commas(tokens, b.parameters)) {}

  bool differ_in_spaces() const {
    if (required(first) > second.size() || required(second) > first.size()) return false;
    for (size_t index = 0; index < std::min(first.size(), second.size()); index++) {
      const Range left = type_of(first[index]), right = type_of(second[index]);
      if (!points(left) || !points(right) || space_in(tokens, left) == space_in(tokens, right)) continue;
      if (is_deduced(a, left) || is_deduced(b, right) || pointee(left) == pointee(right)) return true;
    }
    return false;
  }

private:
  size_t required(const std::vector<Range> &parameters) const {
    return size_t(std::count_if(parameters.begin(), parameters.end(), [&](Range part) {
      return type_of(part).last == part.last && !tokens.is(part.last - 1, "...");
    }));
  }
  Range type_of(Range part) const { // without the default argument
    uint32_t end = part.first;
    while (end < part.last && !tokens.is(end, "=")) end = uint32_t(tokens.after_group(end));
    return {part.first, end};
  }
  bool points(Range part) const {
    for (uint32_t index = part.first; index < part.last; index++)
      if (one_of(tokens[index].text, {"*", "&", "["})) return true;
    return false;
  }
  bool is_deduced(const Declaration &declaration, Range part) const {
    for (Range header : declaration.templates)
      for (uint32_t name = header.first; name < header.last; name++)
        for (uint32_t index = part.first; index < part.last; index++)
          if (tokens.is_identifier(name) && tokens[name].text == tokens[index].text) return true;
    return false;
  }
  std::string pointee(Range part) const {
    std::string out;
    for (uint32_t index = part.first; index < part.last && !one_of(tokens[index].text, {"*", "&", "["}); index++)
      if (!is_space(tokens[index].text) && !one_of(tokens[index].text, {"const", "volatile"}))
        out += " " + std::string(tokens[index].text);
    return out;
  }

  const TokenList &tokens;
  const Declaration &a, &b;
  const std::vector<Range> first, second;
};

// Recognizes comparisons of types such as `is_same<T, device float *>`.
bool compares_spaces(const TokenList &tokens) {
  for (uint32_t index = 0; index + 1 < tokens.size(); index++)
    if (one_of(tokens[index].text, {"is_same", "is_same_v"}) && tokens.is(index + 1, "<") &&
        !space_in(tokens, {index + 1, after_angles(tokens, index + 1, uint32_t(tokens.size()))}).empty())
      return true;
  return false;
}

class Overloads {
public:
  explicit Overloads(Rewriter &rewriter) : rewriter(rewriter), tokens(rewriter.tokens) {}

  bool differ_in_spaces() {
    bool found = compares_spaces(tokens);
    for (const Declaration &declaration : rewriter.program.declarations) {
      if (!may_collide(rewriter, declaration)) continue;
      alike[Signature(rewriter, declaration, false).text()].push_back(&declaration);
      if (is_method(rewriter, declaration))
        of_objects[Signature(rewriter, declaration, true).text()].push_back(&declaration);
      const Scope &scope = rewriter.program.scopes[declaration.scope];
      if (declaration.kind == DeclarationKind::function && declaration.body.exists())
        named[(scope.is_class ? std::to_string(declaration.scope) : scope.path) + rewriter.text(declaration.name)]
            .push_back(&declaration);
    }
    for (const auto &[signature, group] : alike) found |= group_differs(group);
    for (const auto &[signature, group] : of_objects) tell_objects_apart(rewriter, group);
    for (const auto &[name, group] : named) found |= rivals_differ(group);
    return found;
  }

private:
  // For declarations that are the same without their address spaces.
  bool group_differs(const std::vector<const Declaration *> &group) {
    const Declaration &first = *group[0];
    // A single specialization for an address space would apply to all address spaces.
    if (group.size() == 1)
      return first.template_arguments.exists() && first.kind != DeclarationKind::function &&
             !space_in(tokens, first.template_arguments).empty();
    bool differs = false;
    for (const Declaration *other : group) {
      if (other == &first || shape(tokens, *other) == shape(tokens, first)) continue;
      if (!has_space(rewriter, *other) && !has_space(rewriter, first)) continue; // clang reports the second one
      if (is_constructor(rewriter, first)) continue; // only constructors of a thread's objects run
      differs |= Signature(rewriter, *other, true).text() != Signature(rewriter, first, true).text();
    }
    return differs;
  }

  bool rivals_differ(const std::vector<const Declaration *> &group) const {
    for (const Declaration *first : group)
      for (const Declaration *second : group) {
        if (first == second) break;
        if (Signature(rewriter, *first, false).text() != Signature(rewriter, *second, false).text() &&
            Rivals(rewriter, *first, *second).differ_in_spaces())
          return true;
      }
    return false;
  }

  Rewriter &rewriter;
  const TokenList &tokens;
  std::map<std::string, std::vector<const Declaration *>> alike, of_objects, named;
};

} // namespace

void find_overloads(Rewriter &rewriter) { rewriter.result.spaced = Overloads(rewriter).differ_in_spaces(); }

void drop_duplicates(Rewriter &rewriter) {
  std::set<std::string> seen, constructors, of_thread;
  for (const Declaration &declaration : rewriter.program.declarations)
    if (constructs_in_thread(rewriter, declaration)) of_thread.insert(Signature(rewriter, declaration, false).text());
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (!may_collide(rewriter, declaration)) continue;
    bool constructs = is_constructor(rewriter, declaration), spaced = has_space(rewriter, declaration);
    bool is_member =
        rewriter.program.scopes[declaration.scope].is_class || rewriter.tokens.is(declaration.name - 1, "::");
    if (declaration.kind == DeclarationKind::function && is_member) strip_space(rewriter, declaration, constructs);
    if (constructs && !constructors.insert(Signature(rewriter, declaration, true).text()).second && spaced)
      rewriter.strict().erase(declaration.tokens.first, declaration.tokens.last);
    const bool is_of_other_object = constructs && !constructs_in_thread(rewriter, declaration) &&
                                    of_thread.count(Signature(rewriter, declaration, false).text());
    if (rewriter.renamed.count(declaration.tokens.first)) continue;
    if (is_of_other_object ||
        (!seen.insert(Signature(rewriter, declaration, rewriter.result.spaced).text()).second && spaced))
      rewriter.flat().erase(declaration.tokens.first, declaration.tokens.last);
  }
}

} // namespace mrt
