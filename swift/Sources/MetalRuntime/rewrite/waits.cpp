// Marks loops in which a thread waits for memory to change: they contain only reads of memory, so that each iteration
// does the same as the previous one. The flat text counts the iterations: `{ mrt_u64 mrt_turns = 0; while (flag[0] ==
// 0) { mrt::wait_turn(++mrt_turns, 3); } }`.
#include "rewrite/internal.h"

namespace mrt {
namespace {

constexpr std::string_view number_types[] = {"bool", "char", "uchar", "short", "ushort", "int",
                                             "uint", "long", "ulong", "half",  "float",  "bfloat"};

class Waits {
public:
  Waits(Rewriter &rewriter, const Declaration &function)
      : rewriter(rewriter), tokens(rewriter.tokens), function(function) {
    for (Range parameter : split_commas(tokens, function.parameters)) {
      bool is_reference = false;
      for (uint32_t index = parameter.first; index < parameter.last; index++) {
        is_reference |= tokens.is(index, "&");
        if (is_reference && tokens.is_identifier(index)) in_memory.insert(tokens[index].text);
      }
    }
  }

  void run() {
    for (uint32_t index = function.body.first; index < function.body.last; index++) {
      if (tokens.is(index, "threadgroup") && tokens.is_identifier(index + 2)) in_memory.insert(tokens[index + 2].text);
      if (one_of(tokens[index].text, {"while", "do", "for"})) check_loop(index);
    }
  }

private:
  void check_loop(uint32_t keyword) {
    assigned.clear(), known.clear();
    reads = false;
    Range condition, body;
    uint32_t last; // of the whole statement
    if (tokens.is(keyword, "do")) {
      body = {keyword + 1, after_statement(keyword + 1)};
      if (!tokens.is(body.last, "while") || !tokens.is(body.last + 1, "(")) return;
      tails.insert(body.last);
      condition = {body.last + 2, tokens[body.last + 1].partner};
      last = condition.last + 1;
      if (!tokens.is(last, ";")) return;
    } else {
      if (tails.count(keyword) || !tokens.is(keyword + 1, "(")) return;
      const uint32_t close = tokens[keyword + 1].partner;
      condition = {keyword + 2, close};
      if (tokens.is(keyword, "for") && !find_condition(condition)) return;
      body = {close + 1, after_statement(close + 1)};
      last = body.last - 1;
    }
    if (!repeats(body, condition) || !reads) return;
    Edits &flat = rewriter.flat();
    const std::string turn = "mrt::wait_turn(++mrt_turns, " + std::to_string(tokens[keyword].source_line) + "); ";
    flat.insert_before(keyword, "{ mrt_u64 mrt_turns = 0; ");
    if (tokens.is(body.first, "{")) {
      flat.insert_before(body.last - 1, turn);
    } else {
      flat.insert_before(body.first, "{ ");
      flat.insert_after(body.last - 1, turn + "}");
    }
    flat.insert_after(last, " }");
  }

  // Returns the token after a statement.
  uint32_t after_statement(uint32_t index) const {
    if (index >= function.body.last) return function.body.last;
    if (tokens.is(index, "{")) return tokens[index].partner + 1;
    if (tokens.is(index, "do")) return after_simple(after_statement(index + 1));
    const bool is_if = tokens.is(index, "if");
    if (!is_if && !one_of(tokens[index].text, {"for", "while", "switch"})) return after_simple(index);
    index += is_if && tokens.is(index + 1, "constexpr") ? 2 : 1;
    const uint32_t end = after_statement(uint32_t(tokens.after_group(index)));
    return is_if && tokens.is(end, "else") ? after_statement(end + 1) : end;
  }

  uint32_t after_simple(uint32_t index) const {
    while (index < function.body.last && !tokens.is(index, ";")) index = uint32_t(tokens.after_group(index));
    return std::min(index + 1, function.body.last);
  }

  // `init; condition;` without a step
  bool find_condition(Range &header) const {
    uint32_t first = header.first;
    while (first < header.last && !tokens.is(first, ";")) first = uint32_t(tokens.after_group(first));
    uint32_t second = first + 1;
    while (second < header.last && !tokens.is(second, ";")) second = uint32_t(tokens.after_group(second));
    if (second + 1 != header.last) return false;
    header = {first + 1, second};
    return true;
  }

  // Returns whether each iteration does the same as the previous one: it reads nothing that an earlier iteration has
  // assigned.
  bool repeats(Range body, Range condition) {
    if (tokens.is(body.first, "{")) body = {body.first + 1, body.last - 1};
    for (uint32_t index = body.first; index < body.last; index++)
      if (tokens.is(index, "=") && tokens.is_identifier(index - 1)) assigned.insert(tokens[index - 1].text);
    for (uint32_t index = body.first; index < body.last;) {
      if (tokens.is(index, ";")) {
        index++;
      } else if (tokens.is(index, "if")) {
        const uint32_t close = tokens[index + 1].partner;
        const uint32_t word = tokens.is(close + 1, "{") ? close + 2 : close + 1;
        const uint32_t end = word + 2 + (tokens.is(close + 1, "{") ? 1 : 0);
        if (!one_of(tokens[word].text, {"break", "return"}) || !tokens.is(word + 1, ";")) return false;
        if (word == close + 2 && !tokens.is(word + 2, "}")) return false;
        if (tokens.is(end, "else") || !is_pure({index + 2, close})) return false;
        index = end;
      } else {
        const Range whole{index, after_simple(index)};
        if (!is_assignment(whole)) return false;
        index = whole.last;
      }
    }
    return is_pure(condition);
  }

  // `name = value;`, `type name = value;`
  bool is_assignment(Range statement) {
    uint32_t equals = statement.first;
    while (equals < statement.last && !tokens.is(equals, "=")) equals++;
    if (equals == statement.last || equals == statement.first || !tokens.is_identifier(equals - 1)) return false;
    if (!tokens.is_identifier(statement.first)) return false;
    for (uint32_t index = statement.first; index < equals; index++)
      if (!tokens.is_identifier(index) && !one_of(tokens[index].text, {"*", "::"})) return false;
    const std::string_view name = tokens[equals - 1].text;
    if (in_memory.count(name) || !is_pure({equals + 1, statement.last - 1})) return false;
    known.insert(name);
    return true;
  }

  // An expression without side effects, of values that this iteration has read.
  bool is_pure(Range range) {
    for (uint32_t index = range.first; index < range.last; index++) {
      const std::string_view text = tokens[index].text;
      if (one_of(text, {"=", "++", "--", "{", ";", ","}) || (text.size() > 1 && text.back() == '=' && is_update(text)))
        return false;
      if (one_of(text, {"[", "->"})) reads = true;
      const bool is_first = index == range.first || (tokens[index - 1].kind == TokenKind::punctuator &&
                                                     !one_of(tokens[index - 1].text, {")", "]"}));
      if (text == "*" && is_first) reads = true;
      if (!tokens.is_identifier(index)) continue;
      if (tokens.is(index + 1, "(") && !one_of(text, number_types)) return false; // a call
      if (tokens.is(index + 1, "<") && tokens.is(after_angles(tokens, index + 1, range.last), "(")) return false;
      const bool is_member = index > 0 && one_of(tokens[index - 1].text, {".", "->"});
      if (is_member) continue;
      if (in_memory.count(text)) reads = true;
      if (assigned.count(text) && !known.count(text)) return false;
    }
    return true;
  }

  static bool is_update(std::string_view text) { return !one_of(text, {"==", "!=", "<=", ">="}); }

  Rewriter &rewriter;
  const TokenList &tokens;
  const Declaration &function;
  std::set<std::string_view> in_memory; // names of objects that other threads may write
  std::set<std::string_view> assigned, known;
  std::set<uint32_t> tails; // the `while` of each `do`
  bool reads = false;
};

} // namespace

void mark_waits(Rewriter &rewriter) {
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (declaration.kind != DeclarationKind::function || !declaration.body.exists()) continue;
    bool is_constant = false;
    for (uint32_t index = declaration.start; index < declaration.name; index++)
      is_constant |= rewriter.tokens.is(index, "constexpr");
    if (!is_constant) Waits(rewriter, declaration).run();
  }
}

} // namespace mrt
