// Tells the checker of arrays of a thread that may be read before they are written: `float MRT_ARRAY(a)[4];
// MRT_GUARD_ARRAY(a)` (metal/mrt/arrays.h). An array that is written completely right after its declaration needs no
// guard, which would make the checker inspect each access.
#include "rewrite/internal.h"

namespace mrt {
namespace {

class Arrays {
public:
  Arrays(Rewriter &rewriter, Range body) : rewriter(rewriter), tokens(rewriter.tokens), body(body) {}

  void run() {
    std::vector<uint32_t> blocks{body.first - 1}; // the open braces
    for (uint32_t index = body.first; index < body.last; index++) {
      while (tokens[blocks.back()].partner < index) blocks.pop_back();
      const bool begins = index == body.first || one_of(tokens[index - 1].text, {";", "{", "}"});
      if (begins && has_variables(blocks.back())) check_statement(index, blocks.back());
      if (tokens.is(index, "{")) blocks.push_back(index);
      // Inside parentheses are no declarations of arrays, but there may be a lambda's body.
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
    const uint32_t name = after_type(first);
    if (name == none) return;
    uint32_t end = name;
    std::vector<uint32_t> names;
    for (uint32_t index = name;;) {
      uint32_t next = index + 1;
      while (tokens.is(next, "[")) next = tokens[next].partner + 1;
      if (!tokens.is_identifier(index) || !one_of(tokens[next].text, {",", ";"})) return; // or it has an initializer
      if (next > index + 1 && !is_written_whole(index, next, block)) names.push_back(index);
      end = next;
      if (tokens.is(next, ";")) break;
      index = next + 1;
    }
    for (uint32_t index : names) {
      rewriter.flat().replace(index, "MRT_ARRAY(" + rewriter.text(index) + ")");
      rewriter.flat().insert_after(end, " MRT_GUARD_ARRAY(" + rewriter.text(index) + ")");
    }
  }

  // Returns the first name that `type name[` declares, or none.
  uint32_t after_type(uint32_t index) const {
    bool have_type = false;
    for (; index < body.last; index++) {
      if (!tokens.is_identifier(index)) return none;
      const std::string_view text = tokens[index].text;
      if (one_of(text, {"return", "typedef", "using", "static", "constexpr", "const", "constant", "device", "struct",
                        "threadgroup", "else", "do", "case", "goto", "delete", "new", "extern"}))
        return none;
      if (have_type && tokens.is(index + 1, "[")) return index;
      if (one_of(text, {"thread", "volatile", "typename"})) continue;
      have_type = true;
      while (tokens.is(index + 1, "::")) index += 2;
      if (tokens.is(index + 1, "<")) {
        index = after_angles(tokens, index + 1, body.last) - 1;
        while (tokens.is(index + 1, "::")) index += 2;
      }
    }
    return none;
  }

  // Returns whether loops after the declaration write each element before anything else uses the array.
  bool is_written_whole(uint32_t name, uint32_t after, uint32_t block) const {
    std::vector<std::string> sizes;
    for (uint32_t index = name + 1; index < after; index = tokens[index].partner + 1)
      sizes.push_back(tokens.join(index + 1, tokens[index].partner));
    uint32_t use = after;
    const uint32_t end = tokens[block].partner;
    while (use < end && !(tokens[use].text == tokens[name].text && !one_of(tokens[use - 1].text, {".", "->", "::"})))
      use++;
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

  // Walks from the declaration to the use; every block that is open there must be a loop's over its whole range, and
  // nothing may leave it before.
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
  const Range body;
};

} // namespace

void guard_arrays(Rewriter &rewriter) {
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (declaration.kind != DeclarationKind::function || !declaration.body.exists()) continue;
    bool is_left_out = false; // a guard is no constant, and makes a variable a reference
    for (uint32_t index = declaration.start; index < declaration.tokens.last; index++)
      is_left_out |= rewriter.tokens.is(index, index < declaration.name ? "constexpr" : "decltype");
    if (!is_left_out) Arrays(rewriter, declaration.body).run();
  }
}

} // namespace mrt
