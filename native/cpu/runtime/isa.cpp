#include "../isa.h"

#include <atomic>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace orchard {
namespace {

#if defined(__x86_64__)
// F16C, LZCNT and MOVBE belong to x86-64-v3 and have no name in every compiler's __builtin_cpu_supports.
bool has_unnamed_v3_features() {
  unsigned a, b, c, d;
  bool f16c_movbe = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && (c & bit_MOVBE);
  bool lzcnt = __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
  return f16c_movbe && lzcnt;
}

bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && has_unnamed_v3_features();
}

bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#if defined(__linux__)
// The registers of tiles are 8 KB, which the kernel saves for those processes alone that ask for them. It refuses where
// a thread's stack for signals has no room for them. Linux, Documentation/arch/x86/xstate.rst.
bool may_use_tiles() {
  constexpr int request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#else
bool may_use_tiles() { return false; }
#endif

bool has_amx() {
  constexpr unsigned bf16 = 1u << 22, tile = 1u << 24;
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & bf16) && (d & tile) && may_use_tiles();
}
#endif

std::atomic<Isa> &current() {
  static std::atomic<Isa> instance{best_isa()};
  return instance;
}

} // namespace

#if defined(__aarch64__)
bool supports(Isa) { return true; }
#else
bool supports(Isa isa) {
  switch (isa) {
  case Isa::avx2: return has_v3();
  case Isa::avx512: return has_v4();
  case Isa::avx512_bf16: return has_v4() && __builtin_cpu_supports("avx512bf16");
  case Isa::amx: {
    static const bool is_there = has_v4() && __builtin_cpu_supports("avx512bf16") && has_amx();
    return is_there;
  }
  case Isa::baseline: return true;
  }
  return false;
}
#endif

// On a Xeon with both (family 6, model 207) the instruction for pairs of bfloat16 has half the speed of float32's.
static bool is_worth_it(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512_bf16) return !__builtin_cpu_is("intel");
#endif
  (void)isa;
  return true;
}

Isa best_isa() {
  int best = static_cast<int>(isa_count) - 1;
  while (best > 0 && !(is_worth_it(static_cast<Isa>(best)) && supports(static_cast<Isa>(best)))) best--;
  return static_cast<Isa>(best);
}

Isa current_isa() { return current().load(std::memory_order_relaxed); }
void set_isa(Isa isa) { current().store(isa, std::memory_order_relaxed); }

} // namespace orchard
