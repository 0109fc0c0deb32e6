#include "creation.h"

#include "../block.h"
#include "../parallel.h"

#include <algorithm>

using namespace orchard;

namespace {

constexpr int64_t grain = 1 << 16; // about 20 µs
constexpr int max_rank = 8;

struct Fill {
  FillRow row;
  int64_t bytes;
  uint64_t bits;
  int rank;
  int64_t shape[max_rank], strides[max_rank];

  // Every element below an axis.
  void run(char *at, int axis) const {
    if (axis >= rank - 1) return row(at, bits, rank == 0 ? 1 : shape[axis], rank == 0 ? 1 : strides[axis]);
    for (int64_t index = 0; index < shape[axis]; index++) run(at + index * strides[axis] * bytes, axis + 1);
  }
};

int64_t wide_word(BlockReader &reader) {
  uint64_t low = static_cast<uint64_t>(reader.whole());
  return static_cast<int64_t>(low | static_cast<uint64_t>(reader.whole()) << 32);
}

// A range's head: count, dtype, offset.
struct Target {
  int64_t count;
  DType dtype;
  char *first;
  Target(BlockReader &reader, void *out) : count(reader.whole()), dtype(reader.dtype()), first(element(out, dtype, reader.whole())) {}

  template <class Row, class Line> void run(Row *row, const Line &line) const {
    if (!row) fail(ORCHARD_CPU_UNSUPPORTED, std::string("this range has no elements of dtype ") + dtype_names[static_cast<int>(dtype)]);
    parallel_for(count, grain, [&](int64_t begin, int64_t end) { row(line, begin, end, element(first, dtype, begin)); });
  }
};

} // namespace

int32_t orchard_cpu_fill(const double *block, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    Fill fill{};
    fill.bytes = reader.whole();
    int size = 0;
    while (size < 4 && int64_t(1) << size != fill.bytes) size++;
    if (size == 4) fail(ORCHARD_CPU_INVALID_ARGUMENT, "elements have 1, 2, 4 or 8 bytes, and not " + std::to_string(fill.bytes));
    fill.row = creations().fill[size];
    char *first = static_cast<char *>(out) + reader.whole() * fill.bytes;
    fill.bits = static_cast<uint64_t>(wide_word(reader));
    fill.rank = static_cast<int>(reader.whole());
    if (fill.rank < 0 || fill.rank > max_rank) fail(ORCHARD_CPU_INVALID_ARGUMENT, "the rank must be 0 to 8, and is " + std::to_string(fill.rank));
    for (int axis = 0; axis < fill.rank; axis++) fill.shape[axis] = reader.whole();
    for (int axis = 0; axis < fill.rank; axis++) fill.strides[axis] = reader.whole();
    if (fill.rank != 1) return fill.run(first, 0);
    parallel_for(fill.shape[0], grain, [&](int64_t begin, int64_t end) {
      fill.row(first + begin * fill.strides[0] * fill.bytes, fill.bits, end - begin, fill.strides[0]);
    });
  });
}

int32_t orchard_cpu_range(const double *block, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    Target target(reader, out);
    Line line{reader.real(), reader.real(), reader.real(), reader.whole(), target.count};
    target.run(creations().line[static_cast<int>(target.dtype)], line);
  });
}

int32_t orchard_cpu_whole_range(const double *block, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    Target target(reader, out);
    WholeLine line{wide_word(reader), wide_word(reader), wide_word(reader), wide_word(reader)};
    target.run(creations().whole_line[static_cast<int>(target.dtype)], line);
  });
}
