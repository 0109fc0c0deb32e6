// The function "rope".
#include "rope.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../parallel.h"
#include "../streamed.h"

#include <algorithm>
#include <cmath>

using namespace orchard;

namespace {

constexpr int64_t grain = 1 << 14; // elements

// A part of a cycle in 2^-64; whole cycles drop out.
uint64_t phase_of(double cycles) {
  double magnitude = std::fabs(cycles);
  uint64_t fraction = static_cast<uint64_t>((magnitude - std::floor(magnitude)) * 18446744073709551616.0);
  return cycles < 0 ? 0 - fraction : fraction;
}

int64_t integer_at(const void *base, DType dtype, int64_t offset) {
  return dtype == DType::int32 ? static_cast<const int32_t *>(base)[offset]
                               : static_cast<const int64_t *>(base)[offset];
}

// A call: rows by their positions, and for each position the rows that share it.
struct RopeCall {
  DType dtype;
  Rope rope;
  int64_t position_offset;
  bool has_positions;
  DType position_dtype;
  int64_t x_offset, positions_offset, out_offset;
  Nest<3> distinct;
  Nest<2> repeated;
  Scratch<uint64_t> phases;

  RopeCall(const RopeBlock &block, const double *cycles)
      : dtype(block.dtype), rope(row_of(block)), position_offset(block.offset), has_positions(block.has_positions),
        position_dtype(block.position_dtype), x_offset(block.offsets[0]), positions_offset(block.offsets[1]),
        out_offset(block.offsets[2]), distinct(block.distinct), repeated(block.repeated),
        phases(static_cast<size_t>(rope.pairs)) {
    for (int64_t pair = 0; pair < rope.pairs; pair++) phases.data()[pair] = phase_of(cycles[pair]);
    rope.phases = phases.data();
    rope.is_streamed =
        is_streamed(distinct.count() * repeated.count() * rope.size * dtype_sizes[static_cast<int>(dtype)]);
    if (!ropes().rotate[static_cast<int>(dtype)])
      fail(ORCHARD_CPU_UNSUPPORTED,
           std::string("expected rows of floats, got ") + dtype_names[static_cast<int>(dtype)]);
  }

  static Rope row_of(const RopeBlock &block) {
    Rope rope{};
    rope.interleaved = block.interleaved;
    rope.pairs = block.pairs;
    rope.size = block.size;
    rope.stride = block.stride;
    rope.out_stride = block.out_stride;
    rope.magnitude = block.magnitude;
    return rope;
  }

  // Rotates the rows [begin, end) of those that share a position, for the positions [first, last).
  void rotate(const void *x, const void *positions, void *out, int64_t first, int64_t last, int64_t begin, int64_t end,
              double *scratch) const {
    const int64_t width = 2 * rope.pairs;
    double *tables = scratch + 2 * rope.size;
    int64_t offsets[rope_positions][3];
    for (int64_t at = first; at < last; at++) {
      int64_t (&own)[3] = offsets[at - first];
      distinct.find_offsets(at, own);
      int64_t position =
          position_offset + (has_positions ? integer_at(positions, position_dtype, positions_offset + own[1]) : own[1]);
      double *table = tables + (at - first) * width;
      ropes().table[static_cast<int>(dtype)](rope, position, table, table + rope.pairs);
    }
    for (int64_t row = begin; row < end; row++) {
      int64_t own[2];
      repeated.find_offsets(row, own);
      for (int64_t at = 0; at < last - first; at++) {
        const double *table = tables + at * width;
        ropes().rotate[static_cast<int>(dtype)](rope, table, table + rope.pairs,
                                                element(x, dtype, x_offset + own[0] + offsets[at][0]),
                                                element(out, dtype, out_offset + own[1] + offsets[at][2]), scratch);
      }
    }
  }
};

int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Each pair of a row is rotated by its position times the pair's frequency, and multiplied by the magnitude.
void rope(const RopeBlock &block, Operands operands) {
  auto [x, positions, cycles, out] = operands.first<4>();
  const RopeCall call(block, static_cast<const double *>(cycles));
  const int64_t count = call.distinct.count(), shared = call.repeated.count(),
                size = std::max<int64_t>(1, call.rope.size);
  const int64_t rows = std::max<int64_t>(32, grain / (rope_positions * size)); // a table should serve many
  const int64_t strips = parts(shared, rows), tasks = parts(count, rope_positions) * strips;
  const int64_t at_once = std::max<int64_t>(1, grain / (rope_positions * std::min(rows, shared) * size));
  ScratchSlots<double> slots(parts(tasks, at_once), 2 * size + 2 * rope_positions * call.rope.pairs);
  const void *source = x, *given = positions;
  void *target = out;
  parallel_for(tasks, at_once, [&](int64_t begin, int64_t end) {
    slots.with([&](double *scratch) {
      for (int64_t task = begin; task < end; task++) {
        int64_t first = task / strips * rope_positions, row = task % strips * rows;
        call.rotate(source, given, target, first, std::min(first + rope_positions, count), row,
                    std::min(row + rows, shared), scratch);
      }
      if (call.rope.is_streamed) streams().finish();
    });
  });
}

ORCHARD_FUNCTION("rope", rope, RopeBlock, 4)

} // namespace
