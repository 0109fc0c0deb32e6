#include "rope.h"

#include "../block.h"
#include "../indexing/nest.h"
#include "../indexing/scratch_slots.h"
#include "../parallel.h"
#include "../streamed.h"

#include <algorithm>
#include <cmath>

using namespace orchard;

namespace {

constexpr int64_t grain = 1 << 14; // elements

// A fraction of a turn in 2^-64; whole turns fall away.
uint64_t turns_of(double turns) {
  double magnitude = std::fabs(turns);
  uint64_t fraction = static_cast<uint64_t>((magnitude - std::floor(magnitude)) * 18446744073709551616.0);
  return turns < 0 ? 0 - fraction : fraction;
}

int64_t integer_at(const void *base, DType dtype, int64_t place) {
  return dtype == DType::int32 ? static_cast<const int32_t *>(base)[place] : static_cast<const int64_t *>(base)[place];
}

// A call: rows by their positions, and for each position the rows that share it.
struct RopeCall {
  DType dtype;
  Rope rope{};
  int64_t position_offset;
  bool has_positions;
  DType position_dtype;
  int64_t x_offset, positions_offset, out_offset;
  Nest<3> turning;  // axes along which positions differ: x, positions, out
  Nest<2> repeated; // the others: x, out
  Scratch<uint64_t> turns;

  explicit RopeCall(BlockReader &reader)
      : dtype(reader.dtype()), rope(read_row(reader)), position_offset(reader.whole()), has_positions(reader.whole() != 0),
        position_dtype(reader.dtype()), x_offset(reader.whole()), positions_offset(reader.whole()), out_offset(reader.whole()),
        turning(read_nest<3>(reader)), repeated(read_nest<2>(reader)), turns(static_cast<size_t>(rope.pairs)) {
    for (int64_t pair = 0; pair < rope.pairs; pair++) turns.data()[pair] = turns_of(reader.real());
    rope.turns = turns.data();
    rope.is_streamed = is_streamed(turning.count() * repeated.count() * rope.size * dtype_sizes[static_cast<int>(dtype)]);
    if (!ropes().turn[static_cast<int>(dtype)])
      fail(ORCHARD_CPU_UNSUPPORTED, std::string("rows that turn are floats, not ") + dtype_names[static_cast<int>(dtype)]);
  }

  static Rope read_row(BlockReader &reader) {
    Rope rope{};
    rope.interleaved = reader.whole() != 0;
    rope.pairs = reader.whole();
    rope.size = reader.whole();
    rope.stride = reader.whole();
    rope.out_stride = reader.whole();
    rope.magnitude = reader.real();
    return rope;
  }

  // Turns the rows [begin, end) of those that share a position, for the positions [first, last).
  void turn(const void *x, const void *positions, void *out, int64_t first, int64_t last, int64_t begin, int64_t end, double *scratch) const {
    const int64_t width = 2 * rope.pairs;
    double *tables = scratch + 2 * rope.size;
    int64_t places[rope_positions][3];
    for (int64_t at = first; at < last; at++) {
      int64_t(&own)[3] = places[at - first];
      find_places(turning, at, own);
      int64_t position = position_offset + (has_positions ? integer_at(positions, position_dtype, positions_offset + own[1]) : own[1]);
      double *table = tables + (at - first) * width;
      ropes().table[static_cast<int>(dtype)](rope, position, table, table + rope.pairs);
    }
    for (int64_t row = begin; row < end; row++) {
      int64_t own[2];
      find_places(repeated, row, own);
      for (int64_t at = 0; at < last - first; at++) {
        const double *table = tables + at * width;
        ropes().turn[static_cast<int>(dtype)](rope, table, table + rope.pairs, element(x, dtype, x_offset + own[0] + places[at][0]),
                                              element(out, dtype, out_offset + own[1] + places[at][2]), scratch);
      }
    }
  }
};

int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

} // namespace

int32_t orchard_cpu_rope(const double *block, const void *x, const void *positions, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    const RopeCall call(reader);
    const int64_t count = call.turning.count(), shared = call.repeated.count(), size = std::max<int64_t>(1, call.rope.size);
    const int64_t rows = std::max<int64_t>(32, grain / (rope_positions * size)); // a table should serve many
    const int64_t strips = parts(shared, rows), tasks = parts(count, rope_positions) * strips;
    const int64_t at_once = std::max<int64_t>(1, grain / (rope_positions * std::min(rows, shared) * size));
    ScratchSlots<double> slots(parts(tasks, at_once), 2 * size + 2 * rope_positions * call.rope.pairs);
    parallel_for(tasks, at_once, [&](int64_t begin, int64_t end) {
      slots.with([&](double *scratch) {
        for (int64_t task = begin; task < end; task++) {
          int64_t first = task / strips * rope_positions, row = task % strips * rows;
          call.turn(x, positions, out, first, std::min(first + rope_positions, count), row, std::min(row + rows, shared), scratch);
        }
        if (call.rope.is_streamed) streams().finish();
      });
    });
  });
}
