// Compiles a rewritten program to PTX with a clang that has LLVM's NVPTX target; Swift's clang lacks it.
#pragma once

#include "compile/clang.h"

#include <string>

namespace mrt {

struct GpuToolchain {
  std::string clang;
  std::string functions; // libclc's bitcode: the math functions
  std::string identity;  // changes when either does
};

// The compiler for GPUs; null, and what to install, if there is none.
const GpuToolchain *gpu_toolchain(std::string &problem);

ProcessResult compile_ptx(const Toolchain &tools, const GpuToolchain &gpu, const CompileOptions &options, Build build,
                          bool spaced, const std::string &text, const std::string &path);
// All inputs that the result of compile_ptx depends on, except for the program and the headers.
std::string ptx_key(const CompileOptions &options, Build build);

} // namespace mrt
