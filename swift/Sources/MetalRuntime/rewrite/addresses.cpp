// Reports addresses of elements of vectors, and references to them (MSL 2.2.1): `&v.x`, `&v[0]`, `thread float &r =
// v.x;`, `f(v.x)` for a parameter `thread float &`. Only types tell whether the object is a vector, so the strict text
// tests it: `(mrt::address_of_member(v), v.x)`, which vec.h declares for everything except vectors.
#include "rewrite/internal.h"

namespace mrt {
namespace {

constexpr std::string_view elements[] = {"x", "y", "z", "w", "r", "g", "b", "a"};
// Tokens that precede an operand. After any other token, `&` is a binary operator or part of a type.
constexpr std::string_view openings[] = {"(",      ",", "=", "{", ";",  "}",  "?", ":",
                                         "return", "[", "+", "-", "&&", "||", "!"};
// Functions of Metal's library that write to their second argument, a reference.
constexpr std::string_view writers[] = {"sincos", "modf", "frexp"};

// Returns the last token of a postfix expression that begins at `first`, or `none`.
uint32_t last_of_operand(const TokenList &tokens, uint32_t first) {
  uint32_t last = first;
  if (tokens.is(first, "(")) last = tokens[first].partner;
  else if (!tokens.is_identifier(first)) return none;
  while (last != none && last + 1 < tokens.size()) {
    const uint32_t next = last + 1;
    if (one_of(tokens[next].text, {".", "->", "::"}) && tokens.is_identifier(next + 1)) last = next + 1;
    else if (one_of(tokens[next].text, {"[", "("}) && tokens[next].partner > next) last = tokens[next].partner;
    else break;
  }
  return last;
}

// Returns whether a copy of these tokens has the same meaning in the strict text, where other passes rewrite address
// spaces, literals and lambdas.
bool is_plain(const TokenList &tokens, uint32_t first, uint32_t last) {
  for (uint32_t index = first; index < last; index++) {
    const Token &token = tokens[index];
    if (is_space(token.text) || one_of(token.text, {"{", "template"})) return false;
    if (token.kind == TokenKind::number && token.text.find_first_not_of("0123456789u") != std::string_view::npos)
      return false;
    if (token.kind == TokenKind::string || token.kind == TokenKind::directive) return false;
  }
  return true;
}

// Tests an operand whose address is taken, or that a reference binds to.
class Addresses {
public:
  explicit Addresses(Rewriter &rewriter) : rewriter(rewriter), tokens(rewriter.tokens) {
    for (const Declaration &declaration : rewriter.program.declarations)
      if (declaration.kind == DeclarationKind::function && declaration.name != none)
        functions[tokens[declaration.name].text].push_back(&declaration);
  }

  void run() {
    for (uint32_t index = 2; index + 2 < tokens.size(); index++)
      if (tokens.is(index, "&") && is_unary(index)) check_address(index);
    for (const Declaration &declaration : rewriter.program.declarations)
      if (declaration.kind == DeclarationKind::function && declaration.body.exists()) check_function(declaration);
  }

private:
  // This is certainly a cast to a pointer, since no value ends in `*`.
  bool is_unary(uint32_t index) const {
    return one_of(tokens[index - 1].text, openings) || (tokens.is(index - 1, ")") && tokens.is(index - 2, "*"));
  }

  void check_address(uint32_t index) {
    const uint32_t last = last_of_operand(tokens, index + 1);
    if (last != none) check({index + 1, last + 1}, index);
  }

  // `ampersand`: the operator that takes the address; none for a reference.
  void check(Range range, uint32_t ampersand = none) {
    uint32_t before = ampersand == none ? range.first : ampersand;
    while (range.size() > 2 && tokens.is(range.first, "(") && tokens[range.first].partner == range.last - 1)
      before = range.first + 1, range = {range.first + 1, range.last - 1};
    const std::vector<Range> arms = arms_of(range);
    for (Range arm : arms) check(arm);
    if (!arms.empty() || range.size() < 3 || last_of_operand(tokens, range.first) + 1 != range.last) return;
    const uint32_t last = range.last - 1;
    const bool by_pointer = tokens.is(last - 1, "->"), by_index = tokens.is(last, "]");
    if (!by_index && (!one_of(tokens[last].text, elements) || (!by_pointer && !tokens.is(last - 1, ".")))) return;
    const uint32_t end = by_index ? tokens[last].partner : last - 1;
    if (end <= range.first || !is_plain(tokens, range.first, end)) return;
    const char *test = ampersand == none ? "reference_to_member" : "address_of_member";
    rewriter.strict().insert_before(before, std::string("(mrt::") + test + "(" + (by_pointer && !by_index ? "*" : "") +
                                                tokens.join(range.first, end) + "), ");
    rewriter.strict().insert_after(last, ")");
  }

  // `a` and `b` of `condition ? a : b`
  std::vector<Range> arms_of(Range range) const {
    uint32_t question = none;
    for (uint32_t index = range.first; index < range.last; index = uint32_t(tokens.after_group(index))) {
      if (tokens.is(index, "?") && question == none) question = index;
      else if (tokens.is(index, ":") && question != none) return {{question + 1, index}, {index + 1, range.last}};
    }
    return {};
  }

  void check_function(const Declaration &function) {
    const bool returns_reference = is_plain_reference({function.start, function.name});
    Locals locals(tokens, function);
    for (uint32_t index = function.tokens.first; index < function.body.last; index++) {
      const bool is_hidden = index != function.name && locals.hide(index);
      if (index < function.body.first) continue;
      if (tokens.is(index, "return") && returns_reference) check({index + 1, end_of_value(index + 1)});
      if (tokens.is(index, "&") && tokens.is_identifier(index + 1)) check_variable(index);
      if (tokens.is_identifier(index) && !is_hidden) check_call(index);
    }
  }

  uint32_t end_of_value(uint32_t index) const {
    while (index < tokens.size() && !one_of(tokens[index].text, {";", ",", ")", "}"}))
      index = uint32_t(tokens.after_group(index));
    return index;
  }

  // `thread float &r = v.x;`, `auto &r(v.x);`
  void check_variable(uint32_t ampersand) {
    uint32_t first = ampersand;
    while (first > 0 && !one_of(tokens[first - 1].text, {";", "{", "}", "(", ")"})) first--;
    bool is_type = false;
    for (uint32_t index = first; index < ampersand; index++)
      is_type |= is_space(tokens[index].text) || tokens.is(index, "auto");
    if (!is_type || !is_plain_reference({first, ampersand + 1})) return;
    if (tokens.is(ampersand + 2, "=")) check({ampersand + 3, end_of_value(ampersand + 3)});
    else if (one_of(tokens[ampersand + 2].text, {"(", "{"})) check({ampersand + 3, tokens[ampersand + 2].partner});
  }

  // Returns whether a type, or a parameter, is a reference to something that is not constant.
  bool is_plain_reference(Range range) const {
    bool found = false;
    for (uint32_t index = range.first; index < range.last; index = uint32_t(tokens.after_group(index))) {
      const std::string_view text = tokens[index].text;
      if (text == "=") break;
      if (text == "const") return false;
      if (text == "&") found = true;
      if (text == "<" && index > range.first) index = after_angles(tokens, index, range.last) - 1;
    }
    return found;
  }

  // Tests each argument of a call that every possible callee takes by reference.
  void check_call(uint32_t name) {
    const uint32_t open = tokens.is(name + 1, "<") ? after_angles(tokens, name + 1, uint32_t(tokens.size())) : name + 1;
    if (!tokens.is(open, "(")) return;
    const std::vector<Range> arguments = split_commas(tokens, {open + 1, tokens[open].partner});
    const auto found = functions.find(tokens[name].text);
    const bool is_writer = found == functions.end() && one_of(tokens[name].text, writers) && arguments.size() == 2 &&
                           !one_of(tokens[name - 1].text, {".", "->"});
    if (is_writer) check(arguments[1]);
    if (found == functions.end()) return;
    std::vector<std::vector<Range>> candidates;
    for (const Declaration *function : found->second) {
      candidates.push_back(split_commas(tokens, function->parameters));
      for (Range parameter : candidates.back())
        for (uint32_t index = parameter.first; index < parameter.last; index++)
          if (tokens.is(index, "...")) return;
    }
    for (size_t at = 0; at < arguments.size(); at++) {
      const auto refers = [&](const std::vector<Range> &parameters) {
        return at < parameters.size() && is_plain_reference(parameters[at]);
      };
      const auto takes = [&](const std::vector<Range> &parameters) { return parameters.size() >= arguments.size(); };
      const bool any = std::any_of(candidates.begin(), candidates.end(), takes);
      if (any && std::all_of(candidates.begin(), candidates.end(),
                             [&](const auto &parameters) { return !takes(parameters) || refers(parameters); }))
        check(arguments[at]);
    }
  }

  Rewriter &rewriter;
  const TokenList &tokens;
  std::map<std::string_view, std::vector<const Declaration *>> functions;
};

} // namespace

void check_addresses(Rewriter &rewriter) { Addresses(rewriter).run(); }

} // namespace mrt
