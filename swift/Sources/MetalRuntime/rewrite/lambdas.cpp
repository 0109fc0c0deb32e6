// Lambda expressions (MSL 1.5.1: from version 3.2). In the strict text they capture by reference, since clang can't
// copy a closure that contains values, which are in an address space. The flat compilation checks that captured values
// are not changed.
#include "rewrite/internal.h"

namespace mrt {
namespace {

// Recognizes `[…](` and `[…] {`: brackets where neither a subscript, an attribute nor a structured binding can be.
bool is_lambda(const TokenList &tokens, uint32_t index) {
  if (!tokens.is(index, "[") || opens_attribute(tokens, index) || index == 0) return false;
  const Token &before = tokens[index - 1];
  const bool follows_value = before.kind == TokenKind::identifier ? !one_of(before.text, {"return", "else", "do"})
                                                                  : one_of(before.text, {"]", ")", "["});
  const uint32_t close = tokens[index].partner;
  return !follows_value &&
         (tokens.is(close + 1, "{") || (tokens.is(close + 1, "(") && !one_of(before.text, {"&", "&&"})));
}

void capture_by_reference(Rewriter &rewriter, Range captures) {
  const TokenList &tokens = rewriter.tokens;
  const bool has_default =
      one_of(tokens[captures.first].text, {"=", "&"}) && (captures.size() == 1 || tokens.is(captures.first + 1, ","));
  if (has_default) rewriter.strict().replace(captures.first, "&");
  for (Range capture : split_commas(tokens, captures)) {
    const bool simple = capture.size() <= 2 && tokens.is_identifier(capture.last - 1);
    if (!simple || tokens.is(capture.first, "*")) continue;
    // With the default `&`, no other variable may be captured by reference.
    if (has_default) rewriter.strict().erase(capture.first - 1, capture.last);
    else if (capture.size() == 1 && !tokens.is(capture.first, "this"))
      rewriter.strict().insert_before(capture.first, "&");
  }
}

// Returns the opening brace of a lambda's body.
uint32_t body_of(const TokenList &tokens, uint32_t captures) {
  uint32_t index = tokens[captures].partner + 1;
  while (index < tokens.size() && !one_of(tokens[index].text, {"{", ";"})) index = uint32_t(tokens.after_group(index));
  return index;
}

// Only kernels declare variables in threadgroup memory (MSL 4.4). Pointers to it are variables of the thread.
void check_threadgroup_variables(Rewriter &rewriter, uint32_t opening) {
  const TokenList &tokens = rewriter.tokens;
  for (uint32_t index = opening + 1; index < tokens[opening].partner; index++) {
    if (!tokens.is(index, "threadgroup") || !one_of(tokens[index - 1].text, {"{", "}", ";"})) continue;
    uint32_t end = index;
    while (end < tokens[opening].partner && !one_of(tokens[end].text, {"*", "&", "=", ";"}))
      end = uint32_t(tokens.after_group(end));
    if (!tokens.is(end, "*") && !tokens.is(end, "&"))
      rewriter.error(index, "a lambda can't declare variables in threadgroup memory: only kernels can");
  }
}

} // namespace

void rewrite_lambdas(Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  for (uint32_t index = 0; index < tokens.size(); index++) {
    if (!is_lambda(tokens, index)) continue;
    if (rewriter.version < 320) rewriter.error(index, "lambda expressions need Metal 3.2 or newer");
    if (tokens.is(body_of(tokens, index), "{")) check_threadgroup_variables(rewriter, body_of(tokens, index));
    if (tokens[index].partner > index + 1) capture_by_reference(rewriter, {index + 1, tokens[index].partner});
  }
}

} // namespace mrt
