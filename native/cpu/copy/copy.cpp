// The function "copy".
#include "copy.h"

#include "../conversion/conversion.h"
#include "../creation/creation.h"
#include "../parallel.h"
#include "../pieces.h"
#include "../streamed.h"
#include "tuning.h"

#include <cstdlib>

using namespace orchard;

namespace {

using namespace tuning::copy;

// Sorts the axes by the result's strides, largest first, drops axes of length 1, and merges adjacent axes.
int order_axes(const Nest<2> &nest, int64_t size, CopyAxis (&axes)[max_rank]) {
  int rank = 0;
  for (int axis = 0; axis < nest.rank; axis++)
    if (nest.shape[axis] != 1)
      axes[rank++] = {nest.shape[axis], nest.strides[0][axis] * size, nest.strides[1][axis] * size};
  std::stable_sort(axes, axes + rank,
                   [](const CopyAxis &a, const CopyAxis &b) { return std::abs(a.to) > std::abs(b.to); });
  int merged = 0;
  for (int axis = 0; axis < rank; axis++) {
    const CopyAxis inner = axes[axis];
    CopyAxis *outer = merged > 0 ? &axes[merged - 1] : nullptr;
    if (outer && outer->from == inner.from * inner.size && outer->to == inner.to * inner.size)
      *outer = {outer->size * inner.size, inner.from, inner.to};
    else axes[merged++] = inner;
  }
  return merged;
}

// The distance between elements along an axis; a broadcast axis counts as the farthest.
int64_t distance_of(int64_t stride) { return stride == 0 ? INT64_MAX : std::abs(stride); }

// Returns whether rows have their elements in descending order in the source.
bool is_reversed(const CopyPlan &plan, int64_t size) {
  const CopyAxis &last = plan.axes[plan.rank - 1];
  return last.from == -size && last.size >= shortest_reversed;
}

// Returns whether a plan exists. It does not if no axis has adjacent elements in the result, or if the closest elements
// of both layouts are along the same axis but are not adjacent in the source.
bool find_plan(const Nest<2> &nest, int64_t size, CopyPlan &plan) {
  plan.rank = order_axes(nest, size, plan.axes);
  CopyAxis *last = plan.axes + plan.rank - 1;
  if (plan.rank == 0 || last->to != size) return false;
  plan.is_rows = last->from == size;
  plan.is_filling = last->from == 0 && plan.rank > 1 && last->size * size <= longest_filled;
  if (plan.is_rows || plan.is_filling || is_reversed(plan, size)) return true;
  CopyAxis *closest = std::min_element(
      plan.axes, last, [](const CopyAxis &a, const CopyAxis &b) { return distance_of(a.from) < distance_of(b.from); });
  if (closest == last || distance_of(closest->from) >= distance_of(last->from)) return false;
  std::rotate(closest, closest + 1, last);
  return true;
}

struct Addresses {
  const char *from;
  char *to;

  void move(const CopyAxis &axis, int64_t steps) {
    from += axis.from * steps;
    to += axis.to * steps;
  }
};

// Returns the addresses of part `number`, in row-major order over the first `rank` axes.
Addresses part_at(Addresses first, const CopyPlan &plan, int rank, int64_t number) {
  for (int axis = rank - 1; axis >= 0; axis--) {
    first.move(plan.axes[axis], number % plan.axes[axis].size);
    number /= plan.axes[axis].size;
  }
  return first;
}

int64_t count_parts(const CopyPlan &plan, int rank) {
  int64_t parts = 1;
  for (int axis = 0; axis < rank; axis++) parts *= plan.axes[axis].size;
  return parts;
}

template <class Part> inline void copy_ends(const Addresses &at, int64_t bytes) {
  Part first, last; // of the row; they overlap
  std::memcpy(&first, at.from, sizeof(Part));
  std::memcpy(&last, at.from + bytes - sizeof(Part), sizeof(Part));
  std::memcpy(at.to, &first, sizeof(Part));
  std::memcpy(at.to + bytes - sizeof(Part), &last, sizeof(Part));
}

constexpr int64_t line = 64;

void copy_unaligned(const Addresses &at, int64_t bytes) {
  int64_t done = 0;
  for (; done + line <= bytes; done += line) std::memcpy(at.to + done, at.from + done, line);
  std::memcpy(at.to + done, at.from + done, bytes - done);
}

// Short rows are copied inline: a call of memcpy would cost more than copying a few bytes.
inline void copy_row(const Addresses &at, int64_t bytes) {
  struct Part16 {
    char bytes[16];
  };
  struct Part32 {
    char bytes[32];
  };
  const bool is_aligned = (reinterpret_cast<uintptr_t>(at.from) | reinterpret_cast<uintptr_t>(at.to)) % line == 0;
  if (bytes >= long_row && !is_aligned) copy_unaligned(at, bytes);
  else if (bytes > 64) std::memcpy(at.to, at.from, bytes);
  else if (bytes >= 32) copy_ends<Part32>(at, bytes);
  else if (bytes >= 16) copy_ends<Part16>(at, bytes);
  else if (bytes >= 8) copy_ends<uint64_t>(at, bytes);
  else if (bytes >= 4) copy_ends<uint32_t>(at, bytes);
  else
    for (int64_t byte = 0; byte < bytes; byte++) at.to[byte] = at.from[byte];
}

// Calls use(addresses of a row, skipped bytes, bytes) for the rows that make up bytes [begin, end) of the result.
template <class Use>
void for_each_row(Addresses first, const CopyPlan &plan, int64_t row_bytes, int64_t begin, int64_t end, Use &&use) {
  const int outer = plan.rank - 1;
  const CopyAxis next = outer > 0 ? plan.axes[outer - 1] : CopyAxis{1, 0, 0};
  for (int64_t row = begin / row_bytes, skip = begin % row_bytes; begin < end;) {
    Addresses at = part_at(first, plan, outer, row);
    for (int64_t left = next.size - row % next.size; left > 0 && begin < end; left--, row++, skip = 0) {
      const int64_t bytes = std::min(end - begin, row_bytes - skip);
      use(at, skip, bytes);
      at.move(next, 1);
      begin += bytes;
    }
  }
}

void copy_rows(Addresses first, const CopyPlan &plan, int64_t row_bytes, bool is_streamed, int64_t begin, int64_t end) {
  for_each_row(first, plan, row_bytes, begin, end, [&](const Addresses &at, int64_t skip, int64_t bytes) {
    if (is_streamed) ORCHARD_ISA::stream_row(at.from + skip, at.to + skip, bytes);
    else copy_row({at.from + skip, at.to + skip}, bytes);
  });
  if (is_streamed) streams().finish();
}

void run_rows(Addresses first, const CopyPlan &plan, int64_t size) {
  const int64_t row_bytes = plan.axes[plan.rank - 1].size * size, bytes = count_parts(plan, plan.rank) * size;
  const bool streamed = is_streamed(bytes) && row_bytes >= shortest_streamed_row;
  // rows that fit in the caches are copied several times as fast
  const int64_t most = bytes <= cached_bytes ? 2 * task_bytes : task_bytes;
  parallel_for(bytes, equal_pieces(bytes, most, page, threads_at_hand()),
               [&](int64_t begin, int64_t end) { copy_rows(first, plan, row_bytes, streamed, begin, end); });
}

// Copies rows whose elements are in descending order in the source.
template <class T> void reverse_rows(Addresses first, const CopyPlan &plan) {
  constexpr int64_t size = sizeof(T);
  const int64_t row_bytes = plan.axes[plan.rank - 1].size * size;
  parallel_for(count_parts(plan, plan.rank) * size, task_bytes, [&](int64_t begin, int64_t end) {
    for_each_row(first, plan, row_bytes, begin, end, [](const Addresses &at, int64_t skip, int64_t bytes) {
      const T *from = reinterpret_cast<const T *>(at.from - skip);
      T *__restrict to = reinterpret_cast<T *>(at.to + skip);
      for (int64_t i = 0; i < bytes / size; i++) to[i] = from[-i];
    });
  });
}

int index_of_size(int64_t size) { return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3; }

void run_filling(Addresses first, const CopyPlan &plan, int64_t size) {
  const int outer = plan.rank - 1;
  const CopyAxis next = plan.axes[outer - 1];
  const int64_t length = plan.axes[outer].size;
  const auto repeat = creations().repeat[index_of_size(size)];
  parallel_for(count_parts(plan, outer), std::max<int64_t>(1, task_bytes / (length * size)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end;) {
                   const Addresses at = part_at(first, plan, outer, row);
                   const int64_t rows = std::min(end - row, next.size - row % next.size);
                   repeat({at.from, next.from / size, at.to, next.to / size, rows, length});
                   row += rows;
                 }
               });
}

// Calls use(T{}) for an unsigned integer type T of `size` bytes.
template <class Use> void with_size(int64_t size, Use &&use) {
  if (size == 1) use(uint8_t{});
  else if (size == 2) use(uint16_t{});
  else if (size == 4) use(uint32_t{});
  else use(uint64_t{});
}

// Returns the length of a block along an axis.
int64_t block_side(const CopyAxis &axis, const CopyAxis &other, int64_t side, bool has_few) {
  if (!has_few) return side;
  return axis.size <= few && axis.size <= other.size ? axis.size : side * side / few;
}

bool has_whole_lines(Addresses first, const CopyPlan &plan) {
  return reinterpret_cast<uintptr_t>(first.to) % stream_line == 0 &&
         std::all_of(plan.axes, plan.axes + plan.rank - 1,
                     [](const CopyAxis &axis) { return axis.to % stream_line == 0; });
}

void run_transposed(Addresses first, const CopyPlan &plan, int64_t size) {
  const Transposes &table = orchard::transposes();
  const int at_size = index_of_size(size), outer = plan.rank - 2;
  const int64_t side = table.side[at_size];
  const CopyAxis columns = plan.axes[outer], rows = plan.axes[outer + 1];
  const bool has_few = std::min(columns.size, rows.size) <= few;
  const int64_t wide = block_side(columns, rows, side, has_few), high = block_side(rows, columns, side, has_few);
  const auto transpose = has_few ? table.few[at_size] : table.block[at_size];
  const int64_t across = (columns.size - 1) / wide + 1, down = (rows.size - 1) / high + 1;
  const bool streamed = is_streamed(count_parts(plan, plan.rank) * size) && has_whole_lines(first, plan);
  const int64_t grain =
      std::max<int64_t>(1, task_bytes / (std::min(wide, columns.size) * std::min(high, rows.size) * size));
  parallel_for(count_parts(plan, outer) * across * down, grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block++) {
      Addresses at = part_at(first, plan, outer, block / (across * down));
      const int64_t column = block / down % across * wide, row = block % down * high;
      at.move(columns, column);
      at.move(rows, row);
      transpose({at.from,
                 at.to,
                 {std::min(wide, columns.size - column), columns.from, columns.to},
                 {std::min(high, rows.size - row), rows.from, rows.to},
                 streamed});
    }
    if (streamed) streams().finish();
  });
}

// Copies elements without conversion. Returns false, and copies nothing, if no plan exists.
bool copy_planned(const Nest<2> &nest, int64_t size, const Addresses &first) {
  CopyPlan plan;
  if (!find_plan(nest, size, plan)) return false;
  if (plan.is_filling) run_filling(first, plan, size);
  else if (is_reversed(plan, size))
    with_size(size, [&](auto element) { reverse_rows<decltype(element)>(first, plan); });
  else if (plan.is_rows) run_rows(first, plan, size);
  else run_transposed(first, plan, size);
  return true;
}

// Copies a call's operands without conversion. Returns false, and copies nothing, if no plan exists.
bool copy_elements(const CopyBlock &block, int64_t size, const Operands &operands) {
  const Nest<2> nest(block.loop.nest);
  if (nest.count() == 0) return false;
  const int64_t from_offset = block.loop.offsets[0], to_offset = block.loop.offsets[1];
  return copy_planned(
      nest, size,
      {operands.input(0, size, from_offset, nest.extent(0)), operands.result(1, size, to_offset, nest.extent(1))});
}

// Copies elements one at a time, for nests without a plan.
template <class T> void copy_singly(const Nest<2> &nest, const T *from, T *to) {
  const int64_t from_stride = nest.run_stride(0), to_stride = nest.run_stride(1);
  parallel_for(nest.count(), task_bytes / int64_t(sizeof(T)), [&](int64_t begin, int64_t end) {
    for_each_run(nest, begin, end, [&](const int64_t (&offsets)[2], int64_t, int64_t length) {
      const T *source = from + offsets[0];
      T *target = to + offsets[1];
      if (from_stride == 0 && to_stride == 1)
        creations().repeat[index_of_size(sizeof(T))]({source, 0, target, 0, 1, length});
      else
        for (int64_t i = 0; i < length; i++) target[i * to_stride] = source[i * from_stride];
    });
  });
}

// out[i] = (dtype of out) source[i], converted as by the function "convert".
void copy(const CopyBlock &block, Operands operands) {
  const DType from = block.from, to = block.to;
  const int64_t sizes[] = {dtype_sizes[static_cast<int>(from)], dtype_sizes[static_cast<int>(to)]};
  if (from == to && copy_elements(block, sizes[0], operands)) return;
  Loop(block.loop, sizes, operands).run(conversions().rows[static_cast<int>(from)][static_cast<int>(to)]);
}

ORCHARD_FUNCTION("copy", copy, CopyBlock, 2)

} // namespace

void orchard::copy_nest(const Nest<2> &nest, int64_t size, const char *from, char *to) {
  if (nest.count() == 0 || copy_planned(nest, size, {from, to})) return;
  with_size(size, [&](auto element) {
    using T = decltype(element);
    copy_singly(nest, reinterpret_cast<const T *>(from), reinterpret_cast<T *>(to));
  });
}
