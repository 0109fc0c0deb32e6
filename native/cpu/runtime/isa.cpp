#include "../isa.h"

#include <atomic>
#if defined(__x86_64__)
#include <cpuid.h>
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
  case Isa::baseline: return true;
  }
  return false;
}
#endif

Isa best_isa() {
  int best = static_cast<int>(isa_count) - 1;
  while (best > 0 && !supports(static_cast<Isa>(best))) best--;
  return static_cast<Isa>(best);
}

Isa current_isa() { return current().load(std::memory_order_relaxed); }
void set_isa(Isa isa) { current().store(isa, std::memory_order_relaxed); }

} // namespace orchard
