// Files may contain render functions next to their kernels. These are removed before all other passes, since they may
// use features that this device does not support.
#include "rewrite/internal.h"

namespace mrt {
namespace {

constexpr std::string_view stages[] = {"vertex", "fragment", "mesh", "object"}; // the last two are only attributes

// Recognizes `fragment float4 f(…)` and `[[vertex]] …`.
std::string_view stage_of(const TokenList &tokens, const Declaration &declaration) {
  if (declaration.kind != DeclarationKind::function && declaration.kind != DeclarationKind::instantiation) return {};
  for (const Attribute &attribute : declaration.attributes)
    if (one_of(tokens[attribute.name].text, stages)) return tokens[attribute.name].text;
  for (uint32_t index = declaration.start; index < declaration.name; index++)
    if (one_of(tokens[index].text, {"vertex", "fragment"}) && tokens.is_identifier(index + 1))
      return tokens[index].text;
  return {};
}

// Removes the marked tokens; both brackets of a pair must be marked.
void remove(TokenList &tokens, const std::vector<bool> &marked) {
  std::vector<uint32_t> position(tokens.size());
  uint32_t count = 0;
  for (uint32_t index = 0; index < tokens.size(); index++) {
    position[index] = count;
    count += !marked[index];
  }
  for (uint32_t index = 0; index < tokens.size(); index++) {
    if (marked[index]) continue;
    Token token = tokens[index];
    if (token.partner < position.size()) token.partner = position[token.partner];
    tokens.tokens[position[index]] = token;
  }
  tokens.tokens.resize(count);
}

} // namespace

void leave_out_stages(TokenList &tokens, const SourceLines &lines, std::vector<Diagnostic> &diagnostics) {
  std::vector<bool> marked(tokens.size());
  bool any = false;
  for (const Declaration &declaration : parse_program(tokens).declarations) {
    if (declaration.name == none || declaration.start == none) continue;
    const std::string_view stage = stage_of(tokens, declaration);
    if (stage.empty()) continue;
    diagnostics.push_back(diagnostic_at(tokens, declaration.name, lines, Diagnostic::warning,
                                        "'" + std::string(stage) + "' function '" +
                                            std::string(tokens[declaration.name].text) +
                                            "' is left out: this device runs compute kernels only"));
    std::fill(marked.begin() + declaration.tokens.first, marked.begin() + declaration.tokens.last, any = true);
  }
  if (any) remove(tokens, marked);
}

} // namespace mrt
