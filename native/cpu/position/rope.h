// Rotary position embedding: rows whose pairs of elements are rotated by their position times the pair's frequency.
//
// An angle is a phase of 64 bits: the pair's phase a position, a whole number of 2^-64 cycles, times the position,
// modulo 2^64. Whole cycles drop out exactly, so that a large position has as accurate an angle as a small one.
#pragma once

#include "../nest.h"

#include <cmath>
#include <cstdint>
#include <string>

namespace orchard {

// An operand of its own has the frequency of each pair, in cycles a position.
struct RopeBlock {
  DTypeField dtype;
  Flag interleaved;
  Whole pairs, size; // of a row
  Whole stride, out_stride;
  Real magnitude;
  Whole offset; // is added to positions
  Flag has_positions;
  DTypeField position_dtype;
  Whole offsets[3]; // of x, positions, out
  NestBlock<3>
      distinct; // axes along which positions differ: x, positions (without them, the offset is the position), out
  NestBlock<2> repeated; // the others: x, out
};

struct Rope {
  bool interleaved;           // pairs are (2i, 2i + 1), else (i, i + pairs)
  int64_t pairs, size;        // of a row: pairs that rotate, and elements; those behind the pairs stay
  double magnitude;           // of results
  const uint64_t *phases;     // of each pair a position, in 2^-64 cycles
  int64_t stride, out_stride; // along rows of x and of out
  bool is_streamed;           // results are more than caches keep: Streams::finish is the caller's
};

// What both functions that rotate say of it. Throws Failure for more pairs than a row has.
inline Rope checked_rope(bool interleaved, int64_t pairs, int64_t size, double magnitude) {
  if (pairs < 0 || 2 * pairs > size)
    fail(ORCHARD_CPU_INVALID_ARGUMENT,
         "expected pairs of " + std::to_string(size) + " elements, got " + std::to_string(pairs));
  Rope rope{};
  rope.interleaved = interleaved;
  rope.pairs = pairs, rope.size = size;
  rope.magnitude = magnitude;
  return rope;
}

// Positions of which a table of cosines and sines is made at once; with the rows of one head they stay in the
// first-level cache.
constexpr int64_t rope_positions = 16;

// A part of a cycle in 2^-64; whole cycles drop out. Throws Failure for what is not finite.
inline uint64_t phase_of(double cycles) {
  double magnitude = std::fabs(cycles);
  if (!std::isfinite(magnitude)) refuse_number(cycles, "a finite frequency");
  uint64_t fraction = static_cast<uint64_t>((magnitude - std::floor(magnitude)) * 18446744073709551616.0);
  return cycles < 0 ? 0 - fraction : fraction;
}

struct Ropes {
  // cosines[i] and sines[i] of a position's pairs, times the magnitude; float64 where the dtype is, else float32. Null
  // where it is no float.
  void (*table[dtype_count])(const Rope &rope, int64_t position, void *cosines, void *sines);
  // One row by its position's table; `scratch` holds two rows of float64.
  void (*rotate[dtype_count])(const Rope &rope, const void *cosines, const void *sines, const void *x, void *out,
                              void *scratch);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Ropes, ropes)
