#include "compile/clang.h"

#include "compile/child.h"
#include "compile/content_hash.h"
#include "compile/kernel_cache.h"
#include "compile/symbols.h"
#include "support/settings.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include <cxxabi.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mrt {
namespace {

// ---------------------------------------------------------------- finding the toolchain

bool is_file(const std::string &path, int mode) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && access(path.c_str(), mode) == 0;
}

std::string on_path(const std::string &program) {
  std::string folders = getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin";
  for (size_t start = 0; start <= folders.size();) {
    size_t end = std::min(folders.find(':', start), folders.size());
    std::string candidate = folders.substr(start, end - start) + "/" + program;
    if (is_file(candidate, X_OK)) return candidate;
    start = end + 1;
  }
  return {};
}

std::string in_toolchain_cache(const std::string &program) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  std::string base = cache && *cache ? cache : home ? std::string(home) + "/.cache" : std::string();
  glob_t found = {};
  std::string last;
  if (!glob((base + "/orchard/toolchain/*/usr/libexec/swift/bin/" + program).c_str(), 0, nullptr, &found) &&
      found.gl_pathc)
    last = found.gl_pathv[found.gl_pathc - 1];
  globfree(&found);
  return last;
}

std::string find_clang() {
  std::string set = setting_text(Setting::clang);
  if (!set.empty()) return is_file(set, X_OK) ? set : std::string();
  std::string cached = in_toolchain_cache("clang++");
  return cached.empty() ? on_path("clang++") : cached;
}

// The machine's linker, if it has one: ld.lld takes four times as long for one object, since it is a large program.
std::string find_linker(const std::string &clang) {
  std::string machines = on_path("ld");
  if (!machines.empty()) return machines;
  std::string beside = clang.substr(0, clang.rfind('/')) + "/ld.lld";
  return is_file(beside, X_OK) ? beside : on_path("ld.lld");
}

} // namespace

std::string file_identity(const std::string &path) {
  struct stat facts = {};
  stat(path.c_str(), &facts);
  return std::to_string(facts.st_size) + " " + std::to_string(facts.st_mtime);
}

namespace {

std::string own_object() {
  Dl_info self;
  return dladdr((const void *)&own_object, &self) && self.dli_fname ? self.dli_fname : "";
}

// A build of the whole package writes the hash of this library's sources next to the headers, so that all clones with
// the same sources share compiled kernels. Other builds are identified by the library file.
std::string rewriter_identity(const std::string &headers) {
  std::string hash;
  return read_file(headers + "/mrt/sources", hash) ? hash : file_identity(own_object());
}

} // namespace

std::string real_path(const std::string &path) {
  char *real = realpath(path.c_str(), nullptr);
  std::string text = real ? real : path;
  free(real);
  return text;
}

namespace {

std::string parent_folder(const std::string &path) { return path.substr(0, path.rfind('/')); }

// The path at which the compiler sees the folder of headers. Precompiled headers and compiled kernels contain file
// names, which must be the same for every copy of the folder.
const char *const mounted_headers = "/metal";

// Returns the folder given by the setting, else one next to the shared object that contains this code, else that of the
// source tree.
std::string find_headers() {
  std::vector<std::string> candidates{setting_text(Setting::headers)};
  if (candidates[0].empty()) {
    std::string sources = parent_folder(parent_folder(__FILE__));
    candidates = {parent_folder(own_object()) + "/metal", sources + "/metal"};
  }
  for (const std::string &candidate : candidates)
    if (is_file(candidate + "/mrt/prelude.h", R_OK)) return real_path(candidate);
  return {};
}

void hash_folder(const std::string &folder, ContentHash &hash) {
  std::vector<std::string> names;
  if (DIR *directory = opendir(folder.c_str())) {
    while (dirent *entry = readdir(directory))
      if (entry->d_name[0] != '.') names.push_back(entry->d_name);
    closedir(directory);
  }
  std::sort(names.begin(), names.end());
  for (const std::string &name : names) {
    std::string content, path = folder + "/" + name;
    if (read_file(path, content)) hash.add(name).add(content);
    else hash_folder(path, hash);
  }
}

// ---------------------------------------------------------------- flags

} // namespace

// -fpch-instantiate-templates: otherwise each program instantiates the templates that the precompiled header uses.
std::vector<std::string> language_flags(const std::string &clang, const CompileOptions &options) {
  return {clang,
          "-nostdinc",
          "-fno-color-diagnostics",
          "-fno-crash-diagnostics",
          "-fno-spell-checking",
          "-ferror-limit=0",
          "-fpch-instantiate-templates",
          "-I",
          mounted_headers,
          "-D__METAL_VERSION__=" + std::to_string(options.version),
          "-Xclang",
          "-cl-single-precision-constant"}; // MSL has no double: 1.0 is a float
}

namespace {

void append(std::vector<std::string> &list, std::initializer_list<const char *> more) {
  list.insert(list.end(), more.begin(), more.end());
}

std::vector<std::string> strict_flags(const Toolchain &tools, const CompileOptions &options) {
  std::vector<std::string> flags = language_flags(tools.clang, options);
  append(flags, {"-cl-std=clc++2021", "-cl-no-stdinc", "-target", "x86_64-linux-gnu", "-Xclang",
                 "-cl-ext=+cl_khr_fp16,+__cl_clang_function_pointers,+__cl_clang_bitfields", "-fdeclspec",
                 "-Wuninitialized", "-DMRT_STRICT=1"});
  return flags;
}

std::vector<std::string> flat_flags(const Toolchain &tools, const CompileOptions &options, Build build) {
  std::vector<std::string> flags = language_flags(tools.clang, options);
  append(flags, {"-std=c++17", "-fPIC", "-ffreestanding", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden",
                 "-fdeclspec", "-w", "-march=x86-64-v3", "-Xclang", "-ffloat16-excess-precision=none", "-Xclang",
                 "-fbfloat16-excess-precision=none", "-fno-asynchronous-unwind-tables", "-fno-stack-protector",
                 "-fno-math-errno"});
  // Execution must not continue past a function without a return or an infinite loop: by default clang assumes that
  // neither happens, and may omit the code.
  append(flags, {"-fno-finite-loops", "-fno-strict-return"});
  // Makes a large stack frame touch each of its pages, so that it cannot skip the guard pages below the stack.
  append(flags, {"-fstack-clash-protection"});
  // Every conversion of a float to an integer saturates, with NaN to 0 (MSL 2.25); integers wrap.
  append(flags, {"-fno-strict-float-cast-overflow", "-fwrapv"});
  if (build.contract) append(flags, {"-ffp-contract=fast", "-mfma"});
  else append(flags, {"-ffp-contract=off"});
  if (build.fast) append(flags, {"-DMRT_FAST=1"});
  // metal/mrt/hooks.h explains these flags.
  if (build.checked)
    append(flags, {"-DMRT_CHECKED=1",
                   "-O2",
                   "-fno-vectorize",
                   "-fno-slp-vectorize",
                   "-fno-unroll-loops",
                   "-gline-tables-only",
                   "-gdwarf-4",
                   "-fsanitize=thread",
                   "-mllvm",
                   "-tsan-instrument-atomics=0",
                   "-mllvm",
                   "-tsan-instrument-func-entry-exit=0",
                   "-mllvm",
                   "-tsan-compound-read-before-write=1",
                   "-fsanitize=alignment,array-bounds",
                   "-fsanitize-recover=alignment,array-bounds",
                   "-fsanitize=local-bounds",
                   "-fsanitize-trap=local-bounds",
                   "-mllvm",
                   "-force-attribute=__ubsan_handle_type_mismatch_v1:memory"});
  else append(flags, {"-O1"});
  return flags;
}

std::string key_of(const Toolchain &tools, const std::vector<std::string> &flags) {
  ContentHash hash;
  hash.add(tools.identity);
  for (const std::string &flag : flags) hash.add(flag);
  return hash.hexadecimal();
}

// ---------------------------------------------------------------- files that a program may include

std::string in_json(const std::string &text) {
  std::string out = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + '"';
}

// A virtual file system in which the compiler sees only Metal's headers and these files, whatever path a program
// includes.
std::string overlay(const Toolchain &tools, const std::vector<std::string> &files) {
  const auto entry = [](const std::string &type, const std::string &path, const std::string &contents) {
    return "{\"type\": \"" + type + "\", \"name\": " + in_json(path) + ", \"external-contents\": " + in_json(contents) +
           "}";
  };
  std::string others;
  for (const std::string &file : files) others += ", " + entry("file", file, file);
  return "{\"version\": 0, \"redirecting-with\": \"redirect-only\", \"use-external-names\": false, \"roots\": [" +
         entry("directory-remap", mounted_headers, tools.headers) + others + "]}\n";
}

// Accepts a name, optionally with macro parameters: other text on the command line could contain directives.
bool is_macro_name(const std::string &text) {
  const auto is_part = [](char letter) { return isalnum((unsigned char)letter) || letter == '_'; };
  size_t end = 0;
  while (end < text.size() && is_part(text[end])) end++;
  if (end == 0 || isdigit((unsigned char)text[0])) return false;
  if (end == text.size()) return true;
  const bool parameters = text[end] == '(' && text.back() == ')';
  return parameters && std::all_of(text.begin() + long(end) + 1, text.end() - 1,
                                   [&](char letter) { return is_part(letter) || strchr(", .", letter); });
}

std::string macro_problem(const CompileOptions &options) {
  for (const std::string &macro : options.macros) {
    const std::string name = macro.substr(0, macro.find('='));
    if (!is_macro_name(name)) return "a preprocessor macro's name must be an identifier, got \"" + name + "\"";
    if (macro.find_first_of("\r\n") != std::string::npos || macro.find('\0') != std::string::npos)
      return "the value of the preprocessor macro '" + name + "' must be one line";
  }
  return {};
}

const char *const fourth_stream = "/dev/fd/3";

// Macros can use each other, so the size of the expanded text is limited.
constexpr uint64_t longest_expansion = 64 << 20;

// ---------------------------------------------------------------- precompiled headers

// A precompiled header can't contain a checksum, so the checksum is in a file next to it. It is verified once per
// process.
struct HeaderCache {
  std::mutex mutex;
  std::map<std::string, std::string> paths;
};

// Returns a stored header if its checksum matches. Otherwise removes both files, so that a new header can be stored.
CachedFile verified_header(const std::string &name) {
  CachedFile header(cache_folder() + "/" + name);
  std::string content, checksum;
  if (!header.is_there()) return header;
  if (cache_read(name + ".sum", checksum) && read_file(header.path(), content) &&
      ContentHash().add(content).hexadecimal() == checksum)
    return header;
  for (const std::string &path : {header.path(), header.path() + ".sum"}) unlink(path.c_str());
  return {};
}

CachedFile build_header(const Toolchain &tools, std::vector<std::string> flags, const char *language,
                        const std::string &name, std::string &problem) {
  std::string temporary = cache_temporary(".pch"), content;
  flags.insert(flags.end(),
               {"-ivfsoverlay", fourth_stream, "-S", "-Xclang", "-emit-pch", "-o", temporary, "-x", language, "-"});
  ProcessResult result = run_process(flags, "#include <mrt/prelude.h>\n", overlay(tools, {}));
  if (result.status != 0 || !read_file(temporary, content)) {
    problem = result.output;
    unlink(temporary.c_str());
    return {};
  }
  bool has_checksum = cache_write(name + ".sum", ContentHash().add(content).hexadecimal());
  return has_checksum ? cache_move(name, temporary) : CachedFile(temporary);
}

// Returns an empty file, with the compiler's output, if the standard library itself does not compile.
CachedFile precompiled_header(const Toolchain &tools, const std::vector<std::string> &flags, const char *language,
                              std::string &problem) {
  static HeaderCache *cache = new HeaderCache;
  std::string name = "prelude-" + key_of(tools, flags) + ".pch", id = cache_folder() + "/" + name;
  static std::map<std::string, std::unique_ptr<std::mutex>> *locks =
      new std::map<std::string, std::unique_ptr<std::mutex>>;
  std::mutex *lock;
  {
    std::lock_guard<std::mutex> guard(cache->mutex);
    auto &slot = (*locks)[id];
    if (!slot) slot = std::make_unique<std::mutex>();
    lock = slot.get();
  }
  std::lock_guard<std::mutex> building(*lock);
  {
    std::lock_guard<std::mutex> guard(cache->mutex);
    auto known = cache->paths.find(id);
    CachedFile header(known == cache->paths.end() ? std::string() : known->second);
    if (header.is_there()) return header;
  }
  CachedFile header = verified_header(name);
  if (!header.is_there()) header = build_header(tools, flags, language, name, problem);
  std::lock_guard<std::mutex> guard(cache->mutex);
  if (header.is_there()) cache->paths[id] = header.path();
  return header;
}

} // namespace

ProcessResult with_header(const Toolchain &tools, std::vector<std::string> flags, const char *language,
                          const std::vector<std::string> &last_flags, const std::string &text,
                          const std::string &other_file) {
  std::string problem;
  CachedFile header = precompiled_header(tools, flags, language, problem);
  if (!header.is_there()) return {true, false, 1, problem, {}};
  const std::string file = real_path(header.path());
  flags.insert(flags.end(), {"-ivfsoverlay", fourth_stream, "-Xclang", "-fno-validate-pch", "-include-pch", file,
                             "-fno-caret-diagnostics", "-Xclang", "-fno-diagnostics-use-presumed-location"});
  flags.insert(flags.end(), last_flags.begin(), last_flags.end());
  flags.insert(flags.end(), {"-x", language, "-"});
  std::vector<std::string> files{file};
  if (!other_file.empty()) files.push_back(real_path(other_file));
  return run_process(flags, text, overlay(tools, files));
}

namespace {

// ---------------------------------------------------------------- processes

int memory_file(const std::string &content) {
  int file = memfd_create("orchard", MFD_CLOEXEC);
  for (size_t done = 0; file >= 0 && done < content.size();) {
    ssize_t written = write(file, content.data() + done, content.size() - done);
    if (written <= 0) break;
    done += size_t(written);
  }
  const bool whole = file >= 0 && lseek(file, 0, SEEK_CUR) == off_t(content.size()) && lseek(file, 0, SEEK_SET) == 0;
  if (file >= 0 && !whole) close(file);
  return whole ? file : -1;
}

std::string take_content(int file) {
  std::string content(size_t(std::max<off_t>(0, lseek(file, 0, SEEK_END))), 0);
  ssize_t got = pread(file, content.data(), content.size(), 0);
  content.resize(size_t(std::max<ssize_t>(0, got)));
  close(file);
  return content;
}

// Returns why a compiler produced no result; empty if it did, or if it reported the reason itself.
std::string reason_of_end(const ChildExit &exit, const ProcessResult &result, int64_t limit) {
  const int signal = exit.started && WIFSIGNALED(exit.status) ? WTERMSIG(exit.status) : 0;
  if (exit.timed_out)
    return "compiling took longer than " + std::to_string(limit) +
           " ms (setting 'compile_timeout_ms', ORCHARD_METAL_COMPILE_TIMEOUT_MS)";
  if (signal == SIGXFSZ) return "the program expands to too much text or code";
  const bool no_memory =
      result.output.find("out of memory") != std::string::npos || result.output.find("bad_alloc") != std::string::npos;
  if (no_memory && result.status != 0)
    return "compiling took more than " + std::to_string(compiler_memory >> 30) + " GiB of memory";
  return {};
}

} // namespace

// Files in memory instead of pipes: nothing to poll, no deadlock, and no SIGPIPE if the program ends early.
ProcessResult run_process(const std::vector<std::string> &arguments, const std::string &input,
                          const std::string &second, uint64_t longest_file) {
  std::vector<char *> argv;
  for (const std::string &argument : arguments) argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  int files[stream_count] = {memory_file(input), memory_file(""), memory_file(""), memory_file(second)};
  ProcessResult result;
  if (*std::min_element(files, files + stream_count) < 0) {
    for (int file : files) close(file);
    return result.output = "no memory is left for what it reads and writes", result.status = 127, result;
  }
  const int64_t limit = setting_number(Setting::compile_timeout_ms);
  const ChildExit exit = run_child(argv.data(), files, longest_file, limit);
  result.started = exit.started;
  result.status = !exit.started ? 127 : WIFEXITED(exit.status) ? WEXITSTATUS(exit.status) : 128 + WTERMSIG(exit.status);
  close(files[0]), close(files[3]);
  result.standard_output = take_content(files[1]);
  result.output = take_content(files[2]);
  const std::string ended = reason_of_end(exit, result, limit);
  if (!ended.empty()) result.ended = true, result.output = "program_source: error: " + ended + "\n";
  return result;
}

const Toolchain *toolchain(std::string &problem) {
  static std::mutex mutex;
  static auto *known = new std::map<std::pair<std::string, std::string>, std::unique_ptr<Toolchain>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto &slot = (*known)[{setting_text(Setting::clang), setting_text(Setting::headers)}];
  if (slot) return slot.get();
  auto found = std::make_unique<Toolchain>();
  found->clang = find_clang();
  if (found->clang.empty()) {
    problem =
        setting_text(Setting::clang).empty()
            ? "no clang++ was found in the toolchain cache or on PATH; `orchard toolchain install` brings one, and "
              "ORCHARD_METAL_CLANG can name one"
            : "the setting clang names \"" + setting_text(Setting::clang) + "\", which is not a program";
    return nullptr;
  }
  found->linker = find_linker(found->clang);
  found->headers = find_headers();
  if (found->linker.empty() || found->headers.empty()) {
    problem = found->linker.empty()
                  ? "no linker (ld.lld or ld) was found beside " + found->clang + " or on PATH"
                  : "the Metal standard library's headers were not found; set ORCHARD_METAL_HEADERS to their folder";
    return nullptr;
  }
  ContentHash hash;
  hash_folder(found->headers, hash);
  found->identity =
      hash.add(found->clang).add(file_identity(found->clang)).add(file_identity(found->linker)).hexadecimal();
  found->rewriter = rewriter_identity(found->headers);
  slot = std::move(found);
  return slot.get();
}

ProcessResult preprocess(const Toolchain &tools, const CompileOptions &options, const std::string &source) {
  if (std::string problem = macro_problem(options); !problem.empty())
    return {true, true, 1, "program_source: error: " + problem + "\n", {}};
  std::vector<std::string> flags = language_flags(tools.clang, options);
  // -undef: a program must not depend on the type of this machine.
  append(flags, {"-E", "-undef", "-DMRT_PREPROCESS=1", "-fno-caret-diagnostics", "-include"});
  flags.push_back(std::string(mounted_headers) + "/mrt/macros.h");
  for (const std::string &macro : options.macros) flags.push_back("-D" + macro);
  flags.insert(flags.end(), {"-ivfsoverlay", fourth_stream, "-std=c++17", "-x", "c++", "-"});
  return run_process(flags, "# 1 \"program_source\"\n" + source, overlay(tools, {}), longest_expansion);
}

ProcessResult check_strictly(const Toolchain &tools, const CompileOptions &options, const std::string &text) {
  return with_header(tools, strict_flags(tools, options), "clcpp", {"-fsyntax-only"}, text);
}

namespace {

// Returns whether the program converts a float or a half to a bfloat implicitly, which the compiler's bfloat would
// allow.
bool narrows_to_bfloat(const std::string &output) {
  const std::string from = "from '", to = "to '";
  for (size_t at = 0; (at = output.find(from, at)) != std::string::npos;) {
    const size_t start = at + from.size(), end = std::min(output.find('\'', start), output.size());
    const std::string source = output.substr(start, end - start);
    const auto ends = [&](const std::string &type) {
      return source.size() >= type.size() && !source.compare(source.size() - type.size(), type.size(), type);
    };
    const size_t target = output.find(to, end), line = std::min(output.find('\n', end), output.size());
    if ((ends("half") || ends("_Float16") || source == "float" || ends(" float")) && target < line &&
        output.substr(target, line - target).find("bfloat") != std::string::npos)
      return true;
    at = end;
  }
  return false;
}

// Returns a symbol as in the source, such as `f(float)`.
std::string demangled(const std::string &symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&free)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                    &free);
  return status == 0 ? name.get() : symbol;
}

// A kernel is not linked against libraries: undefined symbols would be resolved in the process that loads it.
void refuse_symbols(const std::string &object, ProcessResult &result) {
  std::string text;
  for (const std::string &name : undefined_symbols(object)) text += (text.empty() ? "" : ", ") + demangled(name);
  if (text.empty()) return;
  result.status = 1;
  result.output = "program_source: error: undefined symbols: " + text +
                  ": a kernel can call functions of its library and of Metal's only; define them in a file of the "
                  "library, neither static nor inline\n";
}

} // namespace

namespace {

// `output`: the flags that say what is written.
ProcessResult run_flat(const Toolchain &tools, const CompileOptions &options, Build build, bool spaced,
                       const std::string &text, const std::vector<std::string> &output) {
  std::vector<std::string> flags = flat_flags(tools, options, build);
  // Clang's address spaces convert like MSL's only in SYCL mode (metal/mrt/types.h).
  if (spaced) append(flags, {"-DMRT_SPACED=1", "-Xclang", "-fsycl-is-device"});
  const auto compile = [&](std::initializer_list<const char *> more) {
    std::vector<std::string> all = flags;
    append(all, more);
    return with_header(tools, all, "c++", output, text);
  };
  ProcessResult result = compile({});
  const auto try_again = [&](std::initializer_list<const char *> more) {
    ProcessResult again = compile(more);
    if (again.status == 0) result = again; // else report the first failure
  };
  const auto is_refused = [&] { return result.started && result.status != 0 && !result.ended; };
  // Vectors with instrumented copies are not trivially copyable, so a union can't contain one. A program that has such
  // a union is compiled without instrumented copies.
  if (build.checked && is_refused()) try_again({"-DMRT_TRIVIAL_COPIES=1"});
  if (is_refused() && text.find("bfloat") != std::string::npos && !narrows_to_bfloat(result.output))
    try_again({"-DMRT_SCALAR_BFLOAT=1", "-DMRT_TRIVIAL_COPIES=1"});
  return result;
}

} // namespace

ProcessResult compile_flat(const Toolchain &tools, const CompileOptions &options, Build build, bool spaced,
                           const std::string &text, const std::string &path) {
  const std::string object = cache_temporary(".o");
  ProcessResult result = run_flat(tools, options, build, spaced, text, {"-c", "-o", object});
  if (result.status == 0) refuse_symbols(object, result);
  if (result.status == 0) result = run_process({tools.linker, "-shared", "-o", path, object}, "");
  unlink(object.c_str());
  return result;
}

ProcessResult check_flat(const Toolchain &tools, const CompileOptions &options, Build build, bool spaced,
                         const std::string &text) {
  const std::string object = cache_temporary(".o");
  ProcessResult result = run_flat(tools, options, build, spaced, text, {"-c", "-O0", "-o", object});
  if (result.status == 0) refuse_symbols(object, result);
  unlink(object.c_str());
  return result;
}

namespace {
const std::vector<std::string> llvm_text = {
    "-S", "-emit-llvm", "-O0", "-Xclang", "-disable-llvm-passes", "-gline-tables-only", "-o", "-"};
} // namespace

ProcessResult compile_to_text(const Toolchain &tools, const CompileOptions &options, bool spaced,
                              const std::string &text) {
  return run_flat(tools, options, {}, spaced, text, llvm_text);
}

ProcessResult compile_strictly(const Toolchain &tools, const CompileOptions &options, const std::string &text) {
  return with_header(tools, strict_flags(tools, options), "clcpp", llvm_text, text);
}

std::string flat_key(const Toolchain &tools, const CompileOptions &options, Build build) {
  return key_of(tools, flat_flags(tools, options, build));
}

} // namespace mrt
