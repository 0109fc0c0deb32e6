// Libraries and functions of the C interface.
#include "compile/program.h"
#include "support/settings.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "compile/kernel_cache.h"

using namespace mrt;

struct mrt_library {
  mrt_library(std::string source, CompileOptions options, bool fast, uint32_t max_threads)
      : program(std::move(source), std::move(options)), fast(fast), max_threads(max_threads) {}

  std::atomic<int> references{1};
  MetalProgram program;
  const bool fast;
  const uint32_t max_threads;
  std::string warnings;
  std::atomic<bool> told{false}; // whether its warnings have been added to the findings
  std::mutex mutex;
  std::map<std::string, std::vector<mrt_function_constant>> constants; // for mrt_library_function_constants
};

struct mrt_function {
  std::atomic<int> references{1};
  mrt_library *library = nullptr;
  size_t entry = 0;
  std::string name;
  // Indexed by position in MrtModule::constants: the address of the value, or null. The last entry is a number that
  // identifies the function.
  std::vector<const void *> constants;
  std::vector<mrt_constant_value> values;
  std::vector<mrt_argument> arguments;
  std::vector<mrt_function_constant> constant_infos;
  mrt_function_info info = {};
  std::mutex mutex;
  std::map<int, KernelCode> codes;
  mutable GpuSlot gpu;
};

namespace {

void set_message(char **message, const std::string &text) {
  if (message) *message = text.empty() ? nullptr : copy_string(text);
}

Build build_of(const mrt_library *library, bool checked) {
  int64_t fast = setting_number(Setting::fast);
  return {checked, fast == fast_always || (fast == fast_auto && library->fast), setting_flag(Setting::contract)};
}

bool find_entry(const mrt_library *library, const char *name, size_t &entry) {
  const auto &entries = library->program.entries();
  auto found = std::find_if(entries.begin(), entries.end(),
                            [&](const MetalProgram::Entry &other) { return other.name == name; });
  entry = size_t(found - entries.begin());
  return found != entries.end();
}

// ---------------------------------------------------------------- function constants

const mrt_constant_value *value_of(const std::vector<mrt_constant_value> &values, const MrtConstant &constant) {
  for (const mrt_constant_value &value : values)
    if (value.name ? !strcmp(value.name, constant.name) : value.index == constant.index) return &value;
  return nullptr;
}

std::string describe(const MrtConstant &constant) {
  return "function constant '" + std::string(constant.name) + "' (index " + std::to_string(constant.index) + ")";
}

bool bind_constants(mrt_function &function, const MrtModule &module, const MrtEntry &entry, bool all_needed,
                    std::string &problem) {
  static std::atomic<uintptr_t> number{1};
  for (mrt_u32 position = 0; position < module.constant_count; position++) {
    const MrtConstant &constant = module.constants[position];
    const mrt_constant_value *value = value_of(function.values, constant);
    mrt_u8 used = entry.constants_used[position];
    if (value && used && value->type != constant.data_type) {
      problem = describe(constant) + " has MTLDataType " + std::to_string(constant.data_type) +
                " but its value was given as " + std::to_string(value->type);
      return false;
    }
    if (!value && used == 2 && all_needed) {
      problem = "function '" + function.name + "' cannot be specialized: " + describe(constant) +
                " is used without a value; set it, or test is_function_constant_defined in the source";
      return false;
    }
    function.constants.push_back(value ? value->value : nullptr);
  }
  function.constants.push_back((const void *)number++);
  return true;
}

// The values of the constants that an entry uses, as the initializers of an array of mrt::Given.
std::string given_constants(const KernelCode &code) {
  std::string text;
  for (mrt_u32 position = 0; position < code.module->constant_count; position++) {
    const auto *value = static_cast<const uint8_t *>(code.constants[position]);
    if (!value || !code.entry->constants_used[position]) continue;
    text += "{" + std::to_string(code.module->constants[position].index) + ", {";
    for (mrt_u32 byte = 0; byte < code.module->constants[position].size; byte++)
      text += std::to_string(value[byte]) + ",";
    text += "}}, ";
  }
  return text;
}

// ---------------------------------------------------------------- reflection

// Returns whether a parameter is present: it is not if its function constant is false.
bool is_active(const mrt_function &function, const MrtParameter &parameter) {
  if (!parameter.gate_value) return true;
  MrtLaunch launch = {};
  launch.constants = function.constants.data();
  return parameter.gate_value(&launch);
}

void describe_arguments(mrt_function &function, const MrtEntry &entry) {
  for (mrt_u32 index = 0; index < entry.parameter_count; index++) {
    const MrtParameter &parameter = entry.parameters[index];
    if (parameter.kind == MRT_PARAMETER_BUILTIN) continue;
    function.arguments.push_back({parameter.name, parameter.type_name,
                                  parameter.kind, // the same numbers
                                  parameter.space, parameter.index, parameter.element_size, parameter.element_alignment,
                                  parameter.data_type, parameter.is_const || parameter.space == MRT_SPACE_CONSTANT,
                                  bool(parameter.is_reference), is_active(function, parameter), parameter.count});
  }
}

void describe_function(mrt_function &function, const LoadedModule &loaded, const MrtEntry &entry) {
  const MrtModule &module = *loaded.module;
  describe_arguments(function, entry);
  for (mrt_u32 position = 0; position < module.constant_count; position++)
    if (entry.constants_used[position])
      function.constant_infos.push_back({module.constants[position].name, module.constants[position].index,
                                         module.constants[position].data_type, entry.constants_used[position] == 2});
  uint32_t bytes = 0;
  for (mrt_u32 position : loaded.variables.at(&entry)) {
    const MrtVariable &variable = *module.variables[position];
    bytes = (bytes + variable.alignment - 1) / variable.alignment * variable.alignment + variable.size;
  }
  uint32_t limit = uint32_t(setting_number(Setting::max_threads));
  for (uint32_t other : {entry.max_total_threads, function.library->max_threads})
    if (other) limit = std::min(limit, other);
  function.info = {function.name.c_str(),
                   function.arguments.data(),
                   function.arguments.size(),
                   function.constant_infos.data(),
                   function.constant_infos.size(),
                   bytes,
                   limit,
                   bool(entry.uses & 3),
                   bool(entry.uses & 2)};
}

const char *argument_kind(uint32_t kind) {
  return kind == MRT_ARGUMENT_BUFFER    ? "buffer"
         : kind == MRT_ARGUMENT_TEXTURE ? "texture"
         : kind == MRT_ARGUMENT_SAMPLER ? "sampler"
                                        : "threadgroup";
}

// Checks for two bindings at the same index, and for indices out of range, if indices are not literals.
bool check_indices(const mrt_function &function, std::string &problem) {
  for (const mrt_argument &argument : function.arguments) {
    const uint32_t limit = argument.kind == MRT_ARGUMENT_TEXTURE   ? MRT_MAX_TEXTURES
                           : argument.kind == MRT_ARGUMENT_SAMPLER ? MRT_MAX_SAMPLERS
                                                                   : MRT_MAX_BUFFERS;
    if (argument.index > limit - argument.count)
      problem = "attribute parameter is out of bounds: must be between 0 and " + std::to_string(limit - 1);
    for (const mrt_argument *other = function.arguments.data(); other != &argument; other++)
      if (other->kind == argument.kind && other->index == argument.index && other->is_active && argument.is_active)
        problem = std::string("cannot reserve '") + argument_kind(argument.kind) + "' resource location at index " +
                  std::to_string(argument.index);
    if (!problem.empty())
      return problem = "function '" + function.name + "', parameter '" + argument.name + "': " + problem, false;
  }
  return true;
}

mrt_function *make_function(mrt_library *library, const char *name, const mrt_constant_value *values, size_t count,
                            bool all_needed, std::string &problem) {
  size_t entry_index = 0;
  if (!find_entry(library, name, entry_index)) {
    problem = "Function " + std::string(name) + " was not found in the library";
    return nullptr;
  }
  const LoadedModule *loaded =
      library->program.module(entry_index, build_of(library, setting_flag(Setting::check)), problem);
  if (!loaded) return nullptr;
  auto function = std::make_unique<mrt_function>();
  function->library = library;
  function->entry = entry_index;
  function->name = name;
  function->values.assign(values, values + count);
  const MrtEntry &entry = *loaded->entries.at(function->name);
  if (!bind_constants(*function, *loaded->module, entry, all_needed, problem)) return nullptr;
  describe_function(*function, *loaded, entry);
  return check_indices(*function, problem) ? function.release() : nullptr;
}

struct Unset {
  std::string message; // `variable 'x'`
  std::string file;
  uint32_t line, column;
};

// Parses the compiler's warnings about variables that are read before they are written.
std::vector<Unset> unset_variables(const std::string &warnings) {
  std::vector<Unset> list;
  const std::string sign = " is uninitialized when used here", start = ": warning: ";
  for (size_t at = 0; (at = warnings.find(sign, at)) != std::string::npos; at += sign.size()) {
    const size_t line_start = warnings.rfind('\n', at) + 1, colon = warnings.find(start, line_start);
    if (colon > at) continue;
    const std::string place = warnings.substr(line_start, colon - line_start);
    const size_t column = place.rfind(':'), line = column ? place.rfind(':', column - 1) : column;
    if (line == std::string::npos || column == std::string::npos || line == column) continue;
    list.push_back({warnings.substr(colon + start.size(), at - colon - start.size()), place.substr(0, line),
                    uint32_t(strtoul(place.c_str() + line + 1, nullptr, 10)),
                    uint32_t(strtoul(place.c_str() + column + 1, nullptr, 10))});
  }
  return list;
}

// Adds a finding for each warning. The compiler warns only about paths that it knows; guards (metal/mrt/arrays.h) find
// the others when a kernel runs.
void find_uninitialized(const std::string &warnings) {
  for (const Unset &unset : unset_variables(warnings)) {
    const std::string message =
        unset.message + " is read before anything is written to it; initialize it where it is declared";
    mrt_finding finding = {};
    finding.kind = "uninitialized-read";
    finding.severity = "error";
    finding.message = message.c_str();
    finding.file = unset.file.c_str();
    finding.line = unset.line;
    finding.column = unset.column;
    mrt_finding_add(&finding);
  }
}

// Called once per library, if the checker is on.
void tell_warnings(mrt_library *library) {
  if (!library->told.exchange(true)) find_uninitialized(library->warnings);
}

// Returns the function constants as declared in the source. If an index is a name, or a type is defined by the program,
// only the compiler knows it, so the function is compiled.
std::vector<mrt_function_constant> function_constants(mrt_library *library, size_t entry) {
  std::vector<mrt_function_constant> constants;
  const MetalProgram::Entry &declared = library->program.entries()[entry];
  for (const DeclaredConstant &constant : declared.constants) {
    constants.push_back({constant.name.c_str(), uint32_t(constant.index), constant.data_type, constant.is_required});
    if (constant.is_known()) continue;
    std::string problem;
    std::unique_ptr<mrt_function> function(make_function(library, declared.name.c_str(), nullptr, 0, false, problem));
    // The names belong to the loaded module, which is never unloaded.
    return function ? function->constant_infos : std::vector<mrt_function_constant>();
  }
  return constants;
}

} // namespace

namespace mrt {

bool is_told_unset(const mrt_function *function, const char *variable, uint32_t line) {
  const std::string name = "variable '" + std::string(variable) + "'";
  for (const Unset &unset : unset_variables(function->library->warnings))
    if (unset.message == name && unset.line >= line) return true;
  return false;
}

Build current_build(const mrt_function *function, bool checked) { return build_of(function->library, checked); }

const KernelCode *kernel_code(const mrt_function *constant_function, Build build, std::string &problem) {
  auto *function = const_cast<mrt_function *>(constant_function); // its compiled code is a cache
  std::lock_guard<std::mutex> lock(function->mutex);
  KernelCode &code = function->codes[build.checked | build.fast << 1 | build.contract << 2];
  if (build.checked) tell_warnings(function->library);
  if (code.module) return &code;
  const LoadedModule *loaded = function->library->program.module(function->entry, build, problem);
  if (!loaded) return nullptr;
  const MrtEntry *entry = loaded->entries.at(function->name);
  code = {loaded->module, entry, function->constants.data(), loaded->variables.at(entry)};
  return &code;
}

GpuSlot &gpu_slot(const mrt_function *function) { return function->gpu; }

const MrtEntry *gpu_entry(const mrt_function *function, std::string &problem) {
  for (const mrt_argument &argument : function->arguments)
    if (argument.kind == MRT_ARGUMENT_TEXTURE || argument.kind == MRT_ARGUMENT_SAMPLER) {
      problem = "function '" + function->name + "': textures and samplers are not supported on this device (got '" +
                argument.name + "'); use the software device";
      return nullptr;
    }
  const KernelCode *code = kernel_code(function, current_build(function, false), problem);
  return code ? code->entry : nullptr;
}

bool gpu_program(const mrt_function *function, bool contains_bytes, GpuProgram &program, std::string &problem) {
  const Build build = current_build(function, false);
  const KernelCode *code = kernel_code(function, build, problem);
  if (!code || !gpu_entry(function, problem)) return false;
  const std::string given = "constexpr Given given[] = {" + given_constants(*code) + "{end_of_given, {}}}; " +
                            "constexpr bool contains_bytes = " + (contains_bytes ? "true;" : "false;");
  program.ptx = function->library->program.ptx(function->entry, build, given, program.key, problem);
  program.symbol = "mrt_entry_" + std::to_string(function->entry);
  return !program.ptx.empty();
}

} // namespace mrt

mrt_library *mrt_library_create(const char *source, const mrt_compile_options *options, char **message) {
  CompileOptions compile;
  uint32_t version = options ? options->language_version : 0; // major << 16 | minor
  if (version) compile.version = (version >> 16) * 100 + (version & 0xffff) * 10;
  for (size_t index = 0; options && index < options->macro_count; index++)
    compile.macros.push_back(std::string(options->macros[index].name) + "=" +
                             (options->macros[index].value ? options->macros[index].value : ""));
  bool fast = options && options->math_functions == 0;
  auto library = std::make_unique<mrt_library>(source, std::move(compile), fast, options ? options->max_threads : 0);
  std::string &text = library->warnings;
  const bool checked = setting_flag(Setting::check);
  const bool compiled = library->program.compile(build_of(library.get(), checked), text);
  if (compiled && (checked || setting_flag(Setting::whole))) tell_warnings(library.get());
  set_message(message, text);
  return compiled ? library.release() : nullptr;
}

void mrt_library_retain(mrt_library *library) { library->references++; }

void mrt_library_release(mrt_library *library) {
  if (--library->references) return;
  delete library;
}

size_t mrt_library_function_count(const mrt_library *library) { return library->program.entries().size(); }
const char *mrt_library_function_name(const mrt_library *library, size_t index) {
  return library->program.entries()[index].name.c_str();
}

mrt_function *mrt_function_create(mrt_library *library, const char *name, const mrt_constant_value *values,
                                  size_t count, char **message) {
  std::string problem;
  mrt_function *function = make_function(library, name, values, count, true, problem);
  set_message(message, problem);
  if (function) mrt_library_retain(library);
  return function;
}

void mrt_function_retain(mrt_function *function) { function->references++; }

void mrt_function_release(mrt_function *function) {
  if (--function->references) return;
  mrt_library *library = function->library;
  delete function;
  mrt_library_release(library);
}

const mrt_function_info *mrt_function_info_get(const mrt_function *function) { return &function->info; }

const mrt_function_constant *mrt_library_function_constants(const mrt_library *constant_library, const char *name,
                                                            size_t *count) {
  auto *library = const_cast<mrt_library *>(constant_library); // its information about functions is a cache
  std::lock_guard<std::mutex> lock(library->mutex);
  size_t entry = 0;
  *count = 0;
  if (!find_entry(library, name, entry)) return nullptr;
  auto [known, is_new] = library->constants.try_emplace(name);
  if (is_new) known->second = function_constants(library, entry);
  *count = known->second.size();
  return known->second.data();
}

mrt_compile_stats mrt_compile_stats_get(void) { return compile_statistics(); }

bool mrt_function_archive(const mrt_function *function, const char *folder, char **message) {
  std::string problem;
  for (const std::string &path : function->library->program.files())
    if (!cache_copy_to(path, folder, problem)) return set_message(message, problem), false;
  cache_add_archive(folder);
  return true;
}
