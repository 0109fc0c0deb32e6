#include "gpu/ptx.h"

#include "compile/content_hash.h"
#include "support/settings.h"

#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <mutex>

#include <glob.h>
#include <unistd.h>

namespace mrt {
namespace {

constexpr const char *bitcode = "nvptx64--nvidiacl.bc";

// The oldest GPUs that the kernels support (bfloat conversions), and the version of PTX that comes with their driver's
// oldest supported release. The driver translates the text for newer ones.
constexpr const char *architecture = "sm_80";
constexpr const char *ptx_version = "+ptx78";

std::string last_match(const std::string &pattern) {
  glob_t found = {};
  std::string last;
  if (!glob(pattern.c_str(), 0, nullptr, &found) && found.gl_pathc) last = found.gl_pathv[found.gl_pathc - 1];
  globfree(&found);
  return last;
}

std::string cached_compiler() {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  const std::string base = cache && *cache ? cache : home ? std::string(home) + "/.cache" : std::string();
  return last_match(base + "/orchard/gpu/*/clang++");
}

// Next to an installed compiler (<folder>/clang++ and <folder>/usr/lib/clc), next to the system's
// (/usr/lib/llvm-19/bin/clang++ and /usr/lib/clc), or the system's.
std::string find_functions(const std::string &clang) {
  const std::string folder = clang.substr(0, clang.rfind('/'));
  for (const char *place : {"/usr/lib/clc/", "/../../clc/", "/../lib/clc/"})
    if (const std::string path = real_path(folder + place + bitcode); access(path.c_str(), R_OK) == 0) return path;
  const std::string system = real_path(std::string("/usr/lib/clc/") + bitcode);
  return access(system.c_str(), R_OK) == 0 ? system : std::string();
}

std::vector<std::string> ptx_flags(const std::string &clang, const CompileOptions &options, Build build) {
  std::vector<std::string> flags = language_flags(clang, options);
  const auto append = [&](std::initializer_list<const char *> more) {
    flags.insert(flags.end(), more.begin(), more.end());
  };
  append({"--target=nvptx64-nvidia-cuda", "-DMRT_GPU=1", "-std=c++17", "-O2", "-ffreestanding", "-fno-exceptions",
          "-fno-rtti", "-fdeclspec", "-fno-math-errno", "-fno-strict-float-cast-overflow", "-fwrapv", "-w",
          "-Wno-invalid-constexpr", "-Xclang", "-target-feature", "-Xclang", ptx_version});
  flags.push_back(std::string("-march=") + architecture);
  // Arrays of matrices stay in registers only if functions that receive them are inlined, and loops over them unrolled.
  append({"-mllvm", "-inline-threshold=100000", "-mllvm", "-unroll-threshold=3000"});
  append({"-mllvm", "-pragma-unroll-threshold=1000000"});
  // A call of a barrier or a lane operation must not become dependent on more conditions, nor be duplicated.
  append({"-fconvergent-functions"});
  append({build.contract ? "-ffp-contract=fast" : "-ffp-contract=off"});
  if (build.fast) append({"-DMRT_FAST=1"});
  return flags;
}

} // namespace

const GpuToolchain *gpu_toolchain(std::string &problem) {
  static std::mutex mutex;
  static auto *known = new std::map<std::string, std::unique_ptr<GpuToolchain>>;
  std::lock_guard<std::mutex> lock(mutex);
  const std::string set = setting_text(Setting::gpu_clang);
  auto &slot = (*known)[set];
  if (slot) return slot.get();
  const std::string clang = set.empty() ? cached_compiler() : set;
  if (clang.empty() || access(clang.c_str(), X_OK) != 0) {
    problem = clang.empty() ? "no compiler for NVIDIA GPUs was found; `orchard toolchain install --gpu` installs one, "
                              "and ORCHARD_METAL_GPU_CLANG can name one"
                            : "the setting gpu_clang names \"" + clang + "\", which is not a program";
    return nullptr;
  }
  const std::string functions = find_functions(clang);
  if (functions.empty()) {
    problem = std::string("libclc's ") + bitcode + " was not found next to " + clang +
              "; install Debian's libclc-19, or run `orchard toolchain install --gpu`";
    return nullptr;
  }
  slot = std::make_unique<GpuToolchain>();
  *slot = {clang, functions, file_identity(clang) + " " + file_identity(functions)};
  return slot.get();
}

ProcessResult compile_ptx(const Toolchain &tools, const GpuToolchain &gpu, const CompileOptions &options, Build build,
                          bool spaced, const std::string &text, const std::string &path) {
  std::vector<std::string> flags = ptx_flags(gpu.clang, options, build);
  if (spaced) flags.insert(flags.end(), {"-DMRT_SPACED=1", "-Xclang", "-fsycl-is-device"});
  const std::vector<std::string> output = {"-Xclang", "-mlink-builtin-bitcode", "-Xclang", gpu.functions, "-S", "-o",
                                           path};
  ProcessResult result = with_header(tools, flags, "c++", output, text, gpu.functions);
  // Tries again, as for the software device (compile/clang.cpp), for programs with unions of vectors or bfloat as a
  // scalar.
  constexpr const char *trivial = "-DMRT_TRIVIAL_COPIES=1", *scalar = "-DMRT_SCALAR_BFLOAT=1";
  const bool has_bfloat = text.find("bfloat") != std::string::npos;
  for (const std::vector<std::string> &more : {std::vector<std::string>{trivial}, {scalar}, {trivial, scalar}}) {
    if (!result.started || result.status == 0 || result.ended) break;
    if (more.back() == scalar && !has_bfloat) break;
    std::vector<std::string> extended = flags;
    extended.insert(extended.end(), more.begin(), more.end());
    ProcessResult again = with_header(tools, extended, "c++", output, text, gpu.functions);
    if (again.status == 0) result = std::move(again);
  }
  return result;
}

std::string ptx_key(const CompileOptions &options, Build build) {
  ContentHash hash;
  for (const std::string &flag : ptx_flags("", options, build)) hash.add(flag);
  // A machine without a compiler uses files that another machine compiled.
  return hash.hexadecimal();
}

} // namespace mrt
