// The lines of three operands of one shape along an axis, as src/ops/scan/lines.ts writes them: x, a second one, and the results.
#pragma once

#include "../block.h"
#include "../streamed.h"

#include <algorithm>

namespace orchard {

constexpr int lines_max_rank = 8;

// Lines that lie side by side along the last of the other axes. Strides of x, second and out.
struct LineBatch {
  const char *x, *second;
  char *out;
  int64_t length, lines;
  int64_t along[3], across[3]; // from k to k + 1, from line to line
  bool is_streamed;            // results are more than caches keep

  bool has_adjacent_elements() const { return along[0] == 1 && along[1] == 1 && along[2] == 1; }
};

// Some lines for each task.
struct LineTasks {
  int64_t width, batches, count, grain; // lines of a batch, batches of a row of lines, all batches, batches that are worth a thread's while
};

struct Lines {
  DType dtypes[3];
  LineBatch whole; // what batches share
  int64_t rank, shape[lines_max_rank], strides[3][lines_max_rank];

  // Reads offsets, length, strides along the axis, and the other axes.
  Lines(BlockReader &reader, DType from, DType to, const void *x, const void *second, void *out) : dtypes{from, from, to} {
    whole.x = element(x, from, reader.whole());
    whole.second = element(second, from, reader.whole());
    whole.out = element(out, to, reader.whole());
    whole.length = reader.whole();
    for (int64_t &stride : whole.along) stride = reader.whole();
    rank = reader.whole();
    if (rank < 1 || rank > lines_max_rank)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "lines over " + std::to_string(rank) + " axes came, 1 to 8 are possible");
    for (int64_t axis = 0; axis < rank; axis++) shape[axis] = reader.whole();
    for (auto &own : strides)
      for (int64_t axis = 0; axis < rank; axis++) own[axis] = reader.whole();
    for (int operand = 0; operand < 3; operand++) whole.across[operand] = strides[operand][rank - 1];
    whole.is_streamed = is_streamed(rows() * row_lines() * whole.length * dtype_sizes[static_cast<int>(to)]);
  }

  int64_t row_lines() const { return shape[rank - 1]; }
  int64_t rows() const {
    int64_t count = 1;
    for (int64_t axis = 0; axis + 1 < rank; axis++) count *= shape[axis];
    return count;
  }

  // Lines from `first` on of the row of lines with this number.
  LineBatch batch_at(int64_t row, int64_t first, int64_t lines) const {
    LineBatch batch = whole;
    int64_t places[3];
    for (int operand = 0; operand < 3; operand++) places[operand] = first * whole.across[operand];
    for (int64_t axis = rank - 2; axis >= 0; axis--) {
      for (int operand = 0; operand < 3; operand++) places[operand] += row % shape[axis] * strides[operand][axis];
      row /= shape[axis];
    }
    batch.lines = lines;
    batch.x = element(batch.x, dtypes[0], places[0]);
    batch.second = element(batch.second, dtypes[1], places[1]);
    batch.out = element(batch.out, dtypes[2], places[2]);
    return batch;
  }

  // Batches of up to `together` lines, as many as make `task_elements` elements for a thread.
  LineTasks tasks(int64_t together, int64_t task_elements) const {
    int64_t width = std::min(row_lines(), together), batches = width > 0 ? (row_lines() - 1) / width + 1 : 0;
    return {width, batches, rows() * batches, std::max<int64_t>(1, task_elements / std::max<int64_t>(1, width * whole.length))};
  }
  LineBatch batch_of(const LineTasks &tasks, int64_t task) const {
    int64_t first = task % tasks.batches * tasks.width;
    return batch_at(task / tasks.batches, first, std::min(tasks.width, row_lines() - first));
  }
};

} // namespace orchard
