// Reports calls that are not allowed: MSL has no recursion (1.5.1), and no function calls a kernel (5.1.3). Calls are
// recognized by name. So only functions with a unique name, in the program and Metal's library, are checked here:
// overloads and templates may call others of the same name, such as `float max(float a, float b, float c) { return
// max(a, max(b, c)); }`. For those, may_recurse() requests a check of the compiled calls.
#include "rewrite/internal.h"

namespace mrt {
namespace {

// Functions of Metal's library, which a program may overload (MSL 6).
constexpr std::string_view library_prefixes[] = {"simd_", "quad_", "atomic_", "pack_", "unpack_"};
constexpr std::string_view library_functions[] = {"abs",
                                                  "absdiff",
                                                  "acos",
                                                  "acosh",
                                                  "addsat",
                                                  "all",
                                                  "any",
                                                  "asin",
                                                  "asinh",
                                                  "atan",
                                                  "atan2",
                                                  "atanh",
                                                  "ceil",
                                                  "clamp",
                                                  "clz",
                                                  "copysign",
                                                  "cos",
                                                  "cosh",
                                                  "cospi",
                                                  "cross",
                                                  "ctz",
                                                  "determinant",
                                                  "distance",
                                                  "divide",
                                                  "dot",
                                                  "exp",
                                                  "exp10",
                                                  "exp2",
                                                  "fabs",
                                                  "faceforward",
                                                  "fdim",
                                                  "floor",
                                                  "fma",
                                                  "fmax",
                                                  "fmax3",
                                                  "fmedian3",
                                                  "fmin",
                                                  "fmin3",
                                                  "fmod",
                                                  "fract",
                                                  "frexp",
                                                  "hadd",
                                                  "ilogb",
                                                  "isfinite",
                                                  "isinf",
                                                  "isnan",
                                                  "isnormal",
                                                  "isordered",
                                                  "isunordered",
                                                  "ldexp",
                                                  "length",
                                                  "log",
                                                  "log10",
                                                  "log2",
                                                  "mad24",
                                                  "madhi",
                                                  "madsat",
                                                  "max",
                                                  "max3",
                                                  "median3",
                                                  "min",
                                                  "min3",
                                                  "mix",
                                                  "modf",
                                                  "mul24",
                                                  "mulhi",
                                                  "nextafter",
                                                  "normalize",
                                                  "popcount",
                                                  "pow",
                                                  "powr",
                                                  "reflect",
                                                  "refract",
                                                  "rhadd",
                                                  "rint",
                                                  "rotate",
                                                  "round",
                                                  "rsqrt",
                                                  "saturate",
                                                  "select",
                                                  "sign",
                                                  "signbit",
                                                  "sin",
                                                  "sincos",
                                                  "sinh",
                                                  "sinpi",
                                                  "smoothstep",
                                                  "sqrt",
                                                  "step",
                                                  "subsat",
                                                  "tan",
                                                  "tanh",
                                                  "tanpi",
                                                  "transpose",
                                                  "trunc",
                                                  "extract_bits",
                                                  "insert_bits",
                                                  "reverse_bits",
                                                  "distance_squared",
                                                  "length_squared",
                                                  "is_null_texture",
                                                  "get_null_sampler"};

bool is_of_library(std::string_view name) {
  const auto starts = [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; };
  return one_of(name, library_functions) ||
         std::any_of(std::begin(library_prefixes), std::end(library_prefixes), starts);
}

class Calls {
public:
  explicit Calls(Rewriter &rewriter) : rewriter(rewriter), tokens(rewriter.tokens) {
    for (const Declaration &declaration : rewriter.program.declarations) {
      if (declaration.kind != DeclarationKind::function || declaration.name == none) continue;
      if (is_of_library(tokens[declaration.name].text)) continue;
      Known &known = functions[tokens[declaration.name].text];
      known.is_template |= !declaration.templates.empty() || rewriter.program.scopes[declaration.scope].is_class;
      if (!declaration.body.exists()) continue;
      known.definitions++;
      known.definition = &declaration;
      for (uint32_t index = declaration.start; index < declaration.name; index++)
        known.is_kernel |= tokens.is(index, "kernel");
      for (const Attribute &attribute : declaration.attributes) known.is_kernel |= tokens.is(attribute.name, "kernel");
    }
    for (auto &[name, known] : functions)
      if (known.definition && known.definitions == 1) collect(known);
  }

  void run() {
    for (auto &[name, known] : functions) {
      for (const auto &[callee, token] : known.callees) {
        if (functions[callee].is_kernel)
          rewriter.error(token, "kernel function '" + std::string(callee) + "' cannot be called from a function");
        else if (reaches(callee, name))
          rewriter.error(token, recursion_message(std::string(name), std::string(callee), callee == name));
      }
    }
  }

private:
  struct Known {
    const Declaration *definition = nullptr;
    unsigned definitions = 0;
    bool is_template = false, is_kernel = false;
    std::map<std::string_view, uint32_t> callees; // and the first token of each
  };

  void collect(Known &known) {
    Locals locals(tokens, *known.definition);
    for (uint32_t index = known.definition->tokens.first; index < known.definition->tokens.last; index++) {
      const bool is_hidden = index != known.definition->name && locals.hide(index);
      if (is_hidden || index < known.definition->body.first || !tokens.is_identifier(index)) continue;
      if (!tokens.is(index + 1, "(") || one_of(tokens[index - 1].text, {".", "->", "::"})) continue;
      auto callee = functions.find(tokens[index].text);
      if (callee == functions.end() || callee->second.definitions != 1) continue;
      if (arguments(index + 1) != parameters(*callee->second.definition)) continue;
      if (!callee->second.is_template || callee->second.is_kernel) known.callees.emplace(tokens[index].text, index);
    }
  }

  size_t count(Range range) const { return range.size() == 0 ? 0 : split_commas(tokens, range).size(); }
  size_t arguments(uint32_t open) const { return count({open + 1, tokens[open].partner}); }
  size_t parameters(const Declaration &function) const { return count(function.parameters); }

  bool reaches(std::string_view from, std::string_view to) {
    std::set<std::string_view> seen{from};
    std::vector<std::string_view> open{from};
    while (!open.empty()) {
      const std::string_view at = open.back();
      open.pop_back();
      if (at == to) return true;
      for (const auto &[callee, token] : functions[at].callees)
        if (seen.insert(callee).second) open.push_back(callee);
    }
    return false;
  }

  Rewriter &rewriter;
  const TokenList &tokens;
  std::map<std::string_view, Known> functions;
};

} // namespace

void check_calls(Rewriter &rewriter) { Calls(rewriter).run(); }

} // namespace mrt
