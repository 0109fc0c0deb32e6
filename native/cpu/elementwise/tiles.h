// Chains of float32 operations whose intermediate values stay in vector registers.
//
// A tile is as many elements as fit in eight vector registers, the accumulator. A program of steps computes one tile:
// each step's code reads or replaces the accumulator, and then jumps to the next step's code with the accumulator in
// registers. So an operation costs about one instruction per vector, while a row function also loads and stores.
// Source of the technique: M. Anton Ertl, "Threaded code variations and optimizations", EuroForth 2001.
#pragma once

#include "../isa.h"

#include <cstdint>

namespace orchard {

using TileCode = void (*)(); // its parameters have types that depend on the instruction set

struct TileStep {
  TileCode code;
  float *place; // the operand's first element; null if it has none
  float value;  // an operand with a single element
};

enum class TileMove : int { load, fill, store, stream, stop }; // stream: a nontemporal store

// The operands of an operation of two: the accumulator, elements in memory, or a value.
enum class TileForm : int { both, with_memory, memory_first, with_value, value_first };

// The functions return the code of a step, or null if there is none. Operations that take longer than moving their
// operands have none.
struct Tiles {
  int64_t elements; // of a tile
  TileCode (*move)(TileMove move);
  TileCode (*unary)(int64_t operation);
  TileCode (*binary)(int64_t operation, TileForm form);
  // Computes `count` adjacent tiles, the first at the steps' places. The steps end with `stop`.
  void (*run)(const TileStep *steps, int64_t count);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Tiles, tiles)
