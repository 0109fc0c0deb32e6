// AMX: eight tile registers of up to 16 rows of 64 bytes, and instructions that add the product of two tiles to a
// third. Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
#pragma once

#include "isa.h"

#if defined(__x86_64__)

#include <cstdint>

namespace orchard::ORCHARD_ISA {

// The shape of each tile register; by default 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The AMX instructions for bytes. Inline assembly is not bound to the instruction set that the file is compiled for, so
// callers must check that the processor has AMX. Register numbers are immediate operands, hence template parameters.
// The "memory" clobbers tell the compiler that a tile load reads memory that it can't see.
struct AmxTiles {
  // Configures the tile registers of the calling thread. Release them afterwards: while they are in use, each context
  // switch saves and restores them.
  static void set_up(const TileConfiguration &configuration) {
    __asm__ volatile("ldtilecfg %0" : : "m"(configuration));
  }
  static void release() { __asm__ volatile("tilerelease"); }

  template <int tile> static void zero() { __asm__ volatile("tilezero %%tmm%c0" : : "i"(tile)); }
  // Loads a tile whose rows are `pitch` bytes apart.
  template <int tile> static void load(const void *from, int64_t pitch) {
    __asm__ volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(tile), "r"(from), "r"(pitch) : "memory");
  }
  template <int tile> static void store(void *to, int64_t pitch) {
    __asm__ volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(tile), "r"(to), "r"(pitch) : "memory");
  }
  // sums[r][c] += Σ over k of a[r][k] b[k / 4][4c + k % 4], in int32; a is signed, b signed or unsigned.
  template <int sums, int a, int b, bool b_is_signed> static void add_product() {
    if constexpr (b_is_signed) __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
    else __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
  }
};

} // namespace orchard::ORCHARD_ISA

#endif
