// The address space of a method's object. Before Metal 4.1, a method that names no address space has its object in
// `thread`; from then on the object may be in any address space, as in clang. The strict text names the address space.
#include "rewrite/internal.h"

namespace mrt {
namespace {

constexpr uint32_t first_version_with_generic_objects = 410;

struct Signature {
  bool is_static = false, names_space = false;
  uint32_t end = none; // the last token of the parameters and the qualifiers after them
};

Signature signature_of(const TokenList &tokens, const Declaration &declaration) {
  Signature signature;
  for (uint32_t index = declaration.tokens.first; index < declaration.name; index++)
    signature.is_static |= one_of(tokens[index].text, {"static", "friend"});
  signature.end = declaration.parameters.last;
  for (uint32_t index = signature.end + 1; index < declaration.tokens.last; index++) {
    if (one_of(tokens[index].text, {"const", "volatile"})) signature.end = index;
    else if (is_space(tokens[index].text)) signature.names_space = true;
    else break;
  }
  return signature;
}

// Constructors have the name of their class, without a type before it.
bool is_constructor(const Rewriter &rewriter, const Declaration &declaration) {
  const TokenList &tokens = rewriter.tokens;
  const std::string_view name = tokens[declaration.name].text;
  if (tokens.is(declaration.name - 1, "~")) return true;
  const std::string &path = rewriter.path(declaration);
  const std::string own = std::string(name) + "::";
  return path.size() >= own.size() && path.compare(path.size() - own.size(), own.size(), own) == 0;
}

} // namespace

bool has_object_in_thread(const Rewriter &rewriter, const Declaration &declaration) {
  if (rewriter.version >= first_version_with_generic_objects) return false;
  if (declaration.kind != DeclarationKind::function || !declaration.parameters.exists()) return false;
  if (!rewriter.program.scopes[declaration.scope].is_class || is_constructor(rewriter, declaration)) return false;
  const Signature signature = signature_of(rewriter.tokens, declaration);
  return !signature.is_static && !signature.names_space;
}

void place_objects(Rewriter &rewriter) {
  for (const Declaration &declaration : rewriter.program.declarations)
    if (has_object_in_thread(rewriter, declaration))
      rewriter.strict().insert_after(signature_of(rewriter.tokens, declaration).end, " __private ");
}

} // namespace mrt
