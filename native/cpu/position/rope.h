// Rotary position embedding: rotates each pair of elements of a row by the row's position times the pair's frequency.
//
// An angle is a 64-bit phase in units of 2^-64 cycles: the pair's phase per position, times the position, modulo 2^64.
// Whole cycles vanish exactly, so angles are as accurate for large positions as for small ones.
#pragma once

// Another operand has the frequency of each pair, in cycles per position.
// - pairs, size: of a row
// - offset: added to positions
// - offsets: of x, positions, out
// - distinct: axes along which positions differ: of x, positions (if absent, the offset is the position), and out
// - repeated: the other axes: of x and out
#include "../../.build/generated/rope_block.h"

#include "../nest.h"
#include "../tuning.h"

#include <cmath>
#include <cstdint>
#include <string>

namespace orchard {

struct Rope {
  bool interleaved;           // pairs are (2i, 2i + 1), else (i, i + pairs)
  int64_t pairs, size;        // of a row: rotated pairs, and elements; elements beyond the pairs are copied
  double magnitude;           // factor of the results
  const uint64_t *phases;     // of each pair per position, in units of 2^-64 cycles
  int64_t stride, out_stride; // along rows of x and of out
  bool is_streamed;           // results exceed the caches; the caller calls Streams::finish
};

// Returns the parameters common to both rotating functions. Throws Failure if a row has too few elements for the pairs.
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

using tuning::position::rope_positions;

// Returns the fractional part of `cycles` in units of 2^-64. Throws Failure if it is not finite.
inline uint64_t phase_of(double cycles) {
  double magnitude = std::fabs(cycles);
  if (!std::isfinite(magnitude)) refuse_number(cycles, "a finite frequency");
  uint64_t fraction = static_cast<uint64_t>((magnitude - std::floor(magnitude)) * 18446744073709551616.0);
  return cycles < 0 ? 0 - fraction : fraction;
}

struct Ropes {
  // Computes cosines[i] and sines[i] of each pair for a position, times the magnitude. They are float64 for float64,
  // else float32. Null for non-float dtypes.
  void (*table[dtype_count])(const Rope &rope, int64_t position, void *cosines, void *sines);
  // Rotates one row with the table of its position; `scratch` has room for two rows of float64.
  void (*rotate[dtype_count])(const Rope &rope, const void *cosines, const void *sines, const void *x, void *out,
                              void *scratch);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Ropes, ropes)
