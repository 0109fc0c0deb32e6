// Replaces threadgroup variables of a kernel by references to the threadgroup's memory. In both texts, `threadgroup T
// a[N], b;` becomes `typedef T mrt_type_a[N]; mrt_type_a &a = …; typedef T mrt_type_b; mrt_type_b &b = …;`.
#include "rewrite/internal.h"

namespace mrt {
namespace {

class Hoister {
public:
  Hoister(Rewriter &rewriter, uint32_t keyword, Range body)
      : rewriter(rewriter), tokens(rewriter.tokens), keyword(keyword), body(body) {}

  void run() {
    first = keyword;
    while (first > body.first && !one_of(tokens[first - 1].text, {";", "{", "}", ")", ":"}) &&
           tokens[first - 1].kind != TokenKind::directive)
      first--;
    uint32_t declarator = after_type();
    if (declarator == none) return;
    std::string type = specifiers(declarator);
    rewriter.erase(first, declarator);
    while (declarator < body.last) {
      uint32_t end = end_of_declarator(declarator);
      rewrite_declarator(type, declarator, end);
      if (!tokens.is(end, ",")) break;
      rewriter.erase(end, end + 1);
      declarator = end + 1;
    }
  }

private:
  bool is_qualifier(std::string_view text) {
    return is_space(text) || one_of(text, {"const", "volatile", "static", "typename", "struct"});
  }

  // Returns the first token of the declarators, or `none` if this does not declare a variable in threadgroup memory
  // (but a pointer, a cast, …).
  uint32_t after_type() {
    bool have_type = false;
    for (uint32_t index = first; index < body.last;) {
      std::string_view text = tokens[index].text;
      if (text == "alignas") index = uint32_t(tokens.after_group(index + 1));
      else if (opens_attribute(tokens, index)) index = uint32_t(tokens.after_group(index));
      else if (is_qualifier(text)) index++;
      else if (!tokens.is_identifier(index)) return none;
      else if (have_type && !one_of(text, {"int", "short", "char", "long"})) return index > keyword ? index : none;
      else {
        have_type = true;
        index = after_name(index);
      }
    }
    return none;
  }

  // Returns the token after a name such as `a::b<c>::d`.
  uint32_t after_name(uint32_t index) {
    for (index++; index < body.last;) {
      if (tokens.is(index, "<")) index = after_angles(tokens, index, body.last);
      else if (tokens.is(index, "::")) index += tokens.is(index + 1, "template") ? 3 : 2;
      else break;
    }
    return index;
  }

  std::string specifiers(uint32_t declarator) {
    std::string type;
    for (uint32_t index = first; index < declarator; index++) {
      if (tokens.is(index, "alignas")) {
        alignment = tokens.join(index + 2, tokens[index + 1].partner);
        index = tokens[index + 1].partner;
      } else if (opens_attribute(tokens, index)) {
        index = tokens[index].partner;
      } else if (!is_space(tokens[index].text) && !tokens.is(index, "static")) {
        type += rewriter.text(index) + " ";
      }
    }
    return type;
  }

  uint32_t end_of_declarator(uint32_t index) {
    while (index < body.last && !one_of(tokens[index].text, {",", ";"})) index = uint32_t(tokens.after_group(index));
    return index;
  }

  void rewrite_declarator(const std::string &type, uint32_t name, uint32_t end) {
    uint32_t array_end = name + 1;
    while (tokens.is(array_end, "[") && !opens_attribute(tokens, array_end))
      array_end = uint32_t(tokens.after_group(array_end));
    if (one_of(tokens[array_end].text, {"=", "{", "("}))
      rewriter.report(array_end, Diagnostic::warning,
                      "the initializer of a variable in the 'threadgroup' address space has no effect");
    std::string spelled = rewriter.text(name), alias = "mrt_type_" + spelled;
    std::string least = alignment.empty() ? "alignof(" + alias + ")" : "(" + alignment + ")";
    rewriter.flat().replace(name, "typedef " + type + alias);
    rewriter.strict().replace(name, "typedef " + type + alias);
    rewriter.erase(array_end, end);
    uint32_t last = array_end - 1;
    rewriter.flat().insert_after(
        last, "; " + (rewriter.result.spaced ? flat_space("threadgroup", true) + " " : std::string()) + alias + " &" +
                  spelled + " = MRT_THREADGROUP_VARIABLE(" + alias + ", " + quote(spelled) + ", " + least + ", " +
                  std::to_string(tokens[name].source_line) + ")" + (tokens.is(end, ",") ? ";" : ""));
    rewriter.strict().insert_after(last, "; __local " + alias + " &" + spelled + " = *(__local " + alias + " *)16" +
                                             (tokens.is(end, ",") ? ";" : ""));
  }

  Rewriter &rewriter;
  const TokenList &tokens;
  uint32_t keyword, first = none;
  Range body;
  std::string alignment;
};

} // namespace

void hoist_threadgroup_variables(Rewriter &rewriter, const Declaration &kernel) {
  const TokenList &tokens = rewriter.tokens;
  uint32_t parentheses_end = 0;
  for (uint32_t index = kernel.body.first; index < kernel.body.last; index++) {
    // Parentheses contain casts and parameters, but never variables.
    if (tokens.is(index, "(")) parentheses_end = std::max(parentheses_end, tokens[index].partner);
    bool in_attribute = index > 0 && tokens.is(index - 1, "[");
    if (tokens.is(index, "threadgroup") && index > parentheses_end && !in_attribute)
      Hoister(rewriter, index, kernel.body).run();
  }
}

} // namespace mrt
