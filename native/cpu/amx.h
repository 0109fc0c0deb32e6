// AMX: eight registers of tiles, each of up to 16 rows of 64 bytes, and products of two tiles that are added to a
// third. Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
#pragma once

#include "isa.h"

#if defined(__x86_64__)

#include <cstdint>

namespace orchard::ORCHARD_ISA {

// What the registers hold: by default 16 rows of 64 bytes each.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The instructions for bytes. No instruction set of a file has them: whoever calls them knows that the processor does.
// Numbers of registers are part of an instruction, so that they are parameters of templates. Compilers know nothing of
// what a tile reads: all memory is up to date before it does.
struct AmxTiles {
  // Of a thread, for all that it does with tiles; they are released before it does anything else, which would have to
  // save them.
  static void set_up(const TileConfiguration &configuration) {
    __asm__ volatile("ldtilecfg %0" : : "m"(configuration));
  }
  static void release() { __asm__ volatile("tilerelease"); }

  template <int tile> static void zero() { __asm__ volatile("tilezero %%tmm%c0" : : "i"(tile)); }
  // Rows are `pitch` bytes apart.
  template <int tile> static void load(const void *from, int64_t pitch) {
    __asm__ volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(tile), "r"(from), "r"(pitch) : "memory");
  }
  template <int tile> static void store(void *to, int64_t pitch) {
    __asm__ volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(tile), "r"(to), "r"(pitch) : "memory");
  }
  // sums[r][c] += Σ over k of a[r][k] b[k / 4][4c + k % 4] in 32 bits, a with signs, b with or without them.
  template <int sums, int a, int b, bool b_is_signed> static void add_product() {
    if constexpr (b_is_signed) __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
    else __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
  }
};

} // namespace orchard::ORCHARD_ISA

#endif
