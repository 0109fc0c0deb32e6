#include "rewrite/internal.h"

namespace mrt {
namespace {

// A parameter or a local variable of this name hides what the program calls so: `int name`, `thread T &name,`.
bool is_declared_here(const TokenList &tokens, const Declaration &function, uint32_t index) {
  const Token &before = tokens[index - 1];
  bool in_parameters = index < function.parameters.last;
  if (before.kind == TokenKind::identifier)
    return !one_of(before.text, {"return", "else", "case", "sizeof", "typename", "template"});
  return in_parameters && one_of(before.text, {"*", "&", ">"}) && (one_of(tokens[index + 1].text, {",", ")", "["}));
}

std::set<std::string_view> hidden_names(const TokenList &tokens, const Declaration &function) {
  std::set<std::string_view> hidden;
  for (uint32_t index = function.parameters.first; index < function.tokens.last; index++)
    if (tokens.is_identifier(index) && is_declared_here(tokens, function, index)) hidden.insert(tokens[index].text);
  return hidden;
}

void collect_mentions(Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (declaration.kind != DeclarationKind::function || declaration.name == none) continue;
    auto &names = rewriter.mentions[tokens[declaration.name].text];
    std::set<std::string_view> hidden = hidden_names(tokens, declaration);
    for (uint32_t index = declaration.parameters.first; index < declaration.tokens.last; index++) {
      if (!tokens.is_identifier(index) || hidden.count(tokens[index].text)) continue;
      bool guarded = index >= 2 && tokens.is(index - 2, "is_function_constant_defined");
      (guarded ? rewriter.guards[tokens[declaration.name].text] : names).insert(tokens[index].text);
    }
  }
}

} // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + '"';
}

std::set<std::string_view> reachable_names(const Rewriter &rewriter, const Declaration &function) {
  std::set<std::string_view> reached;
  std::vector<std::string_view> open{rewriter.tokens[function.name].text};
  while (!open.empty()) {
    auto found = rewriter.mentions.find(open.back());
    open.pop_back();
    if (found == rewriter.mentions.end()) continue;
    for (std::string_view name : found->second)
      if (reached.insert(name).second) open.push_back(name);
  }
  return reached;
}

Printed Rewritten::flat_text(size_t first, size_t last) const {
  Edits edits = flat;
  for (size_t index = first; index < last; index++) edits.insert_after(entries[index].position, entries[index].record);
  return print(tokens, edits, "", flat_epilogue);
}

Printed Rewritten::strict_text() const {
  return print(tokens, strict, "#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable", "");
}

Rewritten rewrite(TokenList tokens, const SourceLines &lines, uint32_t version) {
  Rewritten result;
  result.tokens = std::move(tokens);
  take_coherence(result.tokens, lines, version, result.diagnostics);
  Rewriter rewriter{result.tokens, lines, parse_program(result.tokens), version, result, {}, {}, {}, {}};
  check_language(rewriter);
  find_overloads(rewriter);
  rewrite_lambdas(rewriter);
  collect_mentions(rewriter);
  rewrite_constants(rewriter);
  rewrite_kernels(rewriter);
  rewrite_spaces(rewriter);
  drop_duplicates(rewriter);
  return result;
}

} // namespace mrt
