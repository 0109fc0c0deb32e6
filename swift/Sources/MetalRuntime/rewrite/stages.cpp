// Files may contain render functions next to their kernels. These are removed before all other passes, since they may
// use features that this device does not support. So are the functions that only they call, if those use such features.
#include "rewrite/internal.h"

namespace mrt {
namespace {

constexpr std::string_view stages[] = {"vertex", "fragment", "mesh", "object", "intersection"}; // from `mesh` on, only
                                                                                                // attributes
// Names of Metal that only functions called by render functions may mention.
constexpr std::string_view render_names[] = {"dfdx",
                                             "dfdy",
                                             "fwidth",
                                             "discard_fragment",
                                             "get_num_samples",
                                             "get_sample_position",
                                             "rasterization_rate_map_data",
                                             "rasterization_rate_map_decoder"};

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

// The functions that no kernel reaches and that mention one of `render_names`, or call such a function. Functions are
// known by their names, so overloads count as one.
class Helpers {
public:
  Helpers(const TokenList &tokens, const Program &program, std::vector<bool> &marked) : tokens(tokens), marked(marked) {
    for (const Declaration &declaration : program.declarations)
      if (declaration.kind == DeclarationKind::function && declaration.name != none &&
          !program.scopes[declaration.scope].is_class && !is_kernel(declaration))
        functions[tokens[declaration.name].text].push_back(declaration.tokens);
  }

  void mark() {
    std::vector<bool> inside(tokens.size());
    for (const auto &[name, ranges] : functions)
      for (Range range : ranges) std::fill(inside.begin() + range.first, inside.begin() + range.last, true);
    for (uint32_t index = 0; index < tokens.size(); index++)
      if (!inside[index] && !marked[index]) need(tokens[index].text);
    for (bool any = true; any;) {
      any = false;
      for (const auto &[name, ranges] : functions)
        if (!needed.count(name) && !removed.count(name) && renders(ranges)) any = removed.insert(name).second;
    }
    for (std::string_view name : removed)
      for (Range range : functions.at(name)) std::fill(marked.begin() + range.first, marked.begin() + range.last, true);
  }

private:
  bool is_kernel(const Declaration &declaration) const {
    for (uint32_t index = declaration.tokens.first; index < declaration.name; index++)
      if (tokens.is(index, "kernel")) return true;
    return false;
  }

  void need(std::string_view first) {
    for (std::vector<std::string_view> open{first}; !open.empty();) {
      const auto found = functions.find(open.back());
      open.pop_back();
      if (found == functions.end() || !needed.insert(found->first).second) continue;
      for (Range range : found->second)
        for (uint32_t index = range.first; index < range.last; index++) open.push_back(tokens[index].text);
    }
  }

  bool renders(const std::vector<Range> &ranges) const {
    for (Range range : ranges)
      for (uint32_t index = range.first; index < range.last; index++)
        if (one_of(tokens[index].text, render_names) || removed.count(tokens[index].text)) return true;
    return false;
  }

  const TokenList &tokens;
  std::vector<bool> &marked;
  std::map<std::string_view, std::vector<Range>> functions;
  std::set<std::string_view> needed, removed;
};

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
  bool any = std::any_of(tokens.tokens.begin(), tokens.tokens.end(),
                         [](const Token &token) { return one_of(token.text, render_names); });
  const Program program = parse_program(tokens);
  for (const Declaration &declaration : program.declarations) {
    if (declaration.name == none || declaration.start == none) continue;
    const std::string_view stage = stage_of(tokens, declaration);
    if (stage.empty()) continue;
    diagnostics.push_back(diagnostic_at(tokens, declaration.name, lines, Diagnostic::warning,
                                        "'" + std::string(stage) + "' function '" +
                                            std::string(tokens[declaration.name].text) +
                                            "' is left out: this device runs compute kernels only"));
    std::fill(marked.begin() + declaration.tokens.first, marked.begin() + declaration.tokens.last, any = true);
  }
  if (any) Helpers(tokens, program, marked).mark(), remove(tokens, marked);
}

} // namespace mrt
