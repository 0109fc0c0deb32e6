#include "../isa.h"
#include "sets.h"

#include <atomic>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__)
#include <sys/sysctl.h>
#endif

namespace orchard {
namespace {

#if defined(__x86_64__)
// Uses CPUID directly: __builtin_cpu_supports needs a table of the compiler's runtime library, which Zig's lacks.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID, and volume 1, 13.3 and 14.3.
struct Features {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0; // all 0 if the processor lacks this leaf
};

Features features_of(unsigned leaf, unsigned subleaf = 0) {
  Features f;
  return __get_cpuid_count(leaf, subleaf, &f.eax, &f.ebx, &f.ecx, &f.edx) ? f : Features{};
}

bool has_all(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

// Returns whether the system saves these parts of the processor's state (XCR0); without that, their instructions fault.
bool system_saves(unsigned parts) {
  if (!has_all(features_of(1).ecx, bit_OSXSAVE)) return false;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return has_all(low, parts);
}

constexpr unsigned ymm_state = 0x06, zmm_state = 0xe6; // SSE, AVX; and mask registers, both upper parts of ZMM

bool has_v3() {
  return system_saves(ymm_state) && has_all(features_of(1).ecx, bit_AVX | bit_FMA | bit_F16C | bit_MOVBE) &&
         has_all(features_of(7).ebx, bit_AVX2 | bit_BMI | bit_BMI2) && has_all(features_of(0x80000001).ecx, bit_LZCNT);
}

bool has_v4() {
  constexpr unsigned wanted = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  return has_v3() && system_saves(zmm_state) && has_all(features_of(7).ebx, wanted);
}

bool has_bf16() { return has_v4() && has_all(features_of(7, 1).eax, 1u << 5); } // AVX512_BF16

bool is_intel() {
  const Features vendor = features_of(0);
  return vendor.ebx == signature_INTEL_ebx && vendor.ecx == signature_INTEL_ecx && vendor.edx == signature_INTEL_edx;
}

#if defined(__linux__)
// The tile registers take 8 KB, which the kernel saves only for processes that request it. The request fails if a
// thread's signal stack has no room for them. Source: Linux, Documentation/arch/x86/xstate.rst.
bool may_use_tiles() {
  constexpr int request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#else
bool may_use_tiles() { return false; }
#endif

bool has_amx() {
  constexpr unsigned bf16 = 1u << 22, tile = 1u << 24, int8 = 1u << 25;
  return has_all(features_of(7).edx, bf16 | tile | int8) && may_use_tiles();
}
#endif

#if defined(__aarch64__)
#if defined(__linux__)
// Source: Linux, Documentation/arch/arm64/elf_hwcaps.rst. The numbers are from arch/arm64/include/uapi/asm/hwcap.h,
// since headers of old C libraries lack the later ones.
bool has_hwcap(int bit) { return (getauxval(AT_HWCAP) >> bit & 1) != 0; }
bool has_hwcap2(int bit) { return (getauxval(AT_HWCAP2) >> bit & 1) != 0; }

bool has_dotprod() { return has_hwcap(20); }                 // ASIMDDP
bool has_fhm() { return has_hwcap(23); }                     // ASIMDFHM
bool has_bf16() { return has_hwcap2(13) && has_hwcap2(14); } // I8MM and BF16
#else
// Source: Apple, "Determining instruction set characteristics". A name unknown to the system means that the feature is
// absent.
bool has_feature(const char *name) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}

bool has_dotprod() { return has_feature("hw.optional.arm.FEAT_DotProd"); }
bool has_fhm() { return has_feature("hw.optional.arm.FEAT_FHM"); }
bool has_bf16() { return has_feature("hw.optional.arm.FEAT_I8MM") && has_feature("hw.optional.arm.FEAT_BF16"); }
#endif
#endif

std::atomic<Isa> &current() {
  static std::atomic<Isa> instance{best_isa()};
  return instance;
}

} // namespace

#if defined(__aarch64__)
bool is_built(Isa) { return has_neon; }

// Each set includes the sets before it.
bool supports(Isa isa) {
  if (!is_built(isa)) return false;
  switch (isa) {
  case Isa::neon: return true;
  case Isa::dotprod: return has_dotprod();
  case Isa::fhm: return has_dotprod() && has_fhm();
  case Isa::bf16: return has_dotprod() && has_fhm() && has_bf16();
  }
  return false;
}
#else
bool has_vnni() {
  static const bool is_there = has_all(features_of(7).ecx, bit_AVX512VNNI);
  return is_there;
}

bool is_built(Isa isa) {
  if (isa == Isa::baseline) return has_baseline;
  return isa == Isa::avx2 ? has_avx2 : has_avx512;
}

bool supports(Isa isa) {
  if (!is_built(isa)) return false;
  switch (isa) {
  case Isa::avx2: return has_v3();
  case Isa::avx512: return has_v4();
  case Isa::avx512_bf16: return has_bf16();
  case Isa::amx: {
    static const bool is_there = has_bf16() && has_amx();
    return is_there;
  }
  case Isa::baseline: return true;
  }
  return false;
}
#endif

// On a Xeon with both (family 6, model 207), the instruction for pairs of bfloat16 has half the throughput of float32
// multiply-add.
static bool is_worth_it(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512_bf16) return !is_intel();
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
