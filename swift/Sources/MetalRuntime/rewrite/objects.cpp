// Methods that differ only in the address space of their object. Only clang's C++ for OpenCL has address spaces of
// objects. So in the flat text one of the methods keeps the name, and first tests where its object is:
//   float get() const thread { return v; }       float get() const { if (it is in device) return other(); return v; }
//   float get() const device { return v + 1; }   float other() const { return v + 1; }
// In constant expressions, the method for the thread's address space is used.
#include "rewrite/internal.h"

namespace mrt {
namespace {

class Method {
public:
  Method(const Rewriter &rewriter, const Declaration &declaration)
      : rewriter(rewriter), tokens(rewriter.tokens), declaration(declaration) {
    for (uint32_t index = declaration.parameters.last + 1; index < declaration.tokens.last; index++) {
      if (one_of(tokens[index].text, {"{", ";", ":", "=", "->"})) break;
      if (is_space(tokens[index].text)) space = tokens[index].text;
    }
  }

  std::string_view space = "thread"; // of the object

  bool can_be_told() const { return declaration.body.exists(); }

  // Renames `f` in `float f()`; for an operator, the tokens up to its parameters. A conversion is named after its type.
  void rename(Edits &edits, const std::string &name) const {
    const uint32_t first = declaration.name, open = declaration.parameters.first - 1;
    for (uint32_t index = declaration.start; index < first; index++)
      if (tokens.is(index, "explicit")) edits.erase(index, index + 1);
    if (!tokens.is(first, "operator")) return edits.replace(first, name);
    edits.erase(first, first + 1);
    if (!converts()) edits.erase(first + 1, open);
    edits.insert_before(open, " " + name);
  }

  // Returns `name<T, n>(a, b)`, after naming each parameter that has no name; empty if a parameter cannot be passed on.
  std::string call(Edits &edits, const std::string &name) const {
    std::string text = declaration.templates.empty() ? name : "template " + name + "<" + template_arguments() + ">";
    text += "(";
    const std::vector<Range> parts = split_commas(tokens, declaration.parameters);
    for (size_t index = 0; index < parts.size(); index++) {
      if (parts[index].size() == 1 && tokens.is(parts[index].first, "void")) break;
      text += (index ? ", " : "") + argument(edits, parts[index], "mrt_" + std::to_string(index));
    }
    return text + ")";
  }

private:
  bool converts() const {
    const std::string_view text = tokens[declaration.name + 1].text;
    return tokens.is_identifier(declaration.name + 1) && !one_of(text, {"new", "delete"});
  }

  std::string template_arguments() const {
    std::string text;
    for (Range header : declaration.templates)
      for (Range part : split_commas(tokens, {header.first + 2, header.last - 1})) {
        const uint32_t end = end_of(part);
        text += (text.empty() ? "" : ", ") + rewriter.text(end - 1) + (has(part, "...") ? "..." : "");
      }
    return text;
  }

  uint32_t end_of(Range part) const { // without a default argument
    uint32_t end = part.first;
    while (end < part.last && !tokens.is(end, "="))
      end = tokens.is(end, "<") ? after_angles(tokens, end, part.last) : uint32_t(tokens.after_group(end));
    return end;
  }

  bool has(Range part, std::string_view text) const {
    for (uint32_t index = part.first; index < part.last; index++)
      if (tokens.is(index, text)) return true;
    return false;
  }

  // Returns the name of a parameter, adding one if needed: inside `T (&v)[4]` and `T (*f)(int)`, before `[4]`, or at
  // the end.
  std::string argument(Edits &edits, Range part, const std::string &name) const {
    uint32_t end = end_of(part);
    const std::string dots = has(part, "...") ? "..." : "";
    for (uint32_t index = part.first; index < end; index++)
      if (tokens.is(index, "(") && one_of(tokens[index + 1].text, {"&", "*", "&&"}))
        return rewriter.text(tokens[index].partner - 1) + dots;
    while (end > part.first && tokens.is(end - 1, "]")) end = tokens[end - 1].partner;
    const bool named = end - part.first >= 2 && tokens.is_identifier(end - 1) && !is_space(tokens[end - 1].text) &&
                       !one_of(tokens[end - 2].text, {"::", "unsigned", "signed", "typename", "struct"}) &&
                       !one_of(tokens[end - 1].text, {"const", "volatile"}) && !only_qualifies({part.first, end - 1});
    if (named) return rewriter.text(end - 1) + dots;
    edits.insert_after(end - 1, " " + name);
    return name + dots;
  }

  // Returns whether the tokens are only qualifiers such as `const device`, before a type without a name.
  bool only_qualifies(Range part) const {
    for (uint32_t index = part.first; index < part.last; index++)
      if (!is_space(tokens[index].text) && !one_of(tokens[index].text, {"const", "volatile"})) return false;
    return true;
  }

  const Rewriter &rewriter;
  const TokenList &tokens;
  const Declaration &declaration;
};

std::string enumerator(std::string_view space) {
  return space == "device"        ? "MRT_IN_DEVICE"
         : space == "constant"    ? "MRT_IN_CONSTANT"
         : space == "threadgroup" ? "MRT_IN_THREADGROUP"
                                  : "MRT_IN_THREAD";
}

} // namespace

void tell_objects_apart(Rewriter &rewriter, const std::vector<const Declaration *> &methods) {
  const auto is_of_thread = [&](const Declaration *each) { return Method(rewriter, *each).space == "thread"; };
  const auto found = std::find_if(methods.begin(), methods.end(), is_of_thread);
  const Declaration &kept = found == methods.end() ? *methods[0] : **found;
  const Method method(rewriter, kept);
  std::set<std::string_view> spaces = {method.space};
  std::string choice;
  for (const Declaration *other : methods) {
    const Method rival(rewriter, *other);
    if (!spaces.insert(rival.space).second || shape(rewriter.tokens, *other) == shape(rewriter.tokens, kept)) continue;
    if (!method.can_be_told() || !rival.can_be_told()) {
      if (method.can_be_told() == rival.can_be_told()) continue; // both are only declared
      rewriter.error(other->name, "'" + rewriter.text(other->name) +
                                      "' is overloaded by the address space of its object alone, and defined outside "
                                      "of its class: this device tells such methods apart inside of it only");
      continue;
    }
    const std::string name = "mrt_method_" + std::to_string(other->name);
    rival.rename(rewriter.flat(), name);
    rewriter.renamed.insert(other->tokens.first);
    choice += " if (::mrt::lies_in(this, " + enumerator(rival.space) + ")) return this->" +
              method.call(rewriter.flat(), name) + ";";
  }
  if (!choice.empty())
    rewriter.flat().insert_after(kept.body.first - 1, " if (!__builtin_is_constant_evaluated()) {" + choice + " }");
}

} // namespace mrt
