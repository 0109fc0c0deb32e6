// Instruction sets. A file named `*.isa.cpp` is compiled once for each of them, with ORCHARD_ISA naming the namespace
// in which its code lives; which one runs is chosen when it is called.
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
// What a `.isa.cpp` includes of ours and inlines lives in `orchard::ORCHARD_ISA` too. Functions of the standard library
// may be left in an object file as weak copies: the linker is given the objects from the plainest set to the richest
// and keeps the first.
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
enum class Isa : int { neon, dotprod, fhm, bf16 }; // for matmul/pairs.h and quant/byte_dots.h; neon in all else
inline constexpr const char *isa_names[] = {"neon", "dotprod", "fhm", "bf16"};
#else
// The last two have kernels of their own for products of bfloat16, amx for those of bytes (quant/many.h) too, and are
// avx512 in all else.
enum class Isa : int { baseline, avx2, avx512, avx512_bf16, amx };
inline constexpr const char *isa_names[] = {"baseline", "avx2", "avx512", "avx512_bf16", "amx"};
#endif
inline constexpr size_t isa_count = sizeof isa_names / sizeof *isa_names;

// Whether this processor and system can run it.
bool supports(Isa isa);

// The one that kernels use now: the fastest that is supported, or the one that was set.
Isa current_isa();
void set_isa(Isa isa);
Isa best_isa();

#if defined(__x86_64__)
// Whether the processor has AVX512_VNNI, products of bytes: avx512 alone does not say.
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
