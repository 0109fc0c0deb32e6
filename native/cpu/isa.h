// Instruction sets. A file named `*.isa.cpp` is compiled once for each set, and ORCHARD_ISA is the namespace of its
// code. The set is chosen when a kernel is called.
//
// A family of kernels has a struct of function pointers (or other constants), which its header declares for all sets:
//
//   struct Additions { void (*float32)(const float *a, const float *b, float *out, int64_t count); };
//   ORCHARD_ISA_TABLE(Additions, additions)
//
// Its `.isa.cpp` defines the struct in the namespace of the instruction set:
//
//   namespace orchard::ORCHARD_ISA { extern const Additions additions = {add}; }
//
// Other code uses it as `orchard::additions().float32(…)`.
//
// Inline functions of this project that a `.isa.cpp` includes are in `orchard::ORCHARD_ISA` too. Functions of the
// standard library may remain in an object file as weak copies. The linker keeps the first copy, so it gets the objects
// in ascending order of instruction sets.
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
enum class Isa : int { neon, dotprod, fhm, bf16 }; // the last three matter only to matmul/pairs.h and quant/byte_dots.h
inline constexpr const char *isa_names[] = {"neon", "dotprod", "fhm", "bf16"};
#else
// The last two add kernels for products of bfloat16, and amx also for products of bytes (quant/many.h). All other
// kernels are those of avx512.
enum class Isa : int { baseline, avx2, avx512, avx512_bf16, amx };
inline constexpr const char *isa_names[] = {"baseline", "avx2", "avx512", "avx512_bf16", "amx"};
#endif
inline constexpr size_t isa_count = sizeof isa_names / sizeof *isa_names;

// Returns whether this processor and operating system support an instruction set.
bool supports(Isa isa);

// Returns the set that kernels use now: the fastest supported one, unless another was set.
Isa current_isa();
void set_isa(Isa isa);
Isa best_isa();

#if defined(__x86_64__)
// Returns whether the processor has AVX512_VNNI (products of bytes), which the set avx512 does not imply.
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
