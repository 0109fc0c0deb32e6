// Slices of three operands (x, a second one and the result), in batches of adjacent slices.
#pragma once

#include "functions.h"
#include "slices.h"
#include "streamed.h"

#include <algorithm>

namespace orchard {

// Adjacent slices: those along the last of the other axes. Strides are those of x, second and out.
struct SliceBatch {
  const char *x, *second;
  char *out;
  int64_t length, slices;
  int64_t along[3], across[3]; // strides between elements of a slice, and between slices
  bool is_streamed;            // results exceed the caches

  bool has_adjacent_elements() const { return along[0] == 1 && along[1] == 1 && along[2] == 1; }
};

// The division of slices among tasks. A row consists of the slices along the last of the other axes.
struct SliceTasks {
  int64_t width;   // slices per batch
  int64_t batches; // batches per row of slices
  int64_t count;   // number of all batches
  int64_t grain;   // batches per task
};

class BatchedSlices {
public:
  const DType dtypes[3];
  SliceBatch whole; // the common fields of all batches, with the addresses of the first slice

  // Batches of a call with these three operands. If there is no second operand, x takes its place and is not read
  // there.
  BatchedSlices(Slices<3> slices, DType from, DType to, const Operands &operands, bool has_second)
      : dtypes{from, from, to} {
    if (!has_second) slices.set_layout_of(1, 0);
    whole.x = operands.input(0, from, slices.offsets[0], slices.extent(0));
    whole.second = operands.input(has_second ? 1 : 0, from, slices.offsets[1], slices.extent(1));
    whole.out = operands.result(2, to, slices.offsets[2], slices.extent(2));
    nest_ = slices.nest;
    whole.length = slices.length;
    for (int operand = 0; operand < 3; operand++) {
      whole.along[operand] = slices.along[operand];
      whole.across[operand] = nest_.run_stride(operand);
    }
    whole.is_streamed = is_streamed(nest_.count() * whole.length * dtype_sizes[static_cast<int>(to)]);
  }

  const Nest<3> &nest() const { return nest_; }
  int64_t count() const { return nest_.count(); }
  int64_t row_slices() const { return nest_.run_length(); }
  int64_t rows() const {
    int64_t count = 1;
    for (int axis = 0; axis + 1 < nest_.rank; axis++) count *= nest_.shape[axis];
    return count;
  }

  // Returns `slices` slices from number `first` on, in row number `row`.
  SliceBatch batch_at(int64_t row, int64_t first, int64_t slices) const {
    SliceBatch batch = whole;
    int64_t offsets[3];
    nest_.find_offsets(row * row_slices() + first, offsets);
    batch.slices = slices;
    batch.x = element(batch.x, dtypes[0], offsets[0]);
    batch.second = element(batch.second, dtypes[1], offsets[1]);
    batch.out = element(batch.out, dtypes[2], offsets[2]);
    return batch;
  }

  // Divides slices into batches of up to `together`, and batches into tasks of about `task_elements` elements.
  SliceTasks tasks(int64_t together, int64_t task_elements) const {
    int64_t width = std::min(row_slices(), together), batches = width > 0 ? (row_slices() - 1) / width + 1 : 0;
    int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, width * whole.length));
    return {width, batches, rows() * batches, grain};
  }
  SliceBatch batch_of(const SliceTasks &tasks, int64_t task) const {
    int64_t first = task % tasks.batches * tasks.width;
    return batch_at(task / tasks.batches, first, std::min(tasks.width, row_slices() - first));
  }

private:
  Nest<3> nest_;
};

} // namespace orchard
