// The function "reduce".
#include "reduction.h"
#include "short_rows.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <string>

using namespace orchard;

namespace {

using namespace tuning::reduction;

ORCHARD_EXPORT_NAMES(Reduction)

struct Call {
  const ReductionKernel &kernel;
  Nest<2> kept;
  Nest<1> reduced;
  ReductionFacts facts;
  DType from;
  const char *in;
  char *out;
  int64_t *indices;

  char *result(int64_t offset) const { return out ? element(out, facts.out, offset) : nullptr; }
  int64_t *index(int64_t offset) const { return indices ? indices + offset : nullptr; }
};

int64_t divided_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

// Each result is merged from `chunks` states, one for each chunk of its elements. The chunks depend on sizes only.
void reduce_rows(const Call &call) {
  int64_t results = call.kept.count(), chunks = std::max<int64_t>(1, divided_up(call.facts.count, row_chunk));
  int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, std::min(call.facts.count, row_chunk)));
  size_t bytes = call.kernel.state_bytes;
  auto state_of = [&](int64_t result, int64_t chunk, void *state) {
    int64_t begin = chunk * row_chunk, end = std::min(call.facts.count, begin + row_chunk);
    call.kernel.row(element(call.in, call.from, call.kept.offset(0, result)), call.reduced, begin, end, call.facts,
                    state);
  };
  auto finish = [&](int64_t result, const void *state) {
    int64_t at = call.kept.offset(1, result);
    call.kernel.finish(state, 1, 1, call.facts, call.result(at), call.index(at), 1);
  };
  if (chunks == 1) {
    parallel_for(results, grain, [&](int64_t begin, int64_t end) {
      alignas(16) char state[64];
      for (int64_t result = begin; result < end; result++) {
        state_of(result, 0, state);
        finish(result, state);
      }
    });
    return;
  }
  Scratch<char> states(scratch_product({results, chunks, int64_t(bytes)}));
  parallel_for(results * chunks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) state_of(task / chunks, task % chunks, states.data() + task * bytes);
  });
  for (int64_t result = 0; result < results; result++) {
    char *first = states.data() + result * chunks * bytes;
    call.kernel.merge(first, chunks, call.facts);
    finish(result, first);
  }
}

// Rows of adjacent elements, many in one call of the kernel.
void reduce_lines(const Call &call) {
  constexpr int64_t at_once = tuning::reduction::lines_of_call;
  const int64_t step = call.kept.run_stride(0), out_step = call.kept.run_stride(1);
  const int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, call.facts.count));
  parallel_for(call.kept.count(), grain, [&](int64_t begin, int64_t end) {
    alignas(64) char states[at_once * 64];
    for_each_run(call.kept, begin, end, [&](const int64_t (&offsets)[2], int64_t, int64_t length) {
      for (int64_t first = 0; first < length; first += at_once) {
        const int64_t count = std::min(at_once, length - first), at = offsets[1] + first * out_step;
        call.kernel.lines(element(call.in, call.from, offsets[0] + first * step), step, count, call.facts, states);
        call.kernel.finish(states, 1, count, call.facts, call.result(at), call.index(at), out_step);
      }
    });
  });
}

// The results of a block of short rows: the numbers of the first result and of the one after the last, and the offset
// at which each result's row begins.
struct RowsOfBlock {
  int64_t first, last, starts[short_rows];

  RowsOfBlock(const Call &call, int64_t first, int64_t last) : first(first), last(last) {
    for_each_run(call.kept, first, last, [&](const int64_t (&offsets)[2], int64_t result, int64_t length) {
      for (int64_t i = 0; i < length; i++) starts[result - first + i] = offsets[0] + i * call.kept.run_stride(0);
    });
  }

  int64_t count() const { return last - first; }

  // Returns the distance of rows that are evenly spaced, at least one element; 0 for others.
  int64_t distance() const {
    const int64_t step = count() > 1 ? starts[1] - starts[0] : 0;
    for (int64_t row = 2; row < count(); row++)
      if (starts[row] - starts[row - 1] != step) return 0;
    return std::max<int64_t>(step, 0);
  }
};

// Reduces rows as columns of a transposed copy: a loop over a few elements would cost more than the elements. Evenly
// spaced rows of adjacent elements are transposed with vectors.
void reduce_block(const Call &call, const RowsOfBlock &rows, char *states) {
  const int64_t length = call.facts.count, count = rows.count(), distance = rows.distance();
  const bool is_adjacent = call.reduced.rank == 1 && call.reduced.run_stride(0) == 1;
  if (distance > 0 && is_adjacent) {
    alignas(64) char columns[short_row_elements * int64_t(sizeof(double))];
    const DType dtype = call.from;
    const int64_t size = dtype_sizes[static_cast<int>(dtype)];
    const bool is_followed =
        rows.last < call.kept.count() && call.kept.offset(0, rows.last) == rows.starts[0] + count * distance;
    const ShortRowsBlock block{call.in + rows.starts[0] * size, distance, count, length, is_followed ? length : 0};
    short_row_copies().to_columns[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3](block, columns);
    Nest<1> nest;
    nest.rank = 1;
    nest.shape[0] = length;
    nest.strides[0][0] = count;
    call.kernel.columns(columns, count, nest, 0, length, call.facts, states, 1);
  } else if (length <= short_row) {
    call.kernel.rows(call.in, rows.starts, count, call.reduced, call.facts, states);
  } else {
    for (int64_t row = 0; row < count; row++)
      call.kernel.row(element(call.in, call.from, rows.starts[row]), call.reduced, 0, length, call.facts,
                      states + row * int64_t(call.kernel.state_bytes));
  }
}

// For results of few elements each: blocks of them are computed together. The blocks depend on sizes only.
void reduce_short_rows(const Call &call) {
  const int64_t results = call.kept.count(), bytes = int64_t(call.kernel.state_bytes), length = call.facts.count;
  const int64_t at_once = length <= short_row ? short_rows : long_rows;
  const int64_t grain = std::max<int64_t>(1, short_task_elements / (at_once * length));
  parallel_for(divided_up(results, at_once), grain, [&](int64_t begin, int64_t end) {
    alignas(16) char states[short_rows * 64];
    for (int64_t block = begin; block < end; block++) {
      const RowsOfBlock rows(call, block * at_once, std::min(results, (block + 1) * at_once));
      reduce_block(call, rows, states);
      for_each_run(call.kept, rows.first, rows.last, [&](const int64_t (&offsets)[2], int64_t result, int64_t count) {
        call.kernel.finish(states + (result - rows.first) * bytes, 1, count, call.facts, call.result(offsets[1]),
                           call.index(offsets[1]), call.kept.run_stride(1));
      });
    }
  });
}

// For an adjacent innermost kept axis: results that are adjacent are computed together.
void reduce_columns(const Call &call) {
  Nest<2> outer = call.kept;
  outer.rank--;
  int64_t columns = call.kept.run_length(), width = std::min(columns, reduction_columns);
  int64_t out_stride = call.kept.run_stride(1);
  int64_t blocks = divided_up(columns, width), tiles = outer.count() * blocks;
  int64_t chunks = std::max<int64_t>(1, divided_up(call.facts.count, column_rows));
  int64_t grain =
      std::max<int64_t>(1, task_elements / std::max<int64_t>(1, width * std::min(call.facts.count, column_rows)));
  size_t bytes = call.kernel.state_bytes;
  Scratch<char> states(scratch_product({tiles, width, chunks, int64_t(bytes)}));
  // The states of a column are adjacent: [tile][column][chunk].
  parallel_for(tiles * chunks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      int64_t tile = task / chunks, chunk = task % chunks, first = tile % blocks * width;
      int64_t from = chunk * column_rows, to = std::min(call.facts.count, from + column_rows);
      const char *in = element(call.in, call.from, outer.offset(0, tile / blocks) + first);
      call.kernel.columns(in, std::min(width, columns - first), call.reduced, from, to, call.facts,
                          states.data() + (tile * width * chunks + chunk) * bytes, chunks);
    }
  });
  parallel_for(tiles, std::max<int64_t>(1, task_elements / (width * chunks)), [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; tile++) {
      int64_t first = tile % blocks * width, count = std::min(width, columns - first);
      char *tile_states = states.data() + tile * width * chunks * bytes;
      if (chunks > 1)
        for (int64_t column = 0; column < count; column++)
          call.kernel.merge(tile_states + column * chunks * bytes, chunks, call.facts);
      int64_t at = outer.offset(1, tile / blocks) + first * out_stride;
      call.kernel.finish(tile_states, chunks, count, call.facts, call.result(at), call.index(at), out_stride);
    }
  });
}

Extent input_extent(const Nest<2> &kept, const Nest<1> &reduced) {
  Extent extent = kept.extent(0);
  for (int axis = 0; axis < reduced.rank; axis++) extent.along(reduced.shape[axis], reduced.strides[0][axis]);
  return extent;
}

// A kernel computes either floats or integers, and stores its results as such.
void check_result(Reduction operation, DType from, DType to) {
  bool is_float = from <= DType::bfloat16 && operation != Reduction::all && operation != Reduction::any;
  if (is_float != (to <= DType::bfloat16))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, std::string("expected results that are ") + (is_float ? "floats" : "integers") +
                                           ", got " + dtype_names[static_cast<int>(to)]);
}

// Reduces axes of a tensor. max and min also write the element's index within the reduced axes to `indices`, as int64
// and with the strides of `out`; other operations ignore `indices`.
void reduce(const ReduceBlock &block, Operands operands) {
  const Reduction operation = block.operation;
  const DType from = block.from, to = block.to;
  const ReductionKernel &kernel = reductions().kernels[static_cast<int>(operation)][static_cast<int>(from)];
  if (!kernel.row)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("this reduction is not defined for ") + dtype_names[static_cast<int>(from)]);
  check_result(operation, from, to);
  bool is_indexed = operation == Reduction::max || operation == Reduction::min;
  const Nest<2> kept = block.kept;
  const Nest<1> reduced = block.reduced;
  const char *in = operands.input(0, from, block.input_offset, input_extent(kept, reduced));
  char *out = operands.result(1, to, block.output_offset, kept.extent(1));
  int64_t *index = is_indexed ? operands.results<int64_t>(2, block.indices_offset, kept.extent(1)) : nullptr;
  Call call{kernel, kept, reduced, {reduced.count(), block.parameter, to}, from, in, out, index};
  bool is_reduced_adjacent = reduced.rank == 0 || reduced.run_stride(0) == 1;
  bool is_side_by_side = kept.rank > 0 && kept.run_stride(0) == 1 && kept.run_length() >= 8 &&
                         (!is_reduced_adjacent || call.facts.count == 1);
  const int64_t length = call.facts.count;
  const bool has_lines = kept.rank > 0 && reduced.rank == 1 && is_reduced_adjacent && length <= row_chunk;
  const bool are_long = kernel.has_lines && dtype_sizes[static_cast<int>(from)] > 1 && length >= shortest_line;
  int64_t longest = from == DType::float64 || kernel.has_lines ? short_row : longest_row;
  bool is_short = length > 0 && length <= longest && kept.count() >= least_short_rows;
  if (is_side_by_side) reduce_columns(call);
  else if (is_short && !(has_lines && are_long)) reduce_short_rows(call);
  else if (has_lines) reduce_lines(call);
  else reduce_rows(call);
}

ORCHARD_FUNCTION("reduce", reduce, ReduceBlock, 3)

} // namespace
