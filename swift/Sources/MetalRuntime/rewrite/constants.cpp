// Function constants become thread-local variables that are loaded from the launch when a thread starts, so that other
// values need no compilation. Constants that are computed from them are computed at the same time. On a GPU, which
// compiles a kernel for each set of values, all of them are compile-time constants.
#include "rewrite/internal.h"

namespace mrt {
namespace {

const Attribute *find_attribute(const Rewriter &rewriter, const Declaration &declaration, std::string_view name) {
  for (const Attribute &attribute : declaration.attributes)
    if (rewriter.tokens.is(attribute.name, name)) return &attribute;
  return nullptr;
}

bool in_groups(const Declaration &declaration, uint32_t token) {
  for (Range group : declaration.attribute_groups)
    if (token >= group.first && token < group.last) return true;
  return false;
}

std::string type_of(const Rewriter &rewriter, const Declaration &declaration) {
  std::string type;
  for (uint32_t index = declaration.start; index < declaration.name; index++)
    if (!in_groups(declaration, index) &&
        !one_of(rewriter.tokens[index].text, {"constant", "static", "const", "constexpr", "extern"}))
      type += (type.empty() ? "" : " ") + rewriter.text(index);
  return type;
}

// Finds the other constants that an initializer reads.
void find_sources(const Rewriter &rewriter, Range range, FunctionConstant &constant) {
  for (uint32_t index = range.first; index < range.last; index++)
    for (const FunctionConstant &other : rewriter.constants) {
      if (!rewriter.tokens.is(index, other.name)) continue;
      bool guarded = index >= 2 && rewriter.tokens.is(index - 2, "is_function_constant_defined");
      if (!other.index.empty()) (guarded ? constant.optional : constant.required).insert(other.path + other.name);
      constant.required.insert(other.required.begin(), other.required.end());
      constant.optional.insert(other.optional.begin(), other.optional.end());
    }
  for (const std::string &name : constant.optional) constant.required.erase(name);
}

void rewrite_constant(Rewriter &rewriter, const Declaration &declaration, uint32_t position,
                      const Attribute &attribute) {
  FunctionConstant constant;
  constant.name = rewriter.text(declaration.name);
  constant.path = rewriter.path(declaration);
  constant.declaration = position;
  constant.index = attribute.arguments.exists() ? rewriter.text(attribute.arguments) : "";
  if (constant.index.empty()) return rewriter.error(attribute.name, "'function_constant' attribute takes one argument");
  if (declaration.initializer != none)
    return rewriter.error(declaration.initializer,
                          "variable with 'function_constant' attribute cannot have an initializer");
  std::string type = constant.type = type_of(rewriter, declaration), name = constant.name;
  rewriter.erase(declaration.tokens.first, declaration.tokens.last);
  rewriter.flat().insert_before(declaration.tokens.first,
                                "MRT_FUNCTION_CONSTANT(" + name + ", (" + constant.index + "), " + type + ")");
  rewriter.strict().insert_before(declaration.tokens.first,
                                  "extern const __constant " + type + " " + name + "; static_assert((" +
                                      constant.index + ") >= 0 && (" + constant.index +
                                      ") < 65536, \"'function_constant' index must be between 0 and 65535\");");
  rewriter.constants.push_back(constant);
}

// The names of the program's functions that no constant expression may call.
std::set<std::string_view> run_time_functions(const Rewriter &rewriter) {
  std::set<std::string_view> names, others;
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (declaration.name == none) continue;
    bool is_constant = declaration.kind != DeclarationKind::function;
    for (uint32_t index = declaration.start; index < declaration.name; index++)
      is_constant |= rewriter.tokens.is(index, "constexpr");
    const bool is_member = rewriter.program.scopes[declaration.scope].is_class;
    if (!is_member) (is_constant ? others : names).insert(rewriter.tokens[declaration.name].text);
  }
  for (std::string_view name : others) names.erase(name);
  return names;
}

// MSL 4.2: the initializer of a constant is a core constant expression, so it calls only constexpr functions.
void check_initializer(Rewriter &rewriter, const Declaration &declaration, const std::set<std::string_view> &names) {
  const TokenList &tokens = rewriter.tokens;
  for (uint32_t index = declaration.initializer; index + 1 < declaration.tokens.last; index++)
    if (tokens.is(index + 1, "(") && names.count(tokens[index].text) && !one_of(tokens[index - 1].text, {".", "->"}))
      rewriter.error(index,
                     "the initializer of a constant calls '" + rewriter.text(index) + "', which is not constexpr");
}

void rewrite_derived(Rewriter &rewriter, const Declaration &declaration, uint32_t position,
                     const std::set<std::string_view> &run_time) {
  FunctionConstant constant;
  constant.name = rewriter.text(declaration.name);
  constant.path = rewriter.path(declaration);
  constant.declaration = position;
  find_sources(rewriter, {declaration.initializer, declaration.tokens.last}, constant);
  if (constant.required.empty() && constant.optional.empty()) return check_initializer(rewriter, declaration, run_time);
  for (uint32_t index = declaration.start; index < declaration.name; index++)
    if (rewriter.tokens.is(index, "constexpr"))
      return rewriter.error(declaration.name, "constexpr variable '" + constant.name +
                                                  "' must be initialized by a constant expression: it depends on a "
                                                  "function constant");
  std::string type = type_of(rewriter, declaration), name = constant.name;
  bool assigned = rewriter.tokens.is(declaration.initializer, "=");
  const std::string body = std::string(" { return") + (assigned ? "" : " " + type + "{");
  rewriter.erase(declaration.tokens.first, declaration.initializer);
  rewriter.flat().insert_before(declaration.tokens.first, "MRT_DERIVED_DECLARATION(" + name + ", " + type + ")" + body);
  rewriter.strict().insert_before(declaration.tokens.first, "extern const __constant " + type + " " + name +
                                                                "; inline " + type + " mrt_derive_" + name + "()" +
                                                                body);
  rewriter.erase(declaration.initializer, declaration.initializer + 1);
  rewriter.replace(declaration.tokens.last - 1, "; }");
  rewriter.flat().insert_after(declaration.tokens.last - 1, "MRT_DERIVED_VALUE(" + name + ", " + type + ")");
  rewriter.constants.push_back(constant);
}

// is_function_constant_defined(ns::x) becomes a flag next to the constant. The strict pass only checks the name.
void rewrite_queries(Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  for (uint32_t index = 0; index + 2 < tokens.size(); index++) {
    if (!tokens.is(index, "is_function_constant_defined") || !tokens.is(index + 1, "(")) continue;
    uint32_t close = tokens[index + 1].partner, name = close - 1;
    bool known = false;
    for (const FunctionConstant &constant : rewriter.constants)
      known |= !constant.index.empty() && tokens.is(name, constant.name);
    if (!known) {
      rewriter.error(name, "'" + rewriter.text(name) + "' is not a function constant");
      continue;
    }
    rewriter.flat().erase(index, index + 1);
    rewriter.flat().replace(name, "mrt_defined_" + rewriter.text(name));
    rewriter.strict().replace(index, "((void)");
    rewriter.strict().insert_after(close, ", true)");
  }
}

std::string epilogue(const Rewriter &rewriter) {
  std::string table, load;
  size_t count = 0;
  for (const FunctionConstant &constant : rewriter.constants) {
    std::string path = "::" + constant.path, variable = path + constant.name;
    if (constant.index.empty()) {
      load += "  " + variable + " = " + path + "mrt_derive_" + constant.name + "();\n";
      continue;
    }
    load += "  load_constant(" + variable + ", " + path + "mrt_defined_" + constant.name + ", values[" +
            std::to_string(count++) + "]);\n";
    table += "  {" + quote(constant.name) + ", " + path + "mrt_index_" + constant.name + ", mrt::TypeFacts<decltype(" +
             variable + ")>::data_type, sizeof(" + variable + ")},\n";
  }
  // On a GPU they are compile-time constants (metal/mrt/gpu/constants.h).
  return "#ifndef MRT_GPU\nnamespace mrt {\nconst mrt_u32 constant_count = " + std::to_string(count) +
         ";\nMRT_UNINSTRUMENTED static void load_constants(const void *const *values) {\n  (void)values;\n" + load +
         "}\n}\nstatic const MrtConstant mrt_constants[] = {\n" + table +
         "  {}\n};\nMRT_MODULE(mrt_constants)\n#endif\n";
}

} // namespace

void rewrite_constants(Rewriter &rewriter) {
  auto &declarations = rewriter.program.declarations;
  const std::set<std::string_view> run_time = run_time_functions(rewriter);
  for (uint32_t position = 0; position < declarations.size(); position++) {
    const Declaration &declaration = declarations[position];
    if (declaration.kind != DeclarationKind::variable || declaration.name == none ||
        rewriter.program.scopes[declaration.scope].is_class)
      continue;
    if (const Attribute *attribute = find_attribute(rewriter, declaration, "function_constant"))
      rewrite_constant(rewriter, declaration, position, *attribute);
    else if (declaration.initializer != none && declaration.templates.empty())
      rewrite_derived(rewriter, declaration, position, run_time);
  }
  rewrite_queries(rewriter);
  rewriter.result.flat_epilogue = epilogue(rewriter);
}

namespace {

// If several constants have the same name, a mention refers to the one with the given qualifier, or to the one in the
// nearest scope.
bool mentions_constant(const Rewriter &rewriter, const FunctionMentions &function, const std::set<Mention> &names,
                       const FunctionConstant &constant) {
  std::vector<const FunctionConstant *> namesakes;
  for (const FunctionConstant &other : rewriter.constants)
    if (other.name == constant.name) namesakes.push_back(&other);
  for (auto name = names.lower_bound({constant.name, {}, false}); name != names.end() && name->name == constant.name;
       ++name) {
    if (name->is_member) continue;
    const FunctionConstant *nearest = nullptr;
    for (const FunctionConstant *other : namesakes)
      if (means(rewriter.mentions, function, *name, other->path) &&
          (!nearest || other->path.size() > nearest->path.size()))
        nearest = other;
    if (nearest == &constant || !nearest) return true;
  }
  return false;
}

bool is_mentioned(const Rewriter &rewriter, const Reach &reached, std::set<Mention> FunctionMentions::*names,
                  const FunctionConstant &constant) {
  return std::any_of(reached.functions.begin(), reached.functions.end(), [&](const FunctionMentions *function) {
    return mentions_constant(rewriter, *function, function->*names, constant);
  });
}

} // namespace

// A constant is required if its value is needed. It is optional if the program first tests whether it is defined, or if
// only a parameter depends on it.
std::vector<ConstantUse> constants_used(const Rewriter &rewriter, const Declaration &function,
                                        const std::vector<KernelParameter> &parameters) {
  const Reach reached = reach(rewriter, function);
  std::set<std::string> required, optional, gating;
  for (const KernelParameter &parameter : parameters)
    if (parameter.gate != none) gating.insert(rewriter.text(parameter.gate));
  const auto known = [](const FunctionConstant &constant) { return constant.path + constant.name; };
  for (const FunctionConstant &constant : rewriter.constants) {
    const bool gates = gating.count(constant.name) != 0;
    const bool read = is_mentioned(rewriter, reached, &FunctionMentions::names, constant);
    if (constant.index.empty()) {
      if (read || gates) required.insert(constant.required.begin(), constant.required.end());
      if (read || gates) optional.insert(constant.optional.begin(), constant.optional.end());
    } else if (is_mentioned(rewriter, reached, &FunctionMentions::guards, constant)) {
      optional.insert(known(constant));
    } else if (read) {
      required.insert(known(constant));
    } else if (gates) {
      optional.insert(known(constant));
    }
  }
  std::vector<ConstantUse> uses;
  for (const FunctionConstant &constant : rewriter.constants)
    if (!constant.index.empty())
      uses.push_back(optional.count(known(constant))   ? ConstantUse::optional
                     : required.count(known(constant)) ? ConstantUse::required
                                                       : ConstantUse::none);
  return uses;
}

std::vector<DeclaredConstant> declared_constants(const Rewriter &rewriter, const std::vector<ConstantUse> &uses) {
  std::vector<DeclaredConstant> declared;
  size_t position = 0;
  for (const FunctionConstant &constant : rewriter.constants) {
    if (constant.index.empty()) continue;
    ConstantUse use = uses[position++];
    if (use == ConstantUse::none) continue;
    declared.push_back(
        {constant.name, evaluate_index(constant.index), data_type_named(constant.type), use == ConstantUse::required});
  }
  return declared;
}

} // namespace mrt
