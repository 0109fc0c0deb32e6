// A source text and its results: the names of its kernels immediately, and its builds when they are needed.
#pragma once

#include "compile/cached_file.h"
#include "compile/clang.h"
#include "compile/loaded_module.h"
#include "rewrite/rewriter.h"

#include <map>
#include <memory>
#include <mutex>

namespace mrt {

class MetalProgram {
public:
  MetalProgram(std::string source, CompileOptions options)
      : source(std::move(source)), options(std::move(options)), lines(this->source) {}

  // Checks the whole program; if it is small, also compiles `build`. Returns false and all diagnostics if the program
  // is wrong; otherwise `message` has the warnings.
  bool compile(Build build, std::string &message);
  struct Entry {
    std::string name;
    std::vector<DeclaredConstant> constants;
  };
  const std::vector<Entry> &entries() const { return known_entries; }
  // Returns the module that contains an entry.
  const LoadedModule *module(size_t entry, Build build, std::string &problem);
  // Returns an entry's PTX, compiled after the definitions of namespace mrt that `given` has (metal/mrt/gpu), and the
  // name of its file in the cache; an empty text and the reason if it can't be compiled.
  std::string ptx(size_t entry, Build build, const std::string &given, std::string &name, std::string &problem);
  // Returns the paths of the compiled files, for an archive.
  std::vector<std::string> files();

private:
  bool expand(std::string &text, std::vector<Diagnostic> &diagnostics);
  bool run_front(std::string &message);
  bool read_record(std::string &message);
  void write_record(const std::string &message);
  std::string record_name() const;
  // The errors of a program that the strict pass rejected, so that compiling it again costs nothing.
  std::string errors_name() const;
  // Compiles once more, for programs whose functions may call themselves.
  std::vector<Diagnostic> find_recursive_calls();
  // Returns the errors of the executing pass for all kernels of a large program.
  std::string problem_of_all(Build build);
  bool ensure_rewritten(std::string &problem);
  CachedFile part_file(size_t part, Build build, std::string &problem);
  CachedFile compile_part(size_t part, Build build, const std::string &name, std::string &problem);
  CachedFile compile_ptx_file(size_t entry, Build build, const std::string &given, const std::string &name,
                              std::string &problem);
  size_t part_size() const;
  bool is_whole() const;

  const std::string source;
  const CompileOptions options;
  const SourceLines lines;
  const Toolchain *tools = nullptr;
  std::string key;
  std::vector<Entry> known_entries;
  std::unique_ptr<Rewritten> rewritten;
  std::mutex mutex;
  std::map<std::pair<size_t, int>, const LoadedModule *> modules;
  std::map<std::pair<size_t, int>, std::string> paths;
};

mrt_compile_stats compile_statistics();

} // namespace mrt
