#include "rewrite/internal.h"

namespace mrt {
std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + '"';
}

Printed Rewritten::flat_text(size_t first, size_t last, const std::string &prologue) const {
  Edits edits = flat;
  for (size_t index = first; index < last; index++) edits.insert_after(entries[index].position, entries[index].record);
  return print(tokens, edits, prologue, flat_epilogue);
}

Printed Rewritten::strict_text() const {
  // A precompiled header does not contain these pragmas.
  constexpr const char prologue[] = "#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable\n"
                                    "#pragma OPENCL EXTENSION __cl_clang_bitfields : enable";
  return print(tokens, strict, prologue, "");
}

Rewritten rewrite(TokenList tokens, const SourceLines &lines, uint32_t version) {
  Rewritten result;
  result.tokens = std::move(tokens);
  leave_out_stages(result.tokens, lines, result.diagnostics);
  take_coherence(result.tokens, lines, version, result.diagnostics);
  Rewriter rewriter{result.tokens, lines, parse_program(result.tokens), version, result, {}, {}, {}, {}};
  check_language(rewriter);
  check_calls(rewriter);
  result.may_recurse = may_recurse(rewriter);
  check_addresses(rewriter);
  find_overloads(rewriter);
  place_objects(rewriter);
  rewrite_inputs(rewriter);
  rewrite_lambdas(rewriter);
  rewrite_spellings(rewriter);
  rewrite_scalars(rewriter);
  mark_waits(rewriter);
  guard_arrays(rewriter);
  collect_mentions(rewriter);
  rewrite_constants(rewriter);
  rewrite_kernels(rewriter);
  rewrite_spaces(rewriter);
  drop_duplicates(rewriter);
  keep_loop_pragmas(rewriter);
  return result;
}

} // namespace mrt
