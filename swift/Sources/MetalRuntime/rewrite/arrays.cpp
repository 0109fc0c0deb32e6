// Tells the checker about a thread's arrays and variables that may be read before they are written: `float
// MRT_ARRAY(a)[4]; MRT_GUARD_ARRAY(a)` (metal/mrt/arrays.h). An array or variable that is written completely right
// after its declaration gets no guard, since a guard makes the checker inspect each access.
#include "rewrite/internal.h"

namespace mrt {
namespace {

// Whether a type is a number or a vector of numbers. Others may have constructors, which write.
bool is_number(std::string_view type) {
  if (type.substr(0, 7) == "packed_") type.remove_prefix(7);
  if (type.size() > 1 && type.back() >= '2' && type.back() <= '4' && type[type.size() - 2] != '1')
    type.remove_suffix(1);
  return one_of(type,
                {"float",   "half",    "bfloat",   "int",      "uint",     "short",   "ushort",  "char",      "uchar",
                 "long",    "ulong",   "bool",     "unsigned", "signed",   "vec",     "size_t",  "ptrdiff_t", "int8_t",
                 "uint8_t", "int16_t", "uint16_t", "int32_t",  "uint32_t", "int64_t", "uint64_t"});
}

class Arrays {
public:
  Arrays(Rewriter &rewriter, const Declaration &function)
      : rewriter(rewriter), tokens(rewriter.tokens), function(function), body(function.body) {}

  void run() {
    std::vector<uint32_t> blocks{body.first - 1}; // the open braces
    for (uint32_t index = body.first; index < body.last; index++) {
      while (tokens[blocks.back()].partner < index) blocks.pop_back();
      const bool begins = index == body.first || one_of(tokens[index - 1].text, {";", "{", "}"});
      if (begins && has_variables(blocks.back())) check_statement(index, blocks.back());
      if (tokens.is(index, "{")) blocks.push_back(index);
      // Parentheses contain no declarations of arrays, except in a lambda's body.
    }
  }

private:
  // Returns whether arrays of a block can have guards: a class has members, and a jump to a `case` must not pass one.
  bool has_variables(uint32_t brace) const {
    if (tokens.is(brace - 1, ")")) return !tokens.is(tokens[brace - 1].partner - 1, "switch");
    for (uint32_t index = brace; index > body.first && !one_of(tokens[index - 1].text, {";", "{", "}", ")"}); index--)
      if (one_of(tokens[index - 1].text, {"struct", "class", "union", "enum"})) return false;
    return true;
  }

  void check_statement(uint32_t first, uint32_t block) {
    bool is_plain = false;
    const uint32_t name = after_type(first, is_plain);
    if (name == none) return;
    uint32_t end = name;
    std::vector<uint32_t> names;
    for (uint32_t index = name;;) {
      uint32_t next = index + 1;
      while (tokens.is(next, "[")) next = tokens[next].partner + 1;
      const bool is_array = next > index + 1, is_set = tokens.is(next, "=");
      while (is_set && next < body.last && !one_of(tokens[next].text, {",", ";"}))
        next = uint32_t(tokens.after_group(next));
      if (!tokens.is_identifier(index) || !one_of(tokens[next].text, {",", ";"})) return;
      if (!is_set && (is_array ? !is_written_whole(index, next, block) : is_plain && !is_assigned(index, block)))
        names.push_back(index);
      end = next;
      if (tokens.is(next, ";")) break;
      index = next + 1;
    }
    for (uint32_t index : names) {
      if (find_name(index, index + 1, end) < end) continue; // the statement's other initializers use it
      rewriter.flat().replace(index, "MRT_ARRAY(" + rewriter.text(index) + ")");
      rewriter.flat().insert_after(end, " MRT_GUARD_ARRAY(" + rewriter.text(index) + ")");
    }
  }

  // Returns the first name that `type name` declares, or none. `is_plain` says that the type is a number or a vector.
  uint32_t after_type(uint32_t index, bool &is_plain) const {
    bool have_type = false;
    for (; index < body.last; index++) {
      if (!tokens.is_identifier(index)) return none;
      const std::string_view text = tokens[index].text;
      if (one_of(text, {"return", "typedef", "using", "static", "constexpr", "const", "constant", "device", "struct",
                        "threadgroup", "else", "do", "case", "goto", "delete", "new", "extern", "auto"}))
        return none;
      if (have_type && one_of(tokens[index + 1].text, {"[", ",", ";", "="})) return index;
      if (one_of(text, {"thread", "volatile", "typename"})) continue;
      have_type = true;
      while (tokens.is(index + 1, "::")) index += 2;
      is_plain = is_number(tokens[index].text) || is_parameter(tokens[index].text);
      if (tokens.is(index + 1, "<")) {
        index = after_angles(tokens, index + 1, body.last) - 1;
        while (tokens.is(index + 1, "::")) index += 2;
      }
    }
    return none;
  }

  // Whether the function's template has a parameter of this name.
  bool is_parameter(std::string_view name) const {
    for (Range range : function.templates)
      for (uint32_t index = range.first; index < range.last; index++)
        if (tokens[index].text == name) return true;
    return false;
  }

  // Returns the first token from `index` on that refers to the variable, or `end`.
  uint32_t find_name(uint32_t name, uint32_t index, uint32_t end) const {
    while (index < end &&
           (tokens[index].text != tokens[name].text || one_of(tokens[index - 1].text, {".", "->", "::"})))
      index++;
    return index;
  }

  // Returns whether nothing reads the variable, or its first use is a statement `name = …` of its block or the start of
  // a `for`.
  bool is_assigned(uint32_t name, uint32_t block) const {
    const uint32_t end = tokens[block].partner, use = find_name(name, name + 1, end);
    if (use >= end) return true;
    const bool begins =
        one_of(tokens[use - 1].text, {";", "{", "}"}) || (tokens.is(use - 1, "(") && tokens.is(use - 2, "for"));
    if (!begins || !tokens.is(use + 1, "=")) return false;
    for (uint32_t index = name; index < use; index = uint32_t(tokens.after_group(index)))
      if (tokens.after_group(index) > use && index != use - 1) return false; // in a block or a loop
    uint32_t last = use;
    while (last < end && !tokens.is(last, ";")) last++;
    return find_name(name, use + 1, last) == last;
  }

  // Returns whether loops after the declaration write each element before anything else uses the array.
  bool is_written_whole(uint32_t name, uint32_t after, uint32_t block) const {
    std::vector<std::string> sizes;
    for (uint32_t index = name + 1; index < after; index = tokens[index].partner + 1)
      sizes.push_back(tokens.join(index + 1, tokens[index].partner));
    const uint32_t end = tokens[block].partner, use = find_name(name, after, end);
    if (use >= end) return true; // nothing reads it
    std::vector<std::string> subscripts;
    uint32_t index = use + 1;
    for (; tokens.is(index, "["); index = tokens[index].partner + 1)
      subscripts.push_back(tokens.join(index + 1, tokens[index].partner));
    if (!tokens.is(index, "=") || subscripts.size() != sizes.size()) return false;
    for (uint32_t at = index; at < end && !tokens.is(at, ";"); at++)
      if (tokens[at].text == tokens[name].text) return false;
    std::vector<std::string> counters, bounds;
    return are_loops(after, use, counters, bounds) && covers(subscripts, sizes, counters, bounds);
  }

  // Walks back from the use to the declaration. Every block around the use must be the body of a loop over its whole
  // range, and no earlier statement may leave it.
  bool are_loops(uint32_t after, uint32_t use, std::vector<std::string> &counters,
                 std::vector<std::string> &bounds) const {
    uint32_t statement = use; // the first token of the use's statement, or of the loop around it
    while (statement > after) {
      const std::string_view before = tokens[statement - 1].text;
      if (before == ")" && is_loop(tokens[statement - 1].partner, counters, bounds)) {
        statement = tokens[statement - 1].partner - 1;
      } else if (before == "{") {
        const uint32_t brace = statement - 1;
        if (!tokens.is(brace - 1, ")") || !is_loop(tokens[brace - 1].partner, counters, bounds)) return false;
        statement = tokens[brace - 1].partner - 1;
      } else if (before == ";" || before == "}") {
        // An earlier statement of the block: control must continue with the next one.
        uint32_t first = statement - 1;
        if (before == "}") first = tokens[first].partner;
        while (first > after && !one_of(tokens[first - 1].text, {";", "{", "}"})) {
          first--;
          if (one_of(tokens[first].text, {")", "]"})) first = tokens[first].partner;
        }
        for (uint32_t index = first; index < statement; index++)
          if (one_of(tokens[index].text, {"if", "else", "break", "continue", "return", "switch", "case", "?"}))
            return false;
        if (first <= after) return true;
        statement = first;
      } else {
        return false;
      }
    }
    return true;
  }

  // `(int i = 0; i < bound; i++)` of a `for`
  bool is_loop(uint32_t open, std::vector<std::string> &counters, std::vector<std::string> &bounds) const {
    if (open == 0 || !tokens.is(open - 1, "for")) return false;
    const uint32_t close = tokens[open].partner;
    uint32_t first = open + 1;
    while (first < close && !tokens.is(first, ";")) first++;
    uint32_t second = first + 1;
    while (second < close && !tokens.is(second, ";")) second++;
    if (second >= close || first < open + 4) return false;
    const std::string_view counter = tokens[first - 3].text;
    const bool from_zero = tokens.is(first - 2, "=") && one_of(tokens[first - 1].text, {"0", "0u"});
    const bool to_bound = tokens.is(first + 1, counter) && one_of(tokens[first + 2].text, {"<", "!="});
    const bool by_one = (close == second + 3 && one_of(tokens[second + 1].text, {"++", counter}) &&
                         one_of(tokens[second + 2].text, {"++", counter})) ||
                        (close == second + 4 && tokens.is(second + 1, counter) && tokens.is(second + 2, "+=") &&
                         one_of(tokens[second + 3].text, {"1", "1u"}));
    if (!from_zero || !to_bound || !by_one) return false;
    counters.push_back(std::string(counter));
    bounds.push_back(tokens.join(first + 3, second));
    return true;
  }

  static bool covers(const std::vector<std::string> &subscripts, const std::vector<std::string> &sizes,
                     const std::vector<std::string> &counters, const std::vector<std::string> &bounds) {
    for (size_t at = 0; at < sizes.size(); at++) {
      const auto found = std::find(counters.begin(), counters.end(), subscripts[at]);
      if (found == counters.end() || bounds[size_t(found - counters.begin())] != sizes[at]) return false;
    }
    return counters.size() == sizes.size();
  }

  Rewriter &rewriter;
  const TokenList &tokens;
  const Declaration &function;
  const Range body;
};

} // namespace

void guard_arrays(Rewriter &rewriter) {
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (declaration.kind != DeclarationKind::function || !declaration.body.exists()) continue;
    bool is_left_out = false; // a guard is not a constant expression, and makes a variable a reference
    for (uint32_t index = declaration.start; index < declaration.tokens.last; index++)
      is_left_out |= rewriter.tokens.is(index, index < declaration.name ? "constexpr" : "decltype");
    if (!is_left_out) Arrays(rewriter, declaration).run();
  }
}

} // namespace mrt
