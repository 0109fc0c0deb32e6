// Constructs in which MSL differs from clang's two modes: pointers to pointers with adjacent address spaces, unsigned
// numbers of elements, functions and temporaries passed by reference, and asynchronous copies, which are declared under
// the names of Apple's compiler.
#include "rewrite/internal.h"

namespace mrt {
namespace {

bool is_qualifier(std::string_view text) { return one_of(text, {"const", "volatile"}); }

// Rewrites `thread device T *const *p` as `device T *const thread *p`.
void move_outer_space(Rewriter &rewriter, uint32_t first) {
  const TokenList &tokens = rewriter.tokens;
  uint32_t second = first + 1;
  while (is_qualifier(tokens[second].text)) second++;
  if (second >= tokens.size() || !is_space(tokens[second].text) || tokens.is(first, tokens[second].text)) return;
  uint32_t index = second + 1;
  while (index < tokens.size() && (tokens.is_identifier(index) || tokens.is(index, "::") || tokens.is(index, "<")))
    index = tokens.is(index, "<") ? after_angles(tokens, index, uint32_t(tokens.size())) : index + 1;
  uint32_t count = 0, last = none;
  for (; index < tokens.size() && (tokens.is(index, "*") || is_qualifier(tokens[index].text)); index++)
    if (tokens.is(index, "*")) count++, last = index;
  if (count < 2) return;
  const uint32_t outer = tokens.is(second, "thread") ? second : first;
  const std::string_view space = tokens[outer].text;
  rewriter.strict().insert_before(last, space == "device"        ? "__global "
                                        : space == "threadgroup" ? "__local "
                                        : space == "constant"    ? "__constant "
                                                                 : "__private ");
  if (rewriter.result.spaced && space != "thread") rewriter.flat().insert_before(last, flat_space(space, true) + " ");
  rewriter.erase(outer, outer + 1);
}

// Removes the declaration from `typedef enum n : t n; enum n : t { … }`, to which NS_ENUM expands in Xcode's template:
// clang accepts an underlying type only together with the enumerators. The name refers to the enumeration anyway.
void declare_enumeration(Rewriter &rewriter, uint32_t first) {
  const TokenList &tokens = rewriter.tokens;
  if (!tokens.is(first + 1, "enum") || !tokens.is_identifier(first + 2) || !tokens.is(first + 3, ":")) return;
  uint32_t end = first + 4;
  while (end < tokens.size() && (tokens.is_identifier(end) || tokens.is(end, "::"))) end++;
  if (!tokens.is(end, ";") || end < first + 6 || !tokens.is(end - 1, tokens[first + 2].text)) return;
  rewriter.erase(first, first + 1);
  rewriter.erase(end - 1, end);
}

// ---------------------------------------------------------------- templates

struct TemplateParameter {
  Range tokens; // without a default argument
  uint32_t name;
};

std::vector<TemplateParameter> template_parameters(const TokenList &tokens, Range header) {
  std::vector<TemplateParameter> found;
  for (Range part : split_commas(tokens, {header.first + 2, header.last - 1})) {
    uint32_t end = part.first;
    while (end < part.last && !tokens.is(end, "=")) end++;
    if (end - part.first >= 2 && tokens.is_identifier(end - 1)) found.push_back({{part.first, end}, end - 1});
  }
  return found;
}

// `vec<T, N>` accepts any integer type for N when it is deduced; here N must be an int.
bool counts_elements(const TokenList &tokens, Range parameters, std::string_view name) {
  for (uint32_t index = parameters.first; index + 1 < parameters.last; index++) {
    if (!one_of(tokens[index].text, {"vec", "packed_vec", "matrix"}) || !tokens.is(index + 1, "<")) continue;
    const uint32_t after = after_angles(tokens, index + 1, parameters.last);
    for (uint32_t inner = index + 2; inner + 1 < after; inner++)
      if (tokens.is(inner, name) && one_of(tokens[inner - 1].text, {",", "<"}) &&
          one_of(tokens[inner + 1].text, {",", ">"}))
        return true;
  }
  return false;
}

bool is_counted_in_int(const TokenList &tokens, Range parameters, const TemplateParameter &parameter) {
  return one_of(tokens[parameter.tokens.first].text,
                {"unsigned", "uint", "size_t", "ushort", "short", "long", "ulong", "uchar", "uint32_t", "int64_t",
                 "uint64_t", "uint16_t", "uint8_t"}) &&
         counts_elements(tokens, parameters, tokens[parameter.name].text);
}

void count_in_int(Rewriter &rewriter, Range header, Range parameters) {
  for (const TemplateParameter &parameter : template_parameters(rewriter.tokens, header)) {
    if (!is_counted_in_int(rewriter.tokens, parameters, parameter)) continue;
    rewriter.replace(parameter.tokens.first, "int");
    rewriter.erase(parameter.tokens.first + 1, parameter.name);
  }
}

// The positions of a type's name and of `thread`, if these are the only tokens before `&` or `&&`; else `none`.
struct Referred {
  uint32_t type = none, space = none;
};

Referred referred(const TokenList &tokens, uint32_t first, uint32_t reference) {
  Referred found;
  for (uint32_t index = first; index < reference; index++) {
    if (tokens.is(index, "thread")) found.space = index;
    else if (tokens.is(index, "const")) continue;
    else if (found.type != none) return {};
    else found.type = index;
  }
  return found;
}

bool is_called(const TokenList &tokens, Range body, std::string_view name) {
  if (!body.exists()) return false;
  for (uint32_t index = body.first; index + 1 < body.last; index++)
    if (tokens.is(index, name) && tokens.is(index + 1, "(")) return true;
  return false;
}

// `template <typename T> void take(thread T &&x)`: T is a reference to the argument, whatever its address space.
// `template <typename F> void call(const thread F &f)`, with `f(…)` in its body: the argument may be a function or a
// temporary. In the strict text neither has an address space.
void free_reference(Rewriter &rewriter, const Declaration &declaration) {
  const TokenList &tokens = rewriter.tokens;
  for (Range part : split_commas(tokens, declaration.parameters)) {
    uint32_t reference = part.last - 1;
    if (tokens.is_identifier(reference) && reference > part.first) reference--;
    const uint32_t name = reference + 1;
    if (tokens.is(reference, "...") && reference > part.first) reference--;
    bool forwards = tokens.is(reference, "&&");
    for (uint32_t index = part.first; index < reference; index++) forwards &= !tokens.is(index, "const");
    if (!forwards && !tokens.is(reference, "&")) continue;
    if (!forwards && !(name < part.last && is_called(tokens, declaration.body, tokens[name].text))) continue;
    const auto [type, space] = referred(tokens, part.first, reference);
    if (type == none || space == none) continue;
    for (Range header : declaration.templates)
      for (const TemplateParameter &parameter : template_parameters(tokens, header))
        if (tokens.is(type, tokens[parameter.name].text)) rewriter.strict().erase(space, space + 1);
  }
}

// ---------------------------------------------------------------- temporaries

std::string_view strict_space(std::string_view text) {
  return text == "device"        ? "__global"
         : text == "threadgroup" ? "__local"
         : text == "thread"      ? "__private"
                                 : "__constant";
}

// Returns the strict text of a range, without attributes and specifiers of linkage.
std::string strict_text(const Rewriter &rewriter, Range range) {
  const TokenList &tokens = rewriter.tokens;
  std::string text;
  for (uint32_t index = range.first; index < range.last; index++) {
    if (opens_attribute(tokens, index)) index = tokens[index].partner;
    else if (one_of(tokens[index].text, {"__attribute__", "__attribute"})) index = tokens[index + 1].partner;
    else if (!one_of(tokens[index].text, {"inline", "static", "constexpr", "METAL_FUNC"}))
      text +=
          (is_space(tokens[index].text) ? std::string(strict_space(tokens[index].text)) : rewriter.text(index)) + " ";
  }
  return text;
}

struct Argument {
  Range tokens;
  uint32_t name;
  std::string type; // for `const thread T &name`, whose type a template deduces; else empty
};

// Returns the function's parameters if all have names and none has a default, is a pack or has brackets; else none.
std::vector<Argument> arguments_of(const Rewriter &rewriter, const Declaration &declaration,
                                   const std::vector<TemplateParameter> &deduced) {
  const TokenList &tokens = rewriter.tokens;
  std::vector<Argument> found;
  for (Range part : split_commas(tokens, declaration.parameters)) {
    if (part.size() < 2 || !tokens.is_identifier(part.last - 1)) return {};
    Argument argument = {part, part.last - 1, {}};
    bool is_const = false, is_thread = false, is_deduced = deduced.empty();
    uint32_t pointer = part.first; // the qualifiers of the object itself follow the last `*`
    for (uint32_t index = part.first; index < part.last; index++)
      if (tokens.is(index, "*")) pointer = index + 1;
    for (uint32_t index = part.first; index < part.last; index++) {
      if (one_of(tokens[index].text, {"=", "...", "(", "[", "&&"})) return {};
      is_const |= index >= pointer && tokens.is(index, "const");
      is_thread |= index >= pointer && tokens.is(index, "thread");
      for (const TemplateParameter &parameter : deduced)
        is_deduced |= index < argument.name && tokens.is(index, tokens[parameter.name].text);
      if (index + 2 >= part.last || (index >= pointer && one_of(tokens[index].text, {"const", "thread"}))) continue;
      const bool is_const_twice =
          tokens.is(index + 1, "const") || (index > part.first && tokens.is(index - 1, "const"));
      if (tokens.is(index, "constant") && !is_const_twice) argument.type += "const ";
      argument.type +=
          (is_space(tokens[index].text) ? std::string(strict_space(tokens[index].text)) : rewriter.text(index)) + " ";
    }
    if (!is_const || !is_thread || !is_deduced || !tokens.is(part.last - 2, "&")) argument.type.clear();
    found.push_back(argument);
  }
  return found;
}

// Returns the template's parameters. The list is empty if a parameter has no name or has a default.
std::vector<TemplateParameter> deduced_parameters(const TokenList &tokens, Range header) {
  for (uint32_t index = header.first; index < header.last; index++)
    if (one_of(tokens[index].text, {"=", "..."})) return {};
  std::vector<TemplateParameter> found = template_parameters(tokens, header);
  return found.size() == split_commas(tokens, {header.first + 2, header.last - 1}).size() ? found : decltype(found)();
}

// Returns whether another function that is not a template has the same name and number of parameters.
bool is_overloaded(const Rewriter &rewriter, const Declaration &declaration) {
  const TokenList &tokens = rewriter.tokens;
  auto text = [&](const Declaration &each) { return tokens.join(each.parameters.first, each.parameters.last); };
  for (const Declaration &other : rewriter.program.declarations)
    if (other.kind == DeclarationKind::function && other.name != none && other.parameters.exists() &&
        other.templates.empty() && tokens.is(other.name, tokens[declaration.name].text) &&
        split_commas(tokens, other.parameters).size() == split_commas(tokens, declaration.parameters).size() &&
        text(other) != text(declaration))
      return true;
  return false;
}

// Clang does not bind `const thread float &x` to a temporary, which has no address space, and does not deduce T of
// `const thread T &x` from one. In the strict text, an additional function accepts temporaries and copies them to an
// address space. If the function is overloaded, it accepts those of exactly the parameter's type, for which overload
// resolution selects this function.
void take_temporaries(Rewriter &rewriter, const Declaration &declaration) {
  constexpr size_t most = 3;
  const TokenList &tokens = rewriter.tokens;
  const bool is_template = !declaration.templates.empty(), is_defined = declaration.body.exists();
  const Range before = {declaration.start, declaration.name},
              after = {declaration.parameters.last + 1,
                       is_defined ? declaration.body.first - 1 : declaration.parameters.last + 1};
  const bool returns = before.first < before.last && !tokens.is(before.last - 1, "::") &&
                       !one_of(tokens[before.last - 1].text, {"explicit", "constexpr", "inline"});
  if (declaration.templates.size() > 1 || declaration.template_arguments.exists() || !returns ||
      !tokens.is_identifier(declaration.name) || tokens.is(declaration.name, "operator"))
    return;
  // Clang's errors about methods are filtered (diagnostics.cpp), and so are those about templates that are only
  // declared.
  if (is_template ? !is_defined : rewriter.program.scopes[declaration.scope].is_class) return;
  for (uint32_t index = before.first; index < before.last; index++)
    if (one_of(tokens[index].text, {"auto", "friend", "operator", "kernel"})) return;
  const std::vector<TemplateParameter> deduced =
      is_template ? deduced_parameters(tokens, declaration.templates[0]) : std::vector<TemplateParameter>();
  const std::vector<Argument> arguments = arguments_of(rewriter, declaration, deduced);
  const size_t count = std::count_if(arguments.begin(), arguments.end(), [](auto &each) { return !each.type.empty(); });
  if (is_template == deduced.empty() || count == 0 || count > most) return;
  const std::string test = is_overloaded(rewriter, declaration) ? "__is_same(" : "__is_convertible_to(";
  std::string header, names;
  for (const TemplateParameter &parameter : deduced) {
    const std::string_view name = tokens[parameter.name].text;
    const bool counts = is_counted_in_int(tokens, declaration.parameters, parameter);
    header +=
        (header.empty() ? "" : ", ") + (counts ? "int " + std::string(name) : strict_text(rewriter, parameter.tokens));
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  for (size_t mask = 1; mask < size_t(1) << count; mask++) {
    std::string types = header, unnamed = "true", parameters, copies, passed;
    size_t bit = 0;
    for (const Argument &argument : arguments) {
      const std::string name = rewriter.text(argument.name);
      const bool is_temporary = !argument.type.empty() && mask >> bit++ & 1;
      std::string parameter = strict_text(rewriter, argument.tokens);
      if (is_temporary) {
        parameter = is_template ? argument.type + "const &&" + name : "mrt_of_" + name + " &&" + name;
        if (!is_template) types += (types.empty() ? "typename mrt_of_" : ", typename mrt_of_") + name;
        if (!is_template)
          unnamed += " && !__is_lvalue_reference(mrt_of_" + name + ") && " + test + "mrt_of_" + name + ", " +
                     argument.type + ")";
        copies += argument.type + "const __private mrt_" + name + " = " + name + "; ";
      }
      parameters += (parameters.empty() ? "" : ", ") + parameter;
      passed += (passed.empty() ? "" : ", ") + (is_temporary ? "mrt_" + name : name);
    }
    const std::string name = rewriter.text(declaration.name);
    const std::string result = strict_text(rewriter, before);
    const std::string head = " template <" + types + "> " +
                             (is_template ? result : "metal::enable_if_t<" + unnamed + ", " + result + "> ") + name +
                             "(" + parameters + ") " + strict_text(rewriter, after) +
                             (has_object_in_thread(rewriter, declaration) ? "__private " : "");
    const std::string body =
        "{ " + copies + "return " + name + (is_template ? "<" + names + ">(" : "(") + passed + "); }";
    rewriter.strict().insert_after(declaration.tokens.last - 1, head + (is_defined ? body : ";"));
  }
}

// ---------------------------------------------------------------- asynchronous copies

// Apple's names for asynchronous copies, and the functions that implement them (mrt/async_copy.h).
struct Builtin {
  std::string_view prefix, function;
};
constexpr Builtin builtins[] = {{"air.simdgroup_async_copy_1d.", "mrt::async_copy_1d"},
                                {"air.simdgroup_async_copy_2d.", "mrt::async_copy_2d"},
                                {"air.wait_simdgroup_events", "mrt::wait_events"}};

const Builtin *builtin_named(std::string_view name) {
  for (const Builtin &builtin : builtins)
    if (name.substr(0, builtin.prefix.size()) == builtin.prefix) return &builtin;
  return nullptr;
}

// Renames the parameters in the flat text. Returns the new names, as arguments.
std::string name_parameters(Rewriter &rewriter, const Declaration &declaration) {
  const TokenList &tokens = rewriter.tokens;
  std::string arguments;
  size_t number = 0;
  for (Range part : split_commas(tokens, declaration.parameters)) {
    const std::string argument = "mrt_a" + std::to_string(number++);
    const bool named = part.size() >= 2 && tokens.is_identifier(part.last - 1) &&
                       (one_of(tokens[part.last - 2].text, {"*", "&"}) ||
                        (tokens.is_identifier(part.last - 2) && !is_space(tokens[part.last - 2].text) &&
                         !is_qualifier(tokens[part.last - 2].text)));
    if (named) rewriter.flat().replace(part.last - 1, argument);
    else rewriter.flat().insert_after(part.last - 1, " " + argument);
    arguments += (arguments.empty() ? "" : ", ") + argument;
  }
  return arguments;
}

// Replaces the declaration by a function that calls the implementation; the strict text keeps the declaration without
// Apple's name. Without address spaces, both directions of a copy have the same function in the flat text, so `defined`
// lists the functions that already exist.
void define_builtin(Rewriter &rewriter, const Declaration &declaration, uint32_t label,
                    std::set<std::string> &defined) {
  const TokenList &tokens = rewriter.tokens;
  const std::string_view name = tokens[label + 2].text;
  const Builtin *builtin = builtin_named(name.substr(1, name.size() - 2));
  if (!builtin)
    return rewriter.error(label, "the compiler's function " + std::string(name) +
                                     " is not available: only the asynchronous copies of SIMD-groups are");
  rewriter.erase(label, tokens[label + 1].partner + 1);
  std::string shape = rewriter.text(declaration.name);
  for (uint32_t index = declaration.parameters.first; index < declaration.parameters.last; index++)
    if (!is_space(tokens[index].text)) shape += " " + rewriter.text(index);
  if (!rewriter.result.spaced && !defined.insert(shape).second)
    return rewriter.flat().erase(declaration.tokens.first, declaration.tokens.last);
  const std::string arguments = name_parameters(rewriter, declaration);
  rewriter.flat().insert_before(declaration.start, "static ");
  std::string type;
  for (uint32_t index = declaration.start; index < declaration.name; index++)
    if (!is_space(tokens[index].text)) type += rewriter.text(index) + " ";
  const std::string call = std::string(builtin->function) + "(" + arguments + "); }";
  rewriter.flat().replace(declaration.tokens.last - 1,
                          tokens.is(declaration.name - 1, "void") ? "{ " + call : "{ return (" + type + ")" + call);
}

// From Metal 4 on, tensors have subscripts of several numbers: `t[i, j]` becomes `t[mrt::Subscripts()(i, j)]`
// (mrt/tensor.h). The brackets of captures, structured bindings and attributes follow other tokens.
void join_subscripts(Rewriter &rewriter, uint32_t open) {
  const TokenList &tokens = rewriter.tokens;
  if (open == 0 || !(tokens.is_identifier(open - 1) || one_of(tokens[open - 1].text, {")", "]", ">"}))) return;
  if (one_of(tokens[open - 1].text, {"auto", "return", "case", "else", "do"})) return;
  const Range inside{open + 1, uint32_t(tokens[open].partner)};
  if (opens_attribute(tokens, open) || split_commas(tokens, inside).size() < 2) return;
  for (Edits *edits : {&rewriter.strict(), &rewriter.flat()}) {
    edits->insert_after(open, "mrt::Subscripts()(");
    edits->insert_before(inside.last, ")");
  }
}

// `decltype(name)` of a variable in the thread's memory: in the strict text the variable's type has an address space,
// which a member of that type, or a variable elsewhere, can't have. In MSL it has none.
void free_decltype(Rewriter &rewriter, uint32_t index) {
  const TokenList &tokens = rewriter.tokens;
  if (!tokens.is(index + 1, "(") || !tokens.is_identifier(index + 2) || !tokens.is(index + 3, ")")) return;
  rewriter.strict().insert_before(index, "metal::mrt_unplaced<");
  rewriter.strict().insert_after(index + 3, ">");
}

} // namespace

// Recognizes `type name(…) __asm("air.…");`.
bool names_builtin(const TokenList &tokens, uint32_t index) {
  return index > 0 && tokens.is(index - 1, ")") && tokens.is(index + 1, "(") &&
         tokens[index + 2].kind == TokenKind::string && tokens.is(index + 3, ")") &&
         tokens[index + 2].text.substr(0, 5) == "\"air.";
}

void rewrite_spellings(Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  std::set<std::string> defined;
  for (uint32_t index = 0; index + 1 < tokens.size(); index++) {
    if (is_space(tokens[index].text)) move_outer_space(rewriter, index);
    if (tokens.is(index, "typedef")) declare_enumeration(rewriter, index);
    if (rewriter.version >= 400 && tokens.is(index, "[")) join_subscripts(rewriter, index);
  }
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (declaration.kind != DeclarationKind::function || !declaration.parameters.exists()) continue;
    for (uint32_t index = declaration.body.first; declaration.body.exists() && index + 3 < declaration.body.last;
         index++)
      if (tokens.is(index, "decltype")) free_decltype(rewriter, index);
    for (Range header : declaration.templates) count_in_int(rewriter, header, declaration.parameters);
    free_reference(rewriter, declaration);
    take_temporaries(rewriter, declaration);
    for (uint32_t index = declaration.parameters.last; index < declaration.tokens.last && !declaration.body.exists();
         index++)
      if (one_of(tokens[index].text, {"asm", "__asm", "__asm__"}) && names_builtin(tokens, index))
        define_builtin(rewriter, declaration, index, defined);
  }
}

} // namespace mrt
