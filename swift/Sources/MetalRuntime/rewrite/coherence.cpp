// `coherent(device)` on a pointer or reference to device memory (MSL 4.8, from version 3.2). Neither compilation has
// such a qualifier, so it is removed from the tokens before all other passes. The token after it records it, and the
// checker looks up which buffers of a kernel are declared coherent.
#include "rewrite/internal.h"

namespace mrt {
namespace {

class Coherence {
public:
  Coherence(TokenList &tokens, const SourceLines &lines, uint32_t version, std::vector<Diagnostic> &diagnostics)
      : tokens(tokens), lines(lines), version(version), diagnostics(diagnostics) {}

  void run() {
    std::vector<bool> dropped(tokens.size());
    bool found = false;
    for (uint32_t index = 0; index < tokens.size(); index++) {
      const Range qualifier = qualifier_at(index);
      if (!qualifier.exists()) continue;
      check(qualifier);
      std::fill(dropped.begin() + qualifier.first, dropped.begin() + qualifier.last, true);
      if (qualifier.last < tokens.size()) tokens.tokens[qualifier.last].coherent = true;
      index = qualifier.last - 1;
      found = true;
    }
    if (found) drop(dropped);
  }

private:
  // `coherent(device)`, `coherent(system)` or `coherent` alone, next to other qualifiers of a type, since a program may
  // also use the word as a name.
  Range qualifier_at(uint32_t index) const {
    if (!tokens.is(index, "coherent") || (index > 0 && one_of(tokens[index - 1].text, {".", "->", "::"}))) return {};
    const bool scoped =
        tokens.is(index + 1, "(") && tokens[index + 1].partner == index + 3 && tokens.is_identifier(index + 2);
    const Range range{index, scoped ? index + 4 : index + 1};
    const bool named = scoped && is_space(tokens[index + 2].text);
    return named || is_qualifier(range.last) || (index > 0 && is_qualifier(index - 1)) ? range : Range{};
  }

  bool is_qualifier(uint32_t index) const {
    return index < tokens.size() && (is_space(tokens[index].text) || one_of(tokens[index].text, {"const", "volatile"}));
  }

  void check(Range qualifier) {
    const auto error = [&](uint32_t token, std::string message) {
      diagnostics.push_back(diagnostic_at(tokens, token, lines, Diagnostic::error, std::move(message)));
    };
    if (version < 320) return error(qualifier.first, "the 'coherent' qualifier needs Metal 3.2 or newer");
    // The scope `system` is an Apple extension, for programs that share memory with the CPU.
    if (qualifier.size() > 1 && !one_of(tokens[qualifier.first + 2].text, {"device", "system"}))
      return error(qualifier.first + 2, "the 'coherent' qualifier takes the scope 'device', not '" +
                                            std::string(tokens[qualifier.first + 2].text) + "'");
    if (!of_device(qualifier))
      error(qualifier.first,
            "the 'coherent' qualifier applies to pointers and references to the 'device' address space only");
  }

  bool of_device(Range qualifier) const {
    for (uint32_t index = qualifier.last; is_qualifier(index); index++)
      if (tokens.is(index, "device")) return true;
    for (uint32_t index = qualifier.first; index > 0 && is_qualifier(index - 1); index--)
      if (tokens.is(index - 1, "device")) return true;
    return false;
  }

  void drop(const std::vector<bool> &dropped) {
    std::vector<uint32_t> positions(tokens.size());
    std::vector<Token> kept;
    for (uint32_t index = 0; index < tokens.size(); index++) {
      positions[index] = uint32_t(kept.size());
      if (!dropped[index]) kept.push_back(tokens[index]);
    }
    for (Token &token : kept) token.partner = positions[token.partner];
    tokens.tokens = std::move(kept);
  }

  TokenList &tokens;
  const SourceLines &lines;
  const uint32_t version;
  std::vector<Diagnostic> &diagnostics;
};

} // namespace

void take_coherence(TokenList &tokens, const SourceLines &lines, uint32_t version,
                    std::vector<Diagnostic> &diagnostics) {
  Coherence(tokens, lines, version, diagnostics).run();
}

} // namespace mrt
