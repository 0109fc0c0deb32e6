// Address spaces, attributes and literals: rewritten to clang's spelling, and for the flat text without address spaces.
#include "rewrite/internal.h"

namespace mrt {
namespace {

// Attributes that have the same meaning in clang.
constexpr std::string_view kept_attributes[] = {"maybe_unused", "nodiscard",     "fallthrough", "likely",  "unlikely",
                                                "deprecated",   "always_inline", "noinline",    "noreturn"};
// MSL's attributes that have no meaning in the compiled texts; those of kernels are processed elsewhere.
constexpr std::string_view dropped_attributes[] = {"kernel",
                                                   "host_name",
                                                   "max_total_threads_per_threadgroup",
                                                   "required_threads_per_threadgroup",
                                                   "buffer",
                                                   "threadgroup",
                                                   "function_constant",
                                                   "user",
                                                   "id",
                                                   "unroll",
                                                   "visible",
                                                   "stitchable",
                                                   "extern",
                                                   "early_fragment_tests",
                                                   "raster_order_group",
                                                   "attribute",
                                                   "position",
                                                   "point_size",
                                                   "flat",
                                                   "center_perspective",
                                                   "vertex",
                                                   "fragment",
                                                   "mesh",
                                                   "object",
                                                   "stage_in",
                                                   "texture",
                                                   "sampler",
                                                   "color",
                                                   "imageblock_data",
                                                   "payload",
                                                   "depth",
                                                   "stencil",
                                                   "sample_mask",
                                                   "clip_distance",
                                                   "invariant",
                                                   "center_no_perspective",
                                                   "centroid_perspective",
                                                   "centroid_no_perspective",
                                                   "sample_perspective",
                                                   "sample_no_perspective",
                                                   "render_target_array_index",
                                                   "viewport_array_index",
                                                   "primitive_id",
                                                   "primitive_culled",
                                                   "vertex_id",
                                                   "instance_id"};

// If one of several attributes in a group must be removed, the others are removed too, unless that would change the
// meaning.
void rewrite_attribute(Rewriter &rewriter, uint32_t index) {
  const TokenList &tokens = rewriter.tokens;
  std::vector<Attribute> attributes;
  parse_attributes(tokens, index + 2, tokens[index].partner - 1, attributes);
  bool keep = true;
  for (const Attribute &attribute : attributes) {
    std::string_view name = tokens[attribute.name].text;
    bool scoped = tokens.is(attribute.name - 1, "::");
    if (scoped || one_of(name, kept_attributes)) continue;
    keep = false;
    if (!one_of(name, dropped_attributes) && !is_kernel_input(name))
      rewriter.report(attribute.name, Diagnostic::warning, "unknown attribute '" + std::string(name) + "' ignored");
  }
  if (!keep) return rewriter.erase(index, tokens[index].partner + 1);
  for (const Attribute &attribute : attributes) // clang has these only in its namespace
    if (!tokens.is(attribute.name - 1, "::") && one_of(tokens[attribute.name].text, {"always_inline", "noinline"}))
      rewriter.replace(attribute.name, "gnu::" + rewriter.text(attribute.name));
}

bool is_const_beside(const Rewriter &rewriter, uint32_t index) {
  const TokenList &tokens = rewriter.tokens;
  auto passes = [&](uint32_t token) { return one_of(tokens[token].text, {"static", "constexpr", "inline", "extern"}); };
  uint32_t before = index, after = index + 1;
  while (before > 0 && passes(before - 1)) before--;
  while (after < tokens.size() && passes(after)) after++;
  return (before > 0 && tokens.is(before - 1, "const")) || tokens.is(after, "const");
}

// Marks the address spaces of methods' objects and of their results: methods in the flat text accept objects in all
// address spaces, and `this` has none.
std::vector<bool> spaces_of_objects(const Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  std::vector<bool> found(tokens.size());
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (declaration.kind != DeclarationKind::function || !declaration.parameters.exists()) continue;
    for (uint32_t index = declaration.parameters.last + 1;
         index < declaration.tokens.last && !one_of(tokens[index].text, {"{", ";", ":", "=", "->"});
         index = uint32_t(tokens.after_group(index)))
      found[index] = is_space(tokens[index].text);
    // Such a method returns `*this` by reference.
    const bool in_space = std::any_of(found.begin() + declaration.parameters.last,
                                      found.begin() + declaration.tokens.last, [](bool each) { return each; });
    for (uint32_t index = declaration.start; in_space && index < declaration.name; index++)
      found[index] = is_space(tokens[index].text);
  }
  return found;
}

// `thread const device T *p`: the variable's address space, which is redundant, precedes that of the target. It is also
// redundant for the value of a function, variable or member, as in `thread T f();`, and for a constructor.
bool is_of_variable(const TokenList &tokens, uint32_t index) {
  if (!tokens.is(index, "thread")) return false;
  bool other = false;
  int names = 0; // of the type, and of what is declared
  for (uint32_t next = index + 1; next < tokens.size(); next = uint32_t(tokens.after_group(next))) {
    if (one_of(tokens[next].text, {"*", "&"})) return other;
    if (names > 0 && tokens.is(next, "(")) return !one_of(tokens[next + 1].text, {"*", "&"}); // of a constructor too
    if (names > 1 && one_of(tokens[next].text, {";", "=", ",", ")"})) return true;
    names += tokens.is_identifier(next) && !tokens.is(next - 1, "::") &&
             !one_of(tokens[next].text, {"const", "volatile", "unsigned", "signed", "struct", "typename", "inline"});
    if (tokens.is(next, "<")) next = after_angles(tokens, next, uint32_t(tokens.size())) - 1;
    else if (!tokens.is_identifier(next) && !tokens.is(next, "::")) return false;
    other |= one_of(tokens[next].text, {"device", "threadgroup", "constant"});
  }
  return false;
}

void rewrite_space(Rewriter &rewriter, uint32_t index, bool of_object) {
  std::string_view text = rewriter.tokens[index].text;
  if (is_of_variable(rewriter.tokens, index)) return rewriter.erase(index, index + 1);
  bool to_const = text == "constant" && !is_const_beside(rewriter, index);
  const char *strict = text == "device"        ? "__global"
                       : text == "threadgroup" ? "__local"
                       : text == "thread"      ? "__private"
                       : to_const              ? "const __constant"
                                               : "__constant";
  if (!rewriter.strict().is_erased(index)) rewriter.strict().replace(index, strict);
  if (rewriter.flat().is_erased(index)) return;
  const std::string flat = rewriter.result.spaced && !of_object ? flat_space(text, !to_const) : std::string();
  if (!flat.empty()) rewriter.flat().replace(index, flat);
  else if (to_const) rewriter.flat().replace(index, "const");
  else rewriter.flat().erase(index, index + 1);
}

// A literal without a suffix is a float in Metal, and the suffixes `h` and `bf` are Metal's (MSL 2.1).
void rewrite_literal(Rewriter &rewriter, uint32_t index) {
  if (rewriter.strict().is_erased(index)) return; // an initializer that has no effect
  std::string text = rewriter.text(index);
  if (std::string("qQwWiIjJ").find(text.back()) != std::string::npos) // clang extensions: wide and imaginary numbers
    return rewriter.error(index, "invalid suffix '" + text.substr(text.size() - 1) + "' on a constant");
  bool hexadecimal = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
  if (text.find_first_of(hexadecimal ? "pP" : ".eE") == std::string::npos) return;
  auto ends = [&](std::string_view suffix) {
    return text.size() > suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
  };
  if (ends("bf") || ends("BF")) return rewriter.replace(index, "bfloat(" + text.substr(0, text.size() - 2) + "f)");
  if (ends("h") || ends("H")) return rewriter.flat().replace(index, text.substr(0, text.size() - 1) + "f16");
  if (isdigit((unsigned char)text.back()) || text.back() == '.') rewriter.replace(index, text + "f");
}

// Static members that are defined again outside their class, as C++14 requires; in C++17 they are inline.
void drop_definitions(Rewriter &rewriter) {
  for (const Declaration &declaration : rewriter.program.declarations) {
    bool qualified = declaration.kind == DeclarationKind::variable && declaration.name > declaration.start &&
                     declaration.name != none && rewriter.tokens.is(declaration.name - 1, "::");
    if (qualified && declaration.initializer == none && !declaration.parameters.exists())
      rewriter.erase(declaration.tokens.first, declaration.tokens.last);
  }
}

// Returns the name of an array parameter such as `T values[4]`; else `none`.
uint32_t array_parameter(const TokenList &tokens, Range parameter) {
  for (uint32_t index = parameter.first; index < parameter.last; index = uint32_t(tokens.after_group(index))) {
    if (!tokens.is(index, "[") || opens_attribute(tokens, index) || index < parameter.first + 2 ||
        !tokens.is_identifier(index - 1))
      continue;
    return tokens.is_identifier(index - 2) || tokens.is(index - 2, ">") ? index - 1 : none;
  }
  return none;
}

// An array parameter points to the thread's memory unless it names another address space. Clang assumes this for a
// known type, but would deduce the address space of a deduced type from the argument. In the flat text, clang does not
// convert an array in another address space to a pointer.
void place_array_parameter(Rewriter &rewriter, Range parameter) {
  const TokenList &tokens = rewriter.tokens;
  const uint32_t name = array_parameter(tokens, parameter);
  if (name == none) return;
  std::string_view space;
  for (uint32_t index = parameter.first; index < name; index++)
    if (is_space(tokens[index].text)) space = tokens[index].text;
  if (space.empty()) return rewriter.strict().insert_before(name, "__private ");
  if (space == "thread" || !rewriter.result.spaced) return;
  const uint32_t after = uint32_t(tokens.after_group(name + 1));
  const bool of_arrays = tokens.is(after, "[") && !opens_attribute(tokens, after);
  rewriter.flat().replace(name, (of_arrays ? "(*" : "*") + rewriter.text(name) + (of_arrays ? ")" : ""));
  rewriter.flat().erase(name + 1, after);
}

} // namespace

// Returns clang's attribute for an address space. The thread's has none: such an object can't be in another space.
std::string flat_space(std::string_view space, bool is_const) {
  if (space == "device") return "__attribute__((opencl_global_device))";
  if (space == "threadgroup") return "__attribute__((opencl_local))";
  if (space == "constant") return std::string(is_const ? "" : "const ") + "__attribute__((opencl_global_host))";
  return {};
}

void rewrite_spaces(Rewriter &rewriter) {
  drop_definitions(rewriter);
  for (const Declaration &declaration : rewriter.program.declarations)
    if (declaration.parameters.exists())
      for (Range parameter : split_commas(rewriter.tokens, declaration.parameters))
        place_array_parameter(rewriter, parameter);
  const TokenList &tokens = rewriter.tokens;
  const std::vector<bool> of_objects = spaces_of_objects(rewriter);
  for (uint32_t index = 0; index < tokens.size(); index++) {
    if (tokens[index].kind == TokenKind::number) {
      rewrite_literal(rewriter, index);
    } else if (opens_attribute(tokens, index)) {
      rewrite_attribute(rewriter, index);
      index = tokens[index].partner;
    } else if (tokens.is_identifier(index) && is_space(tokens[index].text) &&
               !(index > 0 && one_of(tokens[index - 1].text, {".", "->", "::"}))) {
      rewrite_space(rewriter, index, of_objects[index]);
    }
  }
}

} // namespace mrt
