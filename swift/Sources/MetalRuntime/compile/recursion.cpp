#include "compile/recursion.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <unordered_map>

namespace mrt {
namespace {

struct Call {
  uint32_t callee, metadata; // the number of its location's metadata
};

struct Function {
  uint32_t metadata = 0; // the number of its description's metadata; 0: not defined here
  std::vector<Call> calls;
};

// Returns the number of `key !123`, or 0.
uint32_t number_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  return at == std::string_view::npos ? 0 : uint32_t(strtoul(line.data() + at + key.size(), nullptr, 10));
}

std::string quoted_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  const size_t first = at + key.size();
  return std::string(line.substr(first, line.find('"', first) - first));
}

// Returns the name in `@name(` or `@"name"(`. Only a callee is followed by a parenthesis.
std::string_view called_name(std::string_view line) {
  for (size_t at = 0; (at = line.find('@', at)) != std::string_view::npos; at++) {
    size_t end = at + 1;
    if (end < line.size() && line[end] == '"') end = line.find('"', end + 1) + 1;
    else end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$-", end);
    if (end < line.size() && line[end] == '(') return line.substr(at + 1, end - at - 1);
  }
  return {};
}

// The calls of a program, read from LLVM's text.
class Calls {
public:
  explicit Calls(std::string_view code) {
    uint32_t caller = UINT32_MAX;
    for (size_t start = 0; start < code.size();) {
      const size_t end = std::min(code.find('\n', start), code.size());
      const std::string_view line = code.substr(start, end - start);
      start = end + 1;
      if (line.substr(0, 7) == "define ") {
        caller = number(called_name(line));
        functions[caller].metadata = number_after(line, "!dbg !");
      } else if (line == "}") {
        caller = UINT32_MAX;
      } else if (caller != UINT32_MAX && line.find("call ") != std::string_view::npos) {
        const std::string_view name = called_name(line);
        // The flat text chooses between methods for different address spaces at run time (rewrite/objects.cpp). Which
        // of them a call would run is unknown here, and one for `device` usually calls that for a copy in `thread`.
        if (name.empty() || name.find("mrt_method_") != std::string_view::npos) continue;
        const uint32_t callee = number(name);
        functions[caller].calls.push_back({callee, number_after(line, "!dbg !")});
      } else if (line.substr(0, 1) == "!") {
        metadata[uint32_t(strtoul(line.data() + 1, nullptr, 10))] = line;
      }
    }
  }

  // Numbers the functions by cycle (Tarjan): two functions are in the same cycle if each can reach the other.
  std::vector<uint32_t> cycles() {
    const size_t count = functions.size();
    std::vector<uint32_t> cycle(count, UINT32_MAX), order(count, 0), low(count, 0), stack;
    std::vector<bool> waits(count, false);
    uint32_t time = 0;
    struct Visit {
      uint32_t function;
      size_t next;
    };
    for (uint32_t start = 0; start < count; start++) {
      if (order[start]) continue;
      std::vector<Visit> path;
      const auto open = [&](uint32_t function) {
        order[function] = low[function] = ++time;
        stack.push_back(function);
        waits[function] = true;
        path.push_back({function, 0});
      };
      for (open(start); !path.empty();) {
        const uint32_t at = path.back().function;
        if (path.back().next < functions[at].calls.size()) {
          const uint32_t callee = functions[at].calls[path.back().next++].callee;
          if (!order[callee]) open(callee);
          else if (waits[callee]) low[at] = std::min(low[at], order[callee]);
          continue;
        }
        path.pop_back();
        if (!path.empty()) low[path.back().function] = std::min(low[path.back().function], low[at]);
        if (low[at] != order[at]) continue;
        for (uint32_t member = UINT32_MAX; member != at;) {
          member = stack.back();
          stack.pop_back();
          waits[member] = false;
          cycle[member] = at;
        }
      }
    }
    return cycle;
  }

  std::string_view line_of(uint32_t number) const {
    const auto found = metadata.find(number);
    return found == metadata.end() ? std::string_view() : found->second;
  }

  std::string name_of(uint32_t function) const {
    return quoted_after(line_of(functions[function].metadata), "(name: \"");
  }

  std::string file_of(uint32_t function) const {
    return quoted_after(line_of(number_after(line_of(functions[function].metadata), "file: !")), "filename: \"");
  }

  std::vector<Function> functions;

private:
  uint32_t number(std::string_view name) {
    const auto [found, is_new] = numbers.emplace(name, uint32_t(functions.size()));
    if (is_new) functions.emplace_back();
    return found->second;
  }

  std::unordered_map<std::string_view, uint32_t> numbers;
  std::unordered_map<uint32_t, std::string_view> metadata;
};

// Returns the token of the line that calls the name; otherwise the line's first token with the name, or its first
// token.
uint32_t token_of(const TokenList &tokens, const std::string &file, uint32_t line, const std::string &name) {
  uint32_t first = UINT32_MAX, named = UINT32_MAX;
  for (uint32_t index = 0; index < tokens.size(); index++) {
    if (tokens[index].source_line != line || tokens.files[tokens[index].file] != file) continue;
    if (first == UINT32_MAX) first = index;
    if (tokens[index].text != name) continue;
    const bool declares = index > 0 && tokens.is_identifier(index - 1) && !tokens.is(index - 1, "return");
    if (!declares) return index;
    if (named == UINT32_MAX) named = index;
  }
  return named == UINT32_MAX ? first : named;
}

} // namespace

std::vector<Diagnostic> find_recursion(const std::string &code, const TokenList &tokens, const SourceLines &lines) {
  Calls calls(code);
  const std::vector<uint32_t> cycles = calls.cycles();
  std::vector<Diagnostic> diagnostics;
  std::set<std::pair<uint32_t, std::string>> seen; // instances of a template have the same calls
  for (uint32_t caller = 0; caller < calls.functions.size(); caller++)
    for (const Call &call : calls.functions[caller].calls) {
      if (cycles[caller] != cycles[call.callee]) continue;
      const std::string file = calls.file_of(caller), name = calls.name_of(caller), callee = calls.name_of(call.callee);
      const uint32_t line = number_after(calls.line_of(call.metadata), "line: ");
      const std::string plain = callee.substr(0, callee.find('<'));
      const uint32_t token = token_of(tokens, file, line, plain);
      if (token == UINT32_MAX || !seen.insert({token, plain}).second) continue; // Metal's library
      diagnostics.push_back(diagnostic_at(tokens, token, lines, Diagnostic::error,
                                          recursion_message(name, callee, caller == call.callee)));
    }
  return diagnostics;
}

} // namespace mrt
