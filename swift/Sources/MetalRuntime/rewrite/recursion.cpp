// Determines whether a function may call itself, which MSL forbids (1.5.1), as far as names allow: templates, overloads
// and methods that share a name count as one. If so, the calls of the compiled program decide (compile/recursion.h).
#include "rewrite/internal.h"

namespace mrt {
namespace {

class Graph {
public:
  explicit Graph(const Rewriter &rewriter) : tokens(rewriter.tokens) {
    for (const Declaration &declaration : rewriter.program.declarations) {
      if (declaration.kind != DeclarationKind::function || declaration.name == none || !declaration.body.exists())
        continue;
      by_name[name_of(declaration)].push_back(uint32_t(functions.size()));
      functions.push_back({&declaration, 0, SIZE_MAX, {}});
      count_parameters(functions.back());
    }
    for (Function &function : functions) collect(function);
  }

  bool has_cycle() {
    for (uint32_t start = 0; start < functions.size(); start++)
      if (state(start) == State::unseen && reaches_itself(start)) return true;
    return false;
  }

private:
  enum class State : uint8_t { unseen, open, done };
  struct Function {
    const Declaration *declaration;
    size_t least, most; // arguments
    std::set<uint32_t> callees;
    State state = State::unseen;
  };

  State &state(uint32_t function) { return functions[function].state; }

  std::string name_of(const Declaration &declaration) const { return name_at(declaration.name).first; }

  // Returns the name at a token, and the token after it. `operator+` and `operator()` are one name.
  std::pair<std::string, uint32_t> name_at(uint32_t index) const {
    std::string name(tokens[index++].text);
    if (name != "operator") return {name, index};
    const uint32_t first = index;
    while (index < tokens.size() && (index == first || !tokens.is(index, "("))) name += tokens[index++].text;
    return {name, index};
  }

  void count_parameters(Function &function) const {
    const std::vector<Range> parameters = split_commas(tokens, function.declaration->parameters);
    function.most = parameters.size();
    for (Range parameter : parameters) {
      bool is_optional = false;
      for (uint32_t index = parameter.first; index < parameter.last; index++) {
        is_optional |= one_of(tokens[index].text, {"=", "..."});
        if (tokens.is(index, "...")) function.most = SIZE_MAX;
      }
      function.least += !is_optional;
    }
  }

  void collect(Function &caller) {
    const Declaration &declaration = *caller.declaration;
    Locals locals(tokens, declaration);
    for (uint32_t index = declaration.tokens.first; index < declaration.tokens.last; index++) {
      const bool is_hidden = index != declaration.name && locals.hide(index);
      if (is_hidden || index < declaration.parameters.last) continue;
      if (tokens.is_identifier(index)) add_calls(caller, index);
      else if (tokens[index].kind == TokenKind::punctuator) add_operators(caller, index);
    }
  }

  void add_calls(Function &caller, uint32_t index) {
    const auto [name, end] = name_at(index);
    const auto named = by_name.find(name);
    if (named == by_name.end()) return;
    const uint32_t open = tokens.is(end, "<") ? after_angles(tokens, end, caller.declaration->tokens.last) : end;
    const bool is_call = tokens.is(open, "(");
    const size_t count = is_call ? split_commas(tokens, {open + 1, tokens[open].partner}).size() : 0;
    for (uint32_t callee : named->second) {
      const Function &function = functions[callee];
      if (!is_call || (count >= function.least && count <= function.most)) caller.callees.insert(callee);
    }
  }

  // `a + b`, `A{…} + B{…}` and `(*this)(…)` may call an operator of the program. Members and elements are assumed to be
  // numbers, since operators mostly combine those.
  void add_operators(Function &caller, uint32_t index) {
    const bool calls_object = tokens.is(index, "(") && tokens.is(index - 1, ")") && tokens.is(index - 2, "this");
    const bool after_object =
        tokens.is(index - 1, "}") || (tokens.is_identifier(index - 1) && !one_of(tokens[index - 2].text, {".", "->"}));
    const bool before_object =
        tokens.is_identifier(index + 1) && !one_of(tokens[index + 2].text, {".", "->", "[", "("});
    if (!calls_object && !(after_object && before_object)) return;
    const auto named = by_name.find(calls_object ? "operator()" : "operator" + std::string(tokens[index].text));
    if (named != by_name.end()) caller.callees.insert(named->second.begin(), named->second.end());
  }

  bool reaches_itself(uint32_t start) {
    std::vector<std::pair<uint32_t, std::set<uint32_t>::const_iterator>> path;
    const auto open = [&](uint32_t function) {
      state(function) = State::open;
      path.push_back({function, functions[function].callees.begin()});
    };
    for (open(start); !path.empty();) {
      auto &[function, next] = path.back();
      if (next == functions[function].callees.end()) {
        state(function) = State::done;
        path.pop_back();
        continue;
      }
      const uint32_t callee = *next++;
      if (state(callee) == State::open) return true;
      if (state(callee) == State::unseen) open(callee);
    }
    return false;
  }

  const TokenList &tokens;
  std::vector<Function> functions;
  std::map<std::string, std::vector<uint32_t>> by_name;
};

} // namespace

bool may_recurse(const Rewriter &rewriter) { return Graph(rewriter).has_cycle(); }

} // namespace mrt
