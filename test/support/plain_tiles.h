// AMX's tiles in plain C++, as the instruction set's manual specifies them, for machines without AMX. An instruction
// that the processor would reject as invalid ends the program.
#pragma once

#include "../../native/cpu/amx.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace orchard::ORCHARD_ISA {

class PlainTiles {
public:
  static void set_up(const TileConfiguration &configuration) {
    own() = {};
    own().is_set_up = true;
    own().configuration = configuration;
    require(configuration.palette == 1 && configuration.start_row == 0, "palette 1 from row 0 on");
    for (int tile = 0; tile < 16; tile++) {
      const int rows = configuration.rows[tile], bytes = configuration.bytes_of_row[tile];
      require(tile < 8 ? rows <= 16 && bytes <= 64 : rows == 0 && bytes == 0, "eight tiles of 16 rows of 64 bytes");
    }
  }
  static void release() {
    require(own().is_set_up, "tiles that are set up are released");
    own().is_set_up = false;
  }
  static bool are_released() { return !own().is_set_up; }

  template <int tile> static void zero() {
    check(tile);
    std::memset(own().bytes[tile], 0, sizeof own().bytes[tile]);
  }
  template <int tile> static void load(const void *from, int64_t pitch) {
    zero<tile>();
    for (int row = 0; row < rows(tile); row++)
      std::memcpy(own().bytes[tile][row], static_cast<const char *>(from) + row * pitch, bytes(tile));
  }
  template <int tile> static void store(void *to, int64_t pitch) {
    check(tile);
    for (int row = 0; row < rows(tile); row++)
      std::memcpy(static_cast<char *>(to) + row * pitch, own().bytes[tile][row], bytes(tile));
  }
  template <int sums, int a, int b, bool b_is_signed> static void add_product() {
    check(sums), check(a), check(b);
    require(sums != a && sums != b && a != b, "three registers");
    require(bytes(sums) == bytes(b) && rows(sums) == rows(a) && bytes(a) == 4 * rows(b), "tiles that fit each other");
    for (int row = 0; row < rows(a); row++)
      for (int four = 0; four < rows(b); four++)
        for (int column = 0; column < bytes(b) / 4; column++) {
          int32_t sum;
          std::memcpy(&sum, own().bytes[sums][row] + 4 * column, sizeof sum);
          for (int i = 0; i < 4; i++) {
            const uint8_t right = own().bytes[b][four][4 * column + i];
            sum += int8_t(own().bytes[a][row][4 * four + i]) * (b_is_signed ? int(int8_t(right)) : int(right));
          }
          std::memcpy(own().bytes[sums][row] + 4 * column, &sum, sizeof sum);
        }
  }

private:
  struct State {
    bool is_set_up = false;
    TileConfiguration configuration;
    uint8_t bytes[8][16][64] = {};
  };

  static State &own() {
    static thread_local State state;
    return state;
  }
  static int rows(int tile) { return own().configuration.rows[tile]; }
  static int bytes(int tile) { return own().configuration.bytes_of_row[tile]; }
  static void check(int tile) { require(own().is_set_up && rows(tile) > 0 && bytes(tile) > 0, "tiles are set up"); }
  static void require(bool is_so, const char *what) {
    if (is_so) return;
    std::fprintf(stderr, "expected that %s\n", what);
    std::abort();
  }
};

} // namespace orchard::ORCHARD_ISA
