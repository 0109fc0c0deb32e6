// Kernel inputs declared in program scope, such as `uint2 position [[thread_position_in_grid]];`: each use of the name
// is replaced by the value for the running thread.
#include "rewrite/internal.h"

namespace mrt {
namespace {

struct Input {
  std::string_view name;
  std::string type, source;
};

void replace_uses(Rewriter &rewriter, const Declaration &function, const Input &input) {
  const TokenList &tokens = rewriter.tokens;
  Locals locals(tokens, function);
  for (uint32_t index = function.tokens.first; index < function.tokens.last; index++) {
    const bool hidden = locals.hide(index);
    const bool is_member = index > 0 && one_of(tokens[index - 1].text, {".", "->"});
    if (hidden || is_member || !tokens.is(index, input.name)) continue;
    rewriter.strict().replace(index, "mrt::input<" + input.type + ">()");
    rewriter.flat().replace(index, "mrt::Argument<" + input.type + ">::get<mrt::ArgumentSource::" + input.source +
                                       ">(mrt::current_thread, 0)");
  }
}

} // namespace

const Attribute *program_input(const Rewriter &rewriter, const Declaration &declaration) {
  const bool is_global =
      declaration.kind == DeclarationKind::variable && !rewriter.program.scopes[declaration.scope].is_class;
  if (!is_global || declaration.initializer != none || declaration.name == none) return nullptr;
  for (const Attribute &attribute : declaration.attributes)
    if (is_kernel_input(rewriter.tokens[attribute.name].text)) return &attribute;
  return nullptr;
}

void rewrite_inputs(Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  for (const Declaration &declaration : rewriter.program.declarations) {
    const Attribute *attribute = program_input(rewriter, declaration);
    if (!attribute) continue;
    Input input = {tokens[declaration.name].text, {}, rewriter.text(attribute->name)};
    for (uint32_t index = declaration.start; index < declaration.name; index++)
      if (!one_of(tokens[index].text, {"const", "static", "thread"})) input.type += rewriter.text(index) + " ";
    rewriter.erase(declaration.tokens.first, declaration.tokens.last);
    for (const Declaration &function : rewriter.program.declarations)
      if (function.kind == DeclarationKind::function && function.body.exists()) replace_uses(rewriter, function, input);
  }
}

} // namespace mrt
