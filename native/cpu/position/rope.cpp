// The function "rope".
#include "rope.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../parallel.h"
#include "../streamed.h"
#include "../tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::position::task_elements;

int64_t integer_at(const char *first, DType dtype, int64_t offset) {
  return dtype == DType::int32 ? reinterpret_cast<const int32_t *>(first)[offset]
                               : reinterpret_cast<const int64_t *>(first)[offset];
}

// The parameters of a call: the positions, and the rows that have each position.
struct RopeCall {
  DType dtype;
  Rope rope;
  int64_t position_offset;
  bool has_positions;
  DType position_dtype;
  Nest<3> distinct;
  Nest<2> repeated;
  const char *x, *positions;
  char *out;
  Scratch<uint64_t> phases;

  // Operands: x, positions, frequencies, out.
  RopeCall(const RopeBlock &block, const Operands &operands)
      : dtype(block.dtype), rope(row_of(block)), position_offset(block.offset), has_positions(block.has_positions),
        position_dtype(block.position_dtype), distinct(block.distinct), repeated(block.repeated), phases(rope.pairs) {
    x = operands.input(0, dtype, block.offsets[0], extent(0, 0, rope.stride));
    positions = has_positions ? find_positions(operands, block.offsets[1]) : nullptr;
    if (!distinct.extent(1).is_possible())
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected positions below 2^63, got larger ones");
    const double *cycles = operands.inputs<double>(2, 0, Extent(rope.pairs));
    out = operands.result(3, dtype, block.offsets[2], extent(2, 1, rope.out_stride));
    for (int64_t pair = 0; pair < rope.pairs; pair++) phases.data()[pair] = phase_of(cycles[pair]);
    rope.phases = phases.data();
    rope.is_streamed =
        is_streamed(distinct.count() * repeated.count() * rope.size * dtype_sizes[static_cast<int>(dtype)]);
    if (!ropes().rotate[static_cast<int>(dtype)])
      fail(ORCHARD_CPU_UNSUPPORTED,
           std::string("expected rows of floats, got ") + dtype_names[static_cast<int>(dtype)]);
  }

  // Returns the extent of all rows of x or of out; the arguments are the operand's indices in the two nests.
  Extent extent(int in_distinct, int in_repeated, int64_t stride) const {
    Extent visited = distinct.extent(in_distinct).along(rope.size, stride);
    for (int axis = 0; axis < repeated.rank; axis++)
      visited.along(repeated.shape[axis], repeated.strides[in_repeated][axis]);
    return visited;
  }

  const char *find_positions(const Operands &operands, int64_t offset) const {
    if (position_dtype != DType::int64 && position_dtype != DType::int32)
      fail(ORCHARD_CPU_INVALID_ARGUMENT,
           std::string("expected positions of int64 or int32, got ") + dtype_names[static_cast<int>(position_dtype)]);
    return operands.input(1, position_dtype, offset, distinct.extent(1));
  }

  // Angles are modulo 2^64, so positions may be too.
  int64_t position_at(int64_t offset) const {
    const int64_t given = has_positions ? integer_at(positions, position_dtype, offset) : offset;
    return static_cast<int64_t>(static_cast<uint64_t>(position_offset) + static_cast<uint64_t>(given));
  }

  static Rope row_of(const RopeBlock &block) {
    Rope rope = checked_rope(block.interleaved, block.pairs, block.size, block.magnitude);
    rope.stride = block.stride, rope.out_stride = block.out_stride;
    return rope;
  }

  // Rotates rows [begin, end) among those with the same position, for each of the positions [first, last).
  void rotate(int64_t first, int64_t last, int64_t begin, int64_t end, double *scratch) const {
    const int64_t width = 2 * rope.pairs;
    double *tables = scratch + 2 * rope.size;
    int64_t offsets[rope_positions][3];
    for (int64_t at = first; at < last; at++) {
      int64_t (&position_offsets)[3] = offsets[at - first];
      distinct.find_offsets(at, position_offsets);
      const int64_t position = position_at(position_offsets[1]);
      double *table = tables + (at - first) * width;
      ropes().table[static_cast<int>(dtype)](rope, position, table, table + rope.pairs);
    }
    for (int64_t row = begin; row < end; row++) {
      int64_t row_offsets[2];
      repeated.find_offsets(row, row_offsets);
      for (int64_t at = 0; at < last - first; at++) {
        const double *table = tables + at * width;
        ropes().rotate[static_cast<int>(dtype)](rope, table, table + rope.pairs,
                                                element(x, dtype, row_offsets[0] + offsets[at][0]),
                                                element(out, dtype, row_offsets[1] + offsets[at][2]), scratch);
      }
    }
  }
};

int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Rotates each pair of a row by its position times the pair's frequency, and multiplies it by the magnitude.
void rope(const RopeBlock &block, Operands operands) {
  const RopeCall call(block, operands);
  const int64_t count = call.distinct.count(), shared = call.repeated.count(),
                size = std::max<int64_t>(1, call.rope.size);
  if (count == 0 || shared == 0) return;
  const int64_t rows =
      std::max<int64_t>(32, task_elements / (rope_positions * size)); // enough rows to amortize the table
  const int64_t strips = parts(shared, rows), tasks = parts(count, rope_positions) * strips;
  const int64_t at_once = std::max<int64_t>(1, task_elements / (rope_positions * std::min(rows, shared) * size));
  ScratchSlots<double> slots(parts(tasks, at_once), 2 * size + 2 * rope_positions * call.rope.pairs);
  parallel_for(tasks, at_once, [&](int64_t begin, int64_t end) {
    slots.with([&](double *scratch) {
      for (int64_t task = begin; task < end; task++) {
        int64_t first = task / strips * rope_positions, row = task % strips * rows;
        call.rotate(first, std::min(first + rope_positions, count), row, std::min(row + rows, shared), scratch);
      }
      if (call.rope.is_streamed) streams().finish();
    });
  });
}

ORCHARD_FUNCTION("rope", rope, RopeBlock, 4)

} // namespace
