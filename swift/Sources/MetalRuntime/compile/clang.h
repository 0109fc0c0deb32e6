// Runs clang: preprocessing, type checking, and compiling to a shared object.
#pragma once

#include "compile/library.h"

#include <string>
#include <vector>

namespace mrt {

struct Toolchain {
  std::string clang, linker, headers;
  std::string identity; // changes when the compiler or a header changes
  std::string rewriter; // changes when this library changes
};

// The toolchain for the current settings, which is searched for once per pair of settings; `problem` says what is
// missing and how to install it.
const Toolchain *toolchain(std::string &problem);

struct ProcessResult {
  bool started = false;
  bool ended = false; // it exceeded its time or memory limit; `output` says which
  int status = 0;
  std::string output; // of both streams; only of standard error if standard output is captured separately
  std::string standard_output;
};
// Runs a program with `input` as its standard input and `second` at /dev/fd/3. It is limited to the time of the setting
// compile_timeout_ms, 4 GiB of memory, and `longest_file` bytes in each file that it writes. It ends with this process
// at the latest.
ProcessResult run_process(const std::vector<std::string> &arguments, const std::string &input,
                          const std::string &second = {}, uint64_t longest_file = uint64_t(512) << 20);

struct CompileOptions {
  uint32_t version = 320;          // __METAL_VERSION__
  std::vector<std::string> macros; // "NAME=value"
};

// The flags of every compilation of Metal's text, with the compiler `clang`.
std::vector<std::string> language_flags(const std::string &clang, const CompileOptions &options);
// Compiles a program after the precompiled standard library; `last_flags` say what is written. The compiler sees no
// files but the headers and `other_file`.
ProcessResult with_header(const Toolchain &tools, std::vector<std::string> flags, const char *language,
                          const std::vector<std::string> &last_flags, const std::string &text,
                          const std::string &other_file = {});
// Returns an absolute path without links and dots; otherwise the compiler's virtual file system does not contain it.
std::string real_path(const std::string &path);
// Returns the file's size and time, which identify a compiler.
std::string file_identity(const std::string &path);

ProcessResult preprocess(const Toolchain &tools, const CompileOptions &options, const std::string &source);
ProcessResult check_strictly(const Toolchain &tools, const CompileOptions &options, const std::string &text);
// Compiles and links to `path`.
ProcessResult compile_flat(const Toolchain &tools, const CompileOptions &options, Build build, bool spaced,
                           const std::string &text, const std::string &path);
// Compiles without optimizations, to report errors and undefined functions.
ProcessResult check_flat(const Toolchain &tools, const CompileOptions &options, Build build, bool spaced,
                         const std::string &text);
// Write LLVM's text of the flat or the strict text, without optimizations, to standard_output.
ProcessResult compile_to_text(const Toolchain &tools, const CompileOptions &options, bool spaced,
                              const std::string &text);
ProcessResult compile_strictly(const Toolchain &tools, const CompileOptions &options, const std::string &text);
// All inputs that the result of compile_flat depends on, except for the text.
std::string flat_key(const Toolchain &tools, const CompileOptions &options, Build build);

} // namespace mrt
