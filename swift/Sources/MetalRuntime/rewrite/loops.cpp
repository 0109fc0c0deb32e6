// Pragmas that guide how a loop is compiled: kept in the flat text, as MRT_LOOP("clang loop unroll(full)"). GPUs need
// them (metal/mrt/gpu/current.h); the software device ignores them.
//
// Preprocessing does not expand macros in pragmas, but removes their definitions. So a pragma with any other word is
// dropped.
#include "rewrite/internal.h"

#include <cctype>

namespace mrt {
namespace {

bool is_known(std::string_view pragma) {
  for (size_t at = 0; at < pragma.size();) {
    const char letter = pragma[at];
    if (isdigit((unsigned char)letter) || isspace((unsigned char)letter) || letter == '(' || letter == ')') {
      at++;
      continue;
    }
    const size_t start = at;
    while (at < pragma.size() && (isalpha((unsigned char)pragma[at]) || pragma[at] == '_')) at++;
    const std::string_view word = pragma.substr(start, at - start);
    if (!one_of(word, {"clang", "loop", "unroll", "nounroll", "unroll_count", "full", "enable", "disable"}))
      return false;
  }
  return true;
}

} // namespace

void keep_loop_pragmas(Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  for (uint32_t index = 0; index < tokens.size(); index++) {
    const std::string_view pragma = tokens[index].pragma;
    if (pragma.empty() || !one_of(tokens[index].text, {"for", "while", "do"}) || !is_known(pragma)) continue;
    rewriter.flat().insert_before(index, "MRT_LOOP(" + quote(pragma) + ")");
  }
}

} // namespace mrt
