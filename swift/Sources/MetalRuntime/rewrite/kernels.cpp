// Rewrites kernels as plain functions, each with a struct that describes its parameters (mrt/entry.h). Each name under
// which the host can find a kernel becomes a record.
#include "rewrite/internal.h"

#include "include/metal_runtime.h"

#include <cstdlib>

namespace mrt {
namespace {

// The attributes of kernel parameters that name positions, sizes and indices (MSL 5.2.3.6).
constexpr std::string_view kernel_inputs[] = {
    "thread_position_in_grid",
    "thread_position_in_threadgroup",
    "thread_index_in_threadgroup",
    "threadgroup_position_in_grid",
    "threads_per_grid",
    "threads_per_threadgroup",
    "threadgroups_per_grid",
    "dispatch_threads_per_threadgroup",
    "thread_index_in_simdgroup",
    "simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup",
    "dispatch_simdgroups_per_threadgroup",
    "threads_per_simdgroup",
    "thread_execution_width",
    "thread_index_in_quadgroup",
    "quadgroup_index_in_threadgroup",
    "quadgroups_per_threadgroup",
    "dispatch_quadgroups_per_threadgroup",
    "grid_origin",
    "grid_size",
};
constexpr std::string_view unsupported_inputs[] = {"stage_in",    "imageblock_data", "payload", "vertex_id",
                                                   "instance_id", "position",        "color"};

bool has_attribute(const Rewriter &rewriter, const Declaration &declaration, std::string_view name) {
  for (const Attribute &attribute : declaration.attributes)
    if (rewriter.tokens.is(attribute.name, name)) return true;
  return false;
}

const Attribute *attribute_named(const Rewriter &rewriter, const std::vector<Attribute> &attributes,
                                 std::string_view name) {
  for (const Attribute &attribute : attributes)
    if (rewriter.tokens.is(attribute.name, name)) return &attribute;
  return nullptr;
}

bool has_keyword(const Rewriter &rewriter, const Declaration &declaration, std::string_view keyword) {
  for (uint32_t index = declaration.start; index < declaration.name; index++)
    if (rewriter.tokens.is(index, keyword)) return true;
  return false;
}

bool is_kernel(const Rewriter &rewriter, const Declaration &declaration) {
  return has_keyword(rewriter, declaration, "kernel") || has_attribute(rewriter, declaration, "kernel") ||
         (declaration.kind == DeclarationKind::instantiation && has_attribute(rewriter, declaration, "host_name"));
}

// ---------------------------------------------------------------- parameters

bool ends_in_name(const TokenList &tokens, const std::vector<uint32_t> &kept) {
  if (kept.size() < 2 || !tokens.is_identifier(kept.back())) return false;
  const Token &before = tokens[kept[kept.size() - 2]];
  if (before.kind != TokenKind::identifier) return before.text != "::";
  if (kept.size() > 2 && one_of(tokens[kept[kept.size() - 3]].text, {"*", "&"})) return true; // `*const x`
  return !is_space(before.text) &&
         !one_of(before.text, {"const", "volatile", "unsigned", "signed", "typename", "struct"});
}

std::string flat_type(const TokenList &tokens, const std::vector<uint32_t> &kept, bool spaced = false) {
  std::string type;
  bool is_const = std::any_of(kept.begin(), kept.end(), [&](uint32_t token) { return tokens.is(token, "const"); });
  for (uint32_t token : kept) {
    std::string_view text = tokens[token].text;
    const std::string space = spaced && is_space(text) ? flat_space(text, is_const) : std::string();
    if (!space.empty()) text = space;
    else if (text == "constant" && !is_const) text = "const";
    if (!is_space(text)) type += std::string(type.empty() ? "" : " ") + std::string(text);
  }
  return type;
}

// For `constant packed_float3 *`, returns `packed_float3`.
std::string pointee_name(const TokenList &tokens, const std::vector<uint32_t> &kept) {
  std::vector<uint32_t> type;
  for (uint32_t token : kept)
    if (!is_space(tokens[token].text) && !one_of(tokens[token].text, {"const", "volatile"})) type.push_back(token);
  if (!type.empty() && one_of(tokens[type.back()].text, {"*", "&"})) type.pop_back();
  std::string name;
  for (uint32_t token : type)
    name += (!name.empty() && tokens[token].spaced ? " " : "") + std::string(tokens[token].text);
  return name;
}

void set_source(Rewriter &rewriter, KernelParameter &parameter, const std::vector<Attribute> &attributes) {
  const TokenList &tokens = rewriter.tokens;
  std::string_view input;
  for (const Attribute &attribute : attributes) {
    std::string_view name = tokens[attribute.name].text;
    if (one_of(name, kernel_inputs)) {
      if (!input.empty() && input != name)
        rewriter.error(attribute.name, "a parameter can't be '" + std::string(input) + "' and '" + std::string(name) +
                                           "' at once: declare two parameters");
      input = name;
    }
    if (one_of(name, unsupported_inputs))
      rewriter.error(attribute.name, "attribute '" + std::string(name) +
                                         "' is not supported: this device runs compute kernels on buffers");
    if (one_of(name, kernel_inputs)) parameter.source = std::string(name);
    if (one_of(name, {"buffer", "threadgroup", "texture", "sampler"})) {
      if (one_of(parameter.source, {"buffer", "threadgroup", "texture", "sampler"}))
        rewriter.error(attribute.name, "a parameter can't have the attributes '" + parameter.source + "' and '" +
                                           std::string(name) + "' at once");
      parameter.source = std::string(name);
      if (split_commas(tokens, attribute.arguments).size() == 1) parameter.index = rewriter.text(attribute.arguments);
      else rewriter.error(attribute.name, "'" + std::string(name) + "' attribute takes one argument");
      if (is_fraction(tokens, attribute.arguments))
        rewriter.error(attribute.name, "'" + std::string(name) + "' attribute requires an integer constant");
    }
    if (name == "function_constant" && attribute.arguments.size()) parameter.gate = attribute.arguments.last - 1;
  }
}

// Returns a type's name without a leading `metal::`.
std::string_view unqualified(std::string_view type) {
  if (type.substr(0, 5) == "metal") type.remove_prefix(5);
  while (!type.empty() && (type[0] == ':' || type[0] == ' ')) type.remove_prefix(1);
  return type;
}

// Whether a type is `tensor<…>`, or a name that the program gives to one.
bool is_tensor(const TokenList &tokens, std::string_view type) {
  type = unqualified(type);
  if (type.substr(0, 6) == "tensor" && type.find('<') != type.npos) return true;
  for (uint32_t index = 0; index + 4 < tokens.size(); index++) {
    if (!tokens.is(index, "using") || !tokens.is(index + 1, type) || !tokens.is(index + 2, "=")) continue;
    for (index += 3; one_of(tokens[index].text, {"metal", "::"});) index++;
    return tokens.is(index, "tensor");
  }
  return false;
}

// For a parameter without an attribute: determined by the name of its type, such as `metal::texture2d < float >`.
std::string resource_source(std::string_view type) {
  type = unqualified(type);
  if (type.substr(0, 7) == "texture" || type.substr(0, 5) == "depth") return "texture";
  return type == "sampler" ? "sampler" : std::string();
}

void check_parameter(Rewriter &rewriter, KernelParameter &parameter, uint32_t location) {
  bool is_pointer = !parameter.spelled_type.empty() &&
                    one_of(parameter.spelled_type.substr(parameter.spelled_type.size() - 1), {"*", "&"});
  if (parameter.source.empty() && is_pointer)
    parameter.source = parameter.space == "threadgroup" ? "threadgroup" : "buffer";
  if (parameter.source.empty()) parameter.source = resource_source(parameter.pointee);
  // A tensor of the host is in a buffer that the kernel does not write, whatever the space of its elements.
  if (!is_pointer && one_of(parameter.source, {"", "buffer"}) && is_tensor(rewriter.tokens, parameter.pointee)) {
    parameter.source = "buffer";
    parameter.space = "constant";
    return;
  }
  if (parameter.source.empty()) {
    parameter.source = "grid_origin";
    return rewriter.error(location,
                          "invalid type '" + parameter.spelled_type + "' for input declaration in a kernel function");
  }
  bool is_binding = one_of(parameter.source, {"buffer", "threadgroup"});
  const std::string resource = is_pointer ? std::string() : resource_source(parameter.pointee);
  if (is_binding != is_pointer || (!resource.empty() && resource != parameter.source))
    return rewriter.error(location, "type '" + parameter.spelled_type + "' is not valid for attribute '" +
                                        parameter.source + "'");
  const bool is_wrong =
      parameter.space == "thread" || (parameter.source == "buffer" ? parameter.space == "threadgroup"
                                                                   : one_of(parameter.space, {"device", "constant"}));
  if (is_binding && is_wrong)
    rewriter.error(location, "attribute '" + parameter.source + "' cannot be applied to a parameter in the '" +
                                 parameter.space + "' address space");
}

// For `device float (&x)[4]`, a reference to an array: returns its tokens without attributes. Returns false for
// anything else.
bool parse_array_reference(const Rewriter &rewriter, const std::vector<uint32_t> &kept, KernelParameter &parameter) {
  const TokenList &tokens = rewriter.tokens;
  size_t open = 0;
  while (open < kept.size() && !tokens.is(kept[open], "(")) open++;
  if (open == 0 || open + 3 >= kept.size() || !tokens.is(kept[open + 1], "&")) return false;
  const bool is_named = tokens.is_identifier(kept[open + 2]);
  const size_t close = open + 2 + is_named;
  if (!tokens.is(kept[close], ")") || close + 1 >= kept.size() || !tokens.is(kept[close + 1], "[")) return false;
  if (is_named) parameter.name = kept[open + 2];
  const std::vector<uint32_t> element(kept.begin(), kept.begin() + open), sizes(kept.begin() + close + 1, kept.end());
  parameter.spelled_type = flat_type(tokens, element) + " &";
  parameter.flat_type = flat_type(tokens, element, rewriter.result.spaced) + " (&)" + flat_type(tokens, sizes);
  parameter.pointee = pointee_name(tokens, element) + flat_type(tokens, sizes);
  return true;
}

// Returns the address space to which a parameter's value points, which is before its last `*` or `&`: constant for
// `device float *constant *x`, and thread for `device float **x`, which omits it.
std::string pointed_space(const TokenList &tokens, const std::vector<uint32_t> &kept) {
  std::string_view space, last;
  bool pending = false, pointed = false; // whether a space precedes the next `*`, and whether there was one
  for (size_t at = 0; at < kept.size(); at++) {
    const std::string_view text = tokens[kept[at]].text;
    if (text == "<") {
      const uint32_t after = after_angles(tokens, kept[at], kept.back() + 1);
      while (at + 1 < kept.size() && kept[at + 1] < after) at++;
    } else if (is_space(text)) {
      if (space.empty() || pointed) space = text;
      pending = true;
    } else if (one_of(text, {"*", "&"})) {
      last = pending || !pointed ? space : "thread";
      pointed = true;
      pending = false;
    }
  }
  return std::string(pointed ? last : space);
}

KernelParameter parse_parameter(Rewriter &rewriter, Range range) {
  const TokenList &tokens = rewriter.tokens;
  KernelParameter parameter;
  parameter.tokens = range;
  std::vector<Attribute> attributes;
  std::vector<uint32_t> kept;
  for (uint32_t index = range.first; index < range.last; index++) {
    if (opens_attribute(tokens, index)) {
      parse_attributes(tokens, index + 2, tokens[index].partner - 1, attributes);
      index = tokens[index].partner;
    } else {
      kept.push_back(index);
      parameter.coherent |= tokens[index].coherent;
    }
  }
  parameter.space = pointed_space(tokens, kept);
  if (parse_array_reference(rewriter, kept, parameter)) {
    set_source(rewriter, parameter, attributes);
    return parameter;
  }
  bool is_array = false; // `constant int strides[3]` is a pointer
  while (kept.size() > 2 && tokens.is(kept.back(), "]")) {
    uint32_t open = tokens[kept.back()].partner;
    while (!kept.empty() && kept.back() >= open) kept.pop_back();
    is_array = true;
  }
  if (ends_in_name(tokens, kept)) {
    parameter.name = kept.back();
    kept.pop_back();
  }
  // `device float *const x`: the constness of the parameter itself is irrelevant to the caller.
  while (kept.size() > 2 && one_of(tokens[kept.back()].text, {"const", "volatile"}) &&
         one_of(tokens[kept[kept.size() - 2]].text, {"*", "const", "volatile"}))
    kept.pop_back();
  parameter.spelled_type = flat_type(tokens, kept) + (is_array ? " *" : "");
  parameter.flat_type = flat_type(tokens, kept, rewriter.result.spaced) + (is_array ? " *" : "");
  parameter.pointee = pointee_name(tokens, kept);
  set_source(rewriter, parameter, attributes);
  return parameter;
}

std::vector<KernelParameter> parse_parameters(Rewriter &rewriter, const Declaration &declaration) {
  std::vector<KernelParameter> parameters;
  Range range = declaration.parameters;
  if (range.size() == 1 && rewriter.tokens.is(range.first, "void")) return parameters;
  for (Range part : split_commas(rewriter.tokens, range)) parameters.push_back(parse_parameter(rewriter, part));
  return parameters;
}

// Checks indices that are literals, reporting the line; others are checked when the library is loaded.
void check_indices(Rewriter &rewriter, const std::vector<KernelParameter> &parameters) {
  std::set<std::string> taken;
  for (const KernelParameter &parameter : parameters) {
    if (parameter.index.empty()) continue;
    char *end = nullptr;
    unsigned long index = strtoul(parameter.index.c_str(), &end, 0);
    if (end == parameter.index.c_str() || *end) continue;
    uint32_t location = parameter.name != none ? parameter.name : parameter.tokens.first;
    const unsigned limit = parameter.source == "texture"   ? unsigned(MRT_MAX_TEXTURES)
                           : parameter.source == "sampler" ? unsigned(MRT_MAX_SAMPLERS)
                                                           : unsigned(MRT_MAX_BUFFERS);
    // An array of textures or samplers has one index for each element.
    const unsigned long count = parameter.space.empty() ? array_count(rewriter.tokens, parameter.tokens) : 1;
    if (index >= limit || count > limit - index) {
      rewriter.error(location, "'" + parameter.source +
                                   "' attribute parameter is out of bounds: must be between 0 and " +
                                   std::to_string(limit - 1));
      continue;
    }
    for (unsigned long at = index; parameter.gate == none && at < index + count; at++)
      if (!taken.insert(parameter.source + std::to_string(at)).second)
        rewriter.error(location,
                       "cannot reserve '" + parameter.source + "' resource location at index " + std::to_string(at));
  }
}

// ---------------------------------------------------------------- generated text

uint32_t uses(const std::set<std::string_view> &names) {
  uint32_t bits = 0;
  for (std::string_view name : names) {
    auto starts = [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; };
    if (starts("simdgroup_") && name != "simdgroup_barrier") bits |= 2;
    else if (starts("simd_") || starts("quad_")) bits |= 1;
    if (name == "threadgroup_barrier" || name == "simdgroup_barrier") bits |= 4;
    if (starts("atomic_")) bits |= 8;
  }
  return bits;
}

int constant_position(const Rewriter &rewriter, std::string_view name) {
  int position = 0;
  for (const FunctionConstant &constant : rewriter.constants) {
    if (constant.name == name) return constant.index.empty() ? -1 : position;
    position += !constant.index.empty();
  }
  return -1;
}

std::string numbers(const std::vector<ConstantUse> &uses) {
  std::string out;
  for (ConstantUse use : uses) out += std::to_string(int(use)) + ", ";
  return out;
}

// Returns the struct described in mrt/entry.h, preceded by a function for each parameter that exists only if a constant
// is true.
std::string spec(Rewriter &rewriter, const Kernel &kernel, const Declaration &declaration) {
  std::string number = std::to_string(kernel.declaration), gates, parameters;
  for (size_t index = 0; index < kernel.parameters.size(); index++) {
    const KernelParameter &parameter = kernel.parameters[index];
    std::string gate = "-1, nullptr";
    if (parameter.gate != none) {
      int position = constant_position(rewriter, rewriter.tokens[parameter.gate].text);
      std::string function = "mrt_gate_" + number + "_" + std::to_string(index);
      gates += "static bool " + function + "(const MrtLaunch *launch) { mrt::enter(launch); return bool(" +
               rewriter.text(parameter.gate) + "); } ";
      gate = std::to_string(position < 0 ? -2 : position) + ", " + function;
    }
    std::string name = parameter.name == none ? std::string() : rewriter.text(parameter.name);
    parameters += "{" + quote(name) + ", " + quote(parameter.pointee) + ", mrt::ArgumentSource::" + parameter.source +
                  ", " +
                  (parameter.space == "threadgroup" ? "2"
                   : parameter.space == "constant"  ? "1"
                                                    : "0") +
                  (parameter.coherent ? ", true, " : ", false, ") + gate + "}, ";
  }
  return gates + "namespace { struct mrt_spec_" + number +
         " { static constexpr const char *source_name = " + quote(kernel.name) +
         "; static constexpr mrt_u32 uses = " + std::to_string(uses(reach(rewriter, declaration).names)) +
         ", count = " + std::to_string(kernel.parameters.size()) +
         "; static constexpr mrt::ParameterSpec parameters[] = {" + parameters +
         "{}}; static constexpr mrt_u8 constants_used[] = {" + numbers(kernel.constants_used) + "0}; }; }";
}

std::string identification(const Kernel &kernel) {
  std::string text = "MRT_IDENTIFY((" + kernel.max_threads + ")";
  for (const KernelParameter &parameter : kernel.parameters)
    text += ", " + (parameter.index.empty() ? std::string("mrt::automatic") : "(" + parameter.index + ")");
  return text + ")";
}

std::string function_type(const std::vector<KernelParameter> &parameters) {
  std::string type = "void (*)(";
  for (const KernelParameter &parameter : parameters) type += (type.back() == '(' ? "" : ", ") + parameter.flat_type;
  return type + ")";
}

void add_entry(Rewriter &rewriter, const Kernel &kernel, const Declaration &declaration, std::string name,
               const std::string &function) {
  auto &entries = rewriter.result.entries;
  uint32_t location = declaration.name;
  for (const EntryPoint &other : entries)
    if (other.name == name) return rewriter.error(location, "multiple kernel functions are named '" + name + "'");
  std::string record =
      "MRT_ENTRY(" + std::to_string(entries.size()) + ", (" + function +
      "), ::" + rewriter.path(rewriter.program.declarations[kernel.declaration]) + "mrt_spec_" +
      std::to_string(kernel.declaration) + ", " + quote(name) + ", " +
      std::to_string(rewriter.tokens[rewriter.program.declarations[kernel.declaration].name].source_line) + ")";
  entries.push_back({std::move(name), declaration.tokens.last - 1, location, std::move(record),
                     declared_constants(rewriter, kernel.constants_used)});
}

std::string host_name(Rewriter &rewriter, const Declaration &declaration, const std::string &otherwise) {
  const Attribute *attribute = attribute_named(rewriter, declaration.attributes, "host_name");
  if (!attribute) return otherwise;
  std::string name;
  for (uint32_t token = attribute->arguments.first; token < attribute->arguments.last; token++) { // joins "a" "b"
    std::string_view text = rewriter.tokens[token].text;
    if (rewriter.tokens[token].kind == TokenKind::string) name += text.substr(1, text.size() - 2);
  }
  if (name.empty()) rewriter.error(attribute->name, "'host_name' attribute requires a string");
  return name;
}

void drop_markers(Rewriter &rewriter, const Declaration &declaration) {
  for (uint32_t index = declaration.start; index < declaration.name; index++)
    if (rewriter.tokens.is(index, "kernel")) rewriter.erase(index, index + 1);
}

void check_header(Rewriter &rewriter, const Declaration &declaration) {
  if (!has_keyword(rewriter, declaration, "void"))
    rewriter.error(declaration.name, "kernel function must have void return type");
  if (rewriter.program.scopes[declaration.scope].is_class)
    rewriter.error(declaration.name, "'kernel' attribute cannot be applied to a member function");
}

void rewrite_function(Rewriter &rewriter, uint32_t position) {
  const Declaration &declaration = rewriter.program.declarations[position];
  drop_markers(rewriter, declaration);
  bool is_specialization = !declaration.templates.empty() && declaration.templates.back().size() == 3;
  if (!has_keyword(rewriter, declaration, "static") && !is_specialization)
    rewriter.flat().insert_before(declaration.start, "static");
  if (!declaration.body.exists()) return;
  check_header(rewriter, declaration);
  Kernel kernel;
  kernel.declaration = position;
  kernel.name = rewriter.text(declaration.name);
  kernel.parameters = parse_parameters(rewriter, declaration);
  for (KernelParameter &parameter : kernel.parameters)
    check_parameter(rewriter, parameter, parameter.name != none ? parameter.name : parameter.tokens.first);
  check_indices(rewriter, kernel.parameters);
  check_positions(rewriter, declaration, kernel.parameters);
  if (const Attribute *limit = attribute_named(rewriter, declaration.attributes, "max_total_threads_per_threadgroup")) {
    kernel.max_threads = rewriter.text(limit->arguments);
    // MSL 5.1.7: a positive number. The arguments of a template are not known here.
    if (declaration.templates.empty())
      rewriter.strict().insert_after(declaration.tokens.last - 1,
                                     " static_assert((" + kernel.max_threads +
                                         ") > 0, \"'max_total_threads_per_threadgroup' must be positive\");");
  }
  kernel.constants_used = constants_used(rewriter, declaration, kernel.parameters);
  rewriter.flat().insert_after(declaration.body.first - 1, identification(kernel));
  rewriter.flat().insert_after(declaration.tokens.last - 1, spec(rewriter, kernel, declaration));
  hoist_threadgroup_variables(rewriter, declaration);
  if (declaration.templates.empty())
    add_entry(rewriter, kernel, declaration, host_name(rewriter, declaration, kernel.name),
              "(" + function_type(kernel.parameters) + ")(&" + kernel.name + ")");
  rewriter.kernels.push_back(std::move(kernel));
}

// Returns the kernel to which an explicit instantiation refers. If several have its name, the number of parameters
// decides.
const Kernel *find_kernel(const Rewriter &rewriter, const Declaration &instantiation, size_t parameter_count) {
  const Kernel *found = nullptr;
  for (const Kernel &kernel : rewriter.kernels) {
    if (!rewriter.tokens.is(instantiation.name, kernel.name)) continue;
    if (!found || (instantiation.parameters.exists() && kernel.parameters.size() == parameter_count)) found = &kernel;
  }
  return found;
}

// Returns the first token of `a::b::name` or `::a::b::name`, which follows the kernel's return type.
uint32_t start_of_path(const TokenList &tokens, uint32_t name) {
  while (name >= 2 && tokens.is(name - 1, "::")) {
    if (tokens.is(name - 2, "void")) return name - 1;
    name -= 2;
  }
  return name;
}

void rewrite_instantiation(Rewriter &rewriter, const Declaration &declaration) {
  drop_markers(rewriter, declaration);
  rewriter.flat().erase(declaration.tokens.first, declaration.tokens.last);
  std::vector<KernelParameter> parameters;
  if (declaration.parameters.exists()) parameters = parse_parameters(rewriter, declaration);
  const Kernel *kernel = find_kernel(rewriter, declaration, parameters.size());
  // The strict pass reports an instantiation of a kernel that does not exist.
  if (!kernel)
    return rewriter.error(declaration.name, "explicit instantiation of undefined function template '" +
                                                rewriter.text(declaration.name) + "'");
  std::string function =
      "&" + rewriter.tokens.join(start_of_path(rewriter.tokens, declaration.name), declaration.name + 1);
  if (declaration.template_arguments.exists()) {
    std::vector<uint32_t> arguments;
    for (uint32_t token = declaration.template_arguments.first; token < declaration.template_arguments.last; token++)
      arguments.push_back(token);
    function += flat_type(rewriter.tokens, arguments, rewriter.result.spaced);
  }
  if (declaration.parameters.exists()) function = "(" + function_type(parameters) + ")(" + function + ")";
  add_entry(rewriter, *kernel, declaration, host_name(rewriter, declaration, kernel->name), function);
}

} // namespace

bool is_kernel_input(std::string_view attribute) { return one_of(attribute, kernel_inputs); }

void rewrite_kernels(Rewriter &rewriter) {
  for (uint32_t position = 0; position < rewriter.program.declarations.size(); position++) {
    const Declaration &declaration = rewriter.program.declarations[position];
    if (declaration.name == none) continue;
    if (!is_kernel(rewriter, declaration)) continue;
    if (declaration.kind == DeclarationKind::function) rewrite_function(rewriter, position);
    if (declaration.kind == DeclarationKind::instantiation) rewrite_instantiation(rewriter, declaration);
  }
}

} // namespace mrt
