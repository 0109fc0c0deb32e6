// Instruction sets. A file named `*.isa.cpp` is compiled once for each set, with ORCHARD_ISA naming the namespace of
// its code; the set is chosen when a kernel is called.
//
// A family of kernels has a struct of function pointers (or other constants), declared for every set in its header:
//
//   struct Additions { void (*float32)(const float *a, const float *b, float *out, int64_t count); };
//   ORCHARD_ISA_TABLE(Additions, additions)
//
// defined in its `.isa.cpp`, in an ISA's namespace:
//
//   namespace orchard::ORCHARD_ISA { extern const Additions additions = {add}; }
//
// and used anywhere as `orchard::additions().float32(…)`.
//
// Inline functions that a `.isa.cpp` includes from this project are in `orchard::ORCHARD_ISA` too. Functions of the
// standard library may remain in an object file as weak copies: the linker gets the objects from the plainest set to
// the richest and keeps the first copy.
#pragma once

#include <cstddef>

#ifndef ORCHARD_ISA
#if defined(__aarch64__)
#define ORCHARD_ISA neon
#else
#define ORCHARD_ISA baseline
#endif
#endif

namespace orchard {

#if defined(__aarch64__)
enum class Isa : int { neon, dotprod, fhm, bf16 }; // the others matter only to matmul/pairs.h and quant/byte_dots.h
inline constexpr const char *isa_names[] = {"neon", "dotprod", "fhm", "bf16"};
#else
// The last two have kernels for products of bfloat16, and amx also for products of bytes (quant/many.h); everywhere
// else they are avx512.
enum class Isa : int { baseline, avx2, avx512, avx512_bf16, amx };
inline constexpr const char *isa_names[] = {"baseline", "avx2", "avx512", "avx512_bf16", "amx"};
#endif
inline constexpr size_t isa_count = sizeof isa_names / sizeof *isa_names;

// Returns whether this processor and operating system support an instruction set.
bool supports(Isa isa);

// The set that kernels use now: the fastest that is supported, unless another was set.
Isa current_isa();
void set_isa(Isa isa);
Isa best_isa();

#if defined(__x86_64__)
// Returns whether the processor has AVX512_VNNI (products of bytes), which avx512 does not imply.
bool has_vnni();
#endif

} // namespace orchard

#if defined(__aarch64__)
#define ORCHARD_ISA_TABLE(Table, name)                                                                                 \
  namespace orchard {                                                                                                  \
  namespace neon {                                                                                                     \
  extern const Table name;                                                                                             \
  }                                                                                                                    \
  inline const Table &name() { return neon::name; }                                                                    \
  }
#else
#define ORCHARD_ISA_TABLE(Table, name)                                                                                 \
  namespace orchard {                                                                                                  \
  namespace baseline {                                                                                                 \
  extern const Table name;                                                                                             \
  }                                                                                                                    \
  namespace avx2 {                                                                                                     \
  extern const Table name;                                                                                             \
  }                                                                                                                    \
  namespace avx512 {                                                                                                   \
  extern const Table name;                                                                                             \
  }                                                                                                                    \
  inline const Table &name() {                                                                                         \
    static constexpr const Table *tables[] = {&baseline::name, &avx2::name, &avx512::name, &avx512::name,              \
                                              &avx512::name};                                                          \
    return *tables[static_cast<int>(current_isa())];                                                                   \
  }                                                                                                                    \
  }
#endif
