// What MSL spells otherwise than clang's two modes: pointers to pointers whose spaces stand together, numbers of
// elements that are unsigned, functions that are passed by reference, and the asynchronous copies, which are declared
// by the names that Apple's compiler gives them.
#include "rewrite/internal.h"

namespace mrt {
namespace {

bool is_qualifier(std::string_view text) { return one_of(text, {"const", "volatile"}); }

// `thread device T *const *p` is `device T *const thread *p`.
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

// `vec<T, N>` takes any integer as N when it is deduced; here N is an int.
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

void count_in_int(Rewriter &rewriter, Range header, Range parameters) {
  for (const TemplateParameter &parameter : template_parameters(rewriter.tokens, header)) {
    const uint32_t first = parameter.tokens.first;
    const bool is_integer =
        one_of(rewriter.tokens[first].text, {"unsigned", "uint", "size_t", "ushort", "short", "long", "ulong", "uchar",
                                             "uint32_t", "int64_t", "uint64_t", "uint16_t", "uint8_t"});
    if (!is_integer || !counts_elements(rewriter.tokens, parameters, rewriter.tokens[parameter.name].text)) continue;
    rewriter.replace(first, "int");
    rewriter.erase(first + 1, parameter.name);
  }
}

// `template <typename F> void call(thread F &&f)`, in whose body `f(…)` stands: what is passed may be a function, or an
// object that has no name, neither of which the strict text has in a space.
void free_callable(Rewriter &rewriter, const Declaration &declaration) {
  const TokenList &tokens = rewriter.tokens;
  for (Range part : split_commas(tokens, declaration.parameters)) {
    uint32_t end = part.last;
    while (end > part.first && one_of(tokens[end - 1].text, {"..."})) end--;
    if (end < part.first + 4 || !tokens.is_identifier(end - 1) || !one_of(tokens[end - 2].text, {"&", "&&"})) continue;
    bool is_called = false;
    for (uint32_t index = declaration.body.first; index + 1 < declaration.body.last; index++)
      is_called |= tokens.is(index, tokens[end - 1].text) && tokens.is(index + 1, "(");
    if (!is_called) continue;
    uint32_t type = none, space = none;
    bool only_name = true;
    for (uint32_t index = part.first; index < end - 2; index++) {
      if (tokens.is(index, "thread")) space = index;
      else if (!tokens.is(index, "const")) only_name &= type == none, type = index;
    }
    if (type == none || space == none || !only_name) continue;
    for (Range header : declaration.templates)
      for (const TemplateParameter &parameter : template_parameters(tokens, header))
        if (tokens.is(type, tokens[parameter.name].text)) rewriter.strict().erase(space, space + 1);
  }
}

// ---------------------------------------------------------------- asynchronous copies

// What Apple's compiler calls them, and what runs them (mrt/async_copy.h).
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

// Gives each parameter a name of ours in the flat text; the names, as arguments.
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

// The declaration becomes a function that calls ours; the strict text keeps it without its name.
// Without spaces in the flat text, one for each direction would be two of the same: `defined` has what is there.
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

} // namespace

// `type name(…) __asm("air.…");`
bool names_builtin(const TokenList &tokens, uint32_t index) {
  return index > 0 && tokens.is(index - 1, ")") && tokens.is(index + 1, "(") &&
         tokens[index + 2].kind == TokenKind::string && tokens.is(index + 3, ")") &&
         tokens[index + 2].text.substr(0, 5) == "\"air.";
}

void rewrite_spellings(Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  std::set<std::string> defined;
  for (uint32_t index = 0; index + 1 < tokens.size(); index++)
    if (is_space(tokens[index].text)) move_outer_space(rewriter, index);
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (declaration.kind != DeclarationKind::function || !declaration.parameters.exists()) continue;
    for (Range header : declaration.templates) count_in_int(rewriter, header, declaration.parameters);
    if (declaration.body.exists()) free_callable(rewriter, declaration);
    for (uint32_t index = declaration.parameters.last; index < declaration.tokens.last && !declaration.body.exists();
         index++)
      if (one_of(tokens[index].text, {"asm", "__asm", "__asm__"}) && names_builtin(tokens, index))
        define_builtin(rewriter, declaration, index, defined);
  }
}

} // namespace mrt
