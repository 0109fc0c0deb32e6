// Rotary position embedding: rows whose pairs of elements are rotated by their position times the pair's frequency.
//
// An angle is a 64-bit phase: the pair's phase per position, an integer multiple of 2^-64 cycles, times the position,
// modulo 2^64. Whole cycles vanish exactly, so large positions have as accurate an angle as small ones.
#pragma once

#include "../nest.h"

#include <cmath>
#include <cstdint>
#include <string>

namespace orchard {

// A further operand has the frequency of each pair, in cycles per position.
struct RopeBlock {
  DTypeField dtype;
  Flag interleaved;
  Whole pairs, size; // of a row
  Whole stride, out_stride;
  Real magnitude;
  Whole offset; // added to positions
  Flag has_positions;
  DTypeField position_dtype;
  Whole offsets[3]; // of x, positions, out
  NestBlock<3>
      distinct; // axes along which positions differ: x, positions (without them, the offset is the position), out
  NestBlock<2> repeated; // the other axes: x, out
};

struct Rope {
  bool interleaved;           // pairs are (2i, 2i + 1), else (i, i + pairs)
  int64_t pairs, size;        // of a row: pairs that rotate, and elements; the rest is copied
  double magnitude;           // of results
  const uint64_t *phases;     // per pair and position, in 2^-64 cycles
  int64_t stride, out_stride; // along rows of x and of out
  bool is_streamed;           // results exceed the caches; the caller calls Streams::finish
};

// Returns the parameters that both rotating functions share. Throws Failure if a row has too few elements for the
// pairs.
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

// Number of positions with a shared table of cosines and sines; with the rows of one head it fits the L1 cache.
constexpr int64_t rope_positions = 16;

// Returns the fraction of a cycle in units of 2^-64; whole cycles vanish. Throws Failure if it is not finite.
inline uint64_t phase_of(double cycles) {
  double magnitude = std::fabs(cycles);
  if (!std::isfinite(magnitude)) refuse_number(cycles, "a finite frequency");
  uint64_t fraction = static_cast<uint64_t>((magnitude - std::floor(magnitude)) * 18446744073709551616.0);
  return cycles < 0 ? 0 - fraction : fraction;
}

struct Ropes {
  // cosines[i] and sines[i] of a position's pairs, times the magnitude; float64 for that dtype, else float32. Null
  // unless it is a float dtype.
  void (*table[dtype_count])(const Rope &rope, int64_t position, void *cosines, void *sines);
  // Rotates one row with its position's table; `scratch` has room for two rows of float64.
  void (*rotate[dtype_count])(const Rope &rope, const void *cosines, const void *sines, const void *x, void *out,
                              void *scratch);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Ropes, ropes)
