#include "compile/program.h"

#include "compile/content_hash.h"
#include "compile/kernel_cache.h"
#include "compile/recursion.h"
#include "gpu/ptx.h"
#include "rewrite/linking.h"
#include "support/settings.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include <unistd.h>

namespace mrt {
namespace {

// A library with more than entries_in_whole kernels is compiled in small parts, each when one of its kernels is first
// used.
constexpr size_t entries_in_whole = 16, entries_in_small_part = 4;

std::mutex statistics_mutex;
mrt_compile_stats statistics;

int bits(Build build) { return build.checked | build.fast << 1 | build.contract << 2; }

struct Stopwatch {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  ~Stopwatch() {
    std::lock_guard<std::mutex> lock(statistics_mutex);
    statistics.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

// Returns the line of the output in which clang or a linker reports that the folder is full, missing or not writable;
// empty if there is none.
std::string unwritable_line(const std::string &output) {
  constexpr const char *signs[] = {"No space left",          "File too large",
                                   "Read-only file system",  "Disk quota",
                                   "Permission denied",      "unable to open output file",
                                   "cannot open output file"};
  for (const char *sign : signs) {
    const size_t found = output.find(sign);
    if (found == std::string::npos) continue;
    const size_t start = output.rfind('\n', found) + 1; // 0 if there is no line before
    return output.substr(start, output.find('\n', found) - start);
  }
  return {};
}

// An error on a line that already has one is the same mistake or its consequence, and is left out.
void add_new_lines(std::vector<Diagnostic> &diagnostics, const std::vector<Diagnostic> &found) {
  const size_t known = diagnostics.size();
  bool skip = false;
  for (const Diagnostic &diagnostic : found) {
    if (diagnostic.severity != Diagnostic::note)
      skip = std::any_of(diagnostics.begin(), diagnostics.begin() + long(known), [&](const Diagnostic &other) {
        return other.severity == Diagnostic::error && other.line == diagnostic.line && other.file == diagnostic.file;
      });
    if (!skip) diagnostics.push_back(diagnostic);
  }
}

void count(uint64_t mrt_compile_stats::*counter) {
  std::lock_guard<std::mutex> lock(statistics_mutex);
  statistics.*counter += 1;
}

} // namespace

mrt_compile_stats compile_statistics() {
  std::lock_guard<std::mutex> lock(statistics_mutex);
  return statistics;
}

size_t MetalProgram::part_size() const {
  return known_entries.size() <= entries_in_whole ? entries_in_whole : entries_in_small_part;
}
bool MetalProgram::is_whole() const { return !known_entries.empty() && known_entries.size() <= entries_in_whole; }

bool MetalProgram::compile(Build build, std::string &message) {
  Stopwatch stopwatch;
  tools = toolchain(message);
  if (!tools) return message = "program_source: error: " + message, false;
  ContentHash hash;
  hash.add(tools->rewriter).add(tools->identity).add(std::to_string(options.version)).add(source);
  for (const std::string &macro : options.macros) hash.add(macro);
  key = hash.hexadecimal();
  if (read_record(message)) return true;
  if (cache_read(errors_name(), message)) return false;
  if (!run_front(message)) return false;

  // The two compilations run in parallel: the first build of a small program together with its check.
  std::string problem;
  std::thread first;
  std::vector<Diagnostic> diagnostics = rewritten->diagnostics;
  if (is_whole() && !has_errors(diagnostics)) first = std::thread([&] { part_file(0, build, problem); });
  bool is_reproducible = true; // a compiler that ran out of time or memory may succeed the next time
  if (setting_flag(Setting::strict)) {
    std::vector<Diagnostic> recursion;
    std::thread calls;
    if (rewritten->may_recurse) calls = std::thread([&] { recursion = find_recursive_calls(); });
    Printed strict = rewritten->strict_text();
    ProcessResult result = check_strictly(*tools, options, strict.text);
    auto found = parse_clang(result.output, rewritten->tokens, strict, lines, true);
    const bool is_explained = result.status == 0 || result.output.find("error:") != std::string::npos;
    is_reproducible = is_explained && !result.ended;
    if (!is_explained)
      found.push_back({Diagnostic::error, "program_source", 0, 0, "the compiler failed: " + result.output});
    add_new_lines(diagnostics, found);
    if (calls.joinable()) calls.join();
    add_new_lines(diagnostics, recursion);
  }
  if (first.joinable()) first.join();
  message = render(diagnostics, lines);
  if (!has_errors(diagnostics) && setting_flag(Setting::whole) && !is_whole()) problem = problem_of_all(build);
  if (!has_errors(diagnostics) && problem.empty()) return write_record(message), true;
  if (has_errors(diagnostics) && is_reproducible && setting_flag(Setting::strict)) cache_write(errors_name(), message);
  // If only the executing compilation fails, its errors are the message; they have lines too.
  if (!has_errors(diagnostics)) message += problem;
  return false;
}

std::vector<Diagnostic> MetalProgram::find_recursive_calls() {
  // In the strict text, methods that differ in the address space of their object are distinct functions. It does not
  // compile if clang rejects something that Metal accepts.
  ProcessResult result = compile_strictly(*tools, options, rewritten->strict_text().text);
  if (result.status != 0)
    result = compile_to_text(*tools, options, rewritten->spaced, rewritten->flat_text(0, known_entries.size()).text);
  if (result.status != 0) return {}; // the build that runs reports why
  return find_recursion(result.standard_output, rewritten->tokens, lines);
}

std::string MetalProgram::problem_of_all(Build build) {
  if (known_entries.empty()) return {};
  build.checked = false;
  const Printed flat = rewritten->flat_text(0, known_entries.size());
  const ProcessResult result = check_flat(*tools, options, build, rewritten->spaced, flat.text);
  if (result.status == 0) return {};
  const std::string text = render(parse_clang(result.output, rewritten->tokens, flat, lines), lines);
  return text.empty() ? "program_source: error: the compiler failed: " + result.output + "\n" : text;
}

std::string MetalProgram::record_name() const { return key + (setting_flag(Setting::whole) ? ".whole" : ".library"); }

std::string MetalProgram::errors_name() const { return record_name() + ".errors"; }

// The preprocessed program, with the definitions that it needs from the library's other files.
bool MetalProgram::expand(std::string &text, std::vector<Diagnostic> &diagnostics) {
  const LibraryFiles files = split_files(source);
  std::vector<TokenList> expansions;
  for (const std::string &file : files.texts) {
    ProcessResult result = preprocess(*tools, options, file);
    const auto found = parse_preprocessor(result.output);
    diagnostics.insert(diagnostics.end(), found.begin(), found.end());
    if (result.status != 0) {
      if (!has_errors(found))
        diagnostics.push_back({Diagnostic::error, "program_source", 0, 0, "the preprocessor failed: " + result.output});
      return false;
    }
    expansions.push_back(tokenize(std::move(result.standard_output)));
    if (files.texts.size() == 1 || files.compares_definitions) continue;
    if (expansions.size() == 1 && !needs_definitions(expansions[0])) break;
  }
  text = expansions.size() == 1 ? *expansions[0].text
                                : link_files(expansions, files.compares_definitions, lines, diagnostics);
  return !has_errors(diagnostics);
}

bool MetalProgram::run_front(std::string &message) {
  std::string text;
  std::vector<Diagnostic> diagnostics;
  if (!expand(text, diagnostics)) return message = render(diagnostics, lines), false;
  rewritten = std::make_unique<Rewritten>(rewrite(tokenize(std::move(text)), lines, options.version));
  rewritten->diagnostics.insert(rewritten->diagnostics.begin(), diagnostics.begin(), diagnostics.end());
  if (known_entries.empty()) // entries of a record are kept, since others reference them
    for (const EntryPoint &entry : rewritten->entries) known_entries.push_back({entry.name, entry.constants});
  return true;
}

// A record states that the program is correct; it lists its kernels with their function constants, and the warnings.
bool MetalProgram::read_record(std::string &message) {
  std::string record;
  if (!cache_read(record_name(), record)) return false;
  size_t start = 0;
  for (size_t end; (end = record.find('\n', start)) != start && end != std::string::npos; start = end + 1) {
    std::istringstream line(record.substr(start, end - start));
    std::getline(line, known_entries.emplace_back().name, '\t');
    for (DeclaredConstant constant; line >> constant;) known_entries.back().constants.push_back(constant);
  }
  message = record.substr(std::min(start + 1, record.size()));
  return true;
}

void MetalProgram::write_record(const std::string &message) {
  std::ostringstream record;
  for (const Entry &entry : known_entries) {
    record << entry.name << '\t';
    for (const DeclaredConstant &constant : entry.constants) record << constant;
    record << '\n';
  }
  // A library is recorded as correct only if the strict pass has checked it.
  if (setting_flag(Setting::strict)) cache_write(record_name(), record.str() + "\n" + message);
}

bool MetalProgram::ensure_rewritten(std::string &problem) { return rewritten || run_front(problem); }

CachedFile MetalProgram::part_file(size_t part, Build build, std::string &problem) {
  std::string name =
      ContentHash().add(key).add(std::to_string(part)).add(flat_key(*tools, options, build)).hexadecimal() + ".so";
  CachedFile file = cache_find(name);
  if (file.is_there()) count(&mrt_compile_stats::from_disk);
  else file = compile_part(part, build, name, problem);
  if (file.is_there()) paths[{part, bits(build)}] = file.path();
  return file;
}

CachedFile MetalProgram::compile_part(size_t part, Build build, const std::string &name, std::string &problem) {
  if (!ensure_rewritten(problem)) return {};
  Printed flat = rewritten->flat_text(part * part_size(), std::min(known_entries.size(), (part + 1) * part_size()));
  for (;;) {
    std::string temporary = cache_temporary(".so");
    ProcessResult result = compile_flat(*tools, options, build, rewritten->spaced, flat.text, temporary);
    auto diagnostics = parse_clang(result.output, rewritten->tokens, flat, lines);
    CachedFile stored = result.status == 0 ? cache_store(name, temporary) : CachedFile();
    if (stored.is_there()) {
      count(&mrt_compile_stats::compiled);
      return stored;
    }
    unlink(temporary.c_str());
    const std::string unwritable = result.status == 0 ? "moving it to its name failed" : unwritable_line(result.output);
    if (!unwritable.empty() && cache_give_up("a file could not be written")) continue;
    problem = render(diagnostics, lines);
    if (!unwritable.empty())
      problem = "program_source: error: the compiled kernels could not be written to " + cache_folder() + " (" +
                unwritable + "); free space there, or set ORCHARD_METAL_CACHE to another folder\n";
    else if (problem.empty()) problem = "program_source: error: the compiler failed: " + result.output + "\n";
    return {};
  }
}

const LoadedModule *MetalProgram::module(size_t entry, Build build, std::string &problem) {
  std::lock_guard<std::mutex> lock(mutex);
  size_t part = entry / part_size();
  auto &slot = modules[{part, bits(build)}];
  if (slot) return count(&mrt_compile_stats::from_memory), slot;
  Stopwatch stopwatch;
  CachedFile file = part_file(part, build, problem);
  bool was_loaded = false;
  if (file.is_there()) slot = load_module(file.path(), problem, was_loaded);
  return slot;
}

std::string MetalProgram::ptx(size_t entry, Build build, const std::string &given, std::string &name,
                              std::string &problem) {
  std::lock_guard<std::mutex> lock(mutex);
  name =
      ContentHash().add(key).add(std::to_string(entry)).add(given).add(ptx_key(options, build)).hexadecimal() + ".ptx";
  CachedFile file = cache_find(name);
  if (file.is_there()) count(&mrt_compile_stats::from_disk);
  else file = compile_ptx_file(entry, build, given, name, problem);
  std::string text;
  if (file.is_there() && !cache_read(name, text)) problem = "the compiled kernel " + file.path() + " cannot be read";
  return text;
}

CachedFile MetalProgram::compile_ptx_file(size_t entry, Build build, const std::string &given, const std::string &name,
                                          std::string &problem) {
  Stopwatch stopwatch;
  const GpuToolchain *gpu = gpu_toolchain(problem);
  if (!gpu || !ensure_rewritten(problem)) return {};
  const Printed flat = rewritten->flat_text(entry, entry + 1, "namespace mrt { " + given + " }");
  const std::string temporary = cache_temporary(".ptx");
  const ProcessResult result = compile_ptx(*tools, *gpu, options, build, rewritten->spaced, flat.text, temporary);
  CachedFile stored = result.status == 0 ? cache_store(name, temporary) : CachedFile();
  if (stored.is_there()) return count(&mrt_compile_stats::compiled), std::move(stored);
  unlink(temporary.c_str());
  problem = render(parse_clang(result.output, rewritten->tokens, flat, lines), lines);
  if (problem.empty()) problem = "program_source: error: the compiler for the GPU failed: " + result.output + "\n";
  return {};
}

std::vector<std::string> MetalProgram::files() {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::string> files;
  for (const auto &[id, path] : paths) files.push_back(path);
  CachedFile record = cache_find(record_name());
  if (record.is_there()) files.push_back(record.path());
  return files;
}

} // namespace mrt
