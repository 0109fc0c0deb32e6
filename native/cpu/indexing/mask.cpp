// The functions "maskStarts", "nonzero", "maskedSelect" and "maskedScatter". Another thread may change the mask between
// the passes: a block then writes no further than to its end, and the rest of the result is undefined.
#include "mask.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <cstring>
#include <type_traits>
#include <utility>

using namespace orchard;

namespace {

using tuning::indexing::mask_piece;

int64_t block_size_of(int64_t size) {
  if (size < 1) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected blocks of at least one element");
  return size;
}

int64_t count_blocks(int64_t elements, int64_t size) { return elements == 0 ? 0 : (elements - 1) / size + 1; }

// The part of the result that a block writes.
class Places {
public:
  Places(const Operands &operands, int operand, int64_t elements, int64_t block_size, int64_t selected)
      : size_(block_size_of(block_size)), selected_(selected),
        starts_(operands.inputs<int64_t>(operand, 0, Extent(count_blocks(elements, size_) + 1))) {}

  int64_t size() const { return size_; }
  int64_t begin(int64_t element) const { return start(element / size_); }
  int64_t end(int64_t element) const { return std::max(begin(element), start(element / size_ + 1)); }

private:
  int64_t start(int64_t block) const { return std::clamp<int64_t>(starts_[block], 0, selected_); }

  int64_t size_, selected_;
  const int64_t *starts_;
};

// Calls use(offsets, first, length, flags, set) for pieces of the elements [begin, end), in order: `flags` says which
// elements of an operand are not zero, and `set` is their number.
template <int operands, class Use>
void for_each_piece(const Nest<operands> &nest, int operand, DType dtype, const char *mask, int64_t begin, int64_t end,
                    Use &&use) {
  const auto find_flags = mask_kernels().flags[static_cast<int>(dtype)];
  uint8_t flags[mask_piece];
  for_each_run(nest, begin, end, [&](const int64_t (&offsets)[operands], int64_t first, int64_t length) {
    for (int64_t done = 0; done < length; done += mask_piece) {
      const int64_t part = std::min(mask_piece, length - done), stride = nest.run_stride(operand);
      int64_t at[operands];
      for (int each = 0; each < operands; each++) at[each] = offsets[each] + done * nest.run_stride(each);
      const int64_t set = find_flags(mask + at[operand] * dtype_sizes[static_cast<int>(dtype)], stride, part, flags);
      use(at, first + done, part, static_cast<const uint8_t *>(flags), set);
    }
  });
}

void mask_starts(const MaskStartsBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const Nest<1> nest = block.nest;
  const int64_t size = block_size_of(block.block_size), count = nest.count(), blocks = count_blocks(count, size);
  const char *x = operands.input(0, dtype, block.offset, nest.extent(0));
  int64_t *starts = operands.results<int64_t>(1, 0, Extent(blocks + 1));
  parallel_for(count, size, [&](int64_t begin, int64_t end) {
    int64_t total = 0;
    for_each_piece(nest, 0, dtype, x, begin, end,
                   [&](const int64_t (&)[1], int64_t, int64_t, const uint8_t *, int64_t set) { total += set; });
    starts[begin / size] = total;
  });
  int64_t before = 0;
  for (int64_t each = 0; each < blocks; each++) before += std::exchange(starts[each], before);
  starts[blocks] = before;
}

// Writes coordinates of ascending row-major positions. Most follow their predecessor on the last axis, without a
// division.
class Coordinates {
public:
  Coordinates(const NonzeroBlock &block, int64_t elements) {
    const int64_t axes = block.rank;
    if (axes < 1 || axes > max_rank) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected coordinates of 1 to 8 axes");
    rank_ = static_cast<int>(axes);
    Extent all;
    for (int axis = 0; axis < rank_; axis++) all.along(sizes_[axis] = block.sizes[axis], 0);
    if (!all.is_possible() || all.count() != elements)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a shape with the elements of x");
  }

  int rank() const { return rank_; }

  // Writes `count` positions. `axes` is the rank, as a constant for the ranks that most tensors have.
  template <class Axes> void write(Axes axes, const int64_t *positions, int64_t count, int64_t *to) {
    const int last = axes - 1;
    for (int64_t i = 0; i < count; i++, to += axes) {
      at_[last] += positions[i] - before_;
      before_ = positions[i];
      for (int axis = last; axis > 0 && at_[axis] >= sizes_[axis]; axis--) {
        at_[axis - 1] += at_[axis] / sizes_[axis];
        at_[axis] %= sizes_[axis];
      }
      for (int axis = 0; axis < axes; axis++) to[axis] = at_[axis];
    }
  }

  void write(const int64_t *positions, int64_t count, int64_t *to) {
    switch (rank_) {
    case 2: return write(std::integral_constant<int, 2>(), positions, count, to);
    case 3: return write(std::integral_constant<int, 3>(), positions, count, to);
    case 4: return write(std::integral_constant<int, 4>(), positions, count, to);
    default: return write(rank_, positions, count, to);
    }
  }

private:
  int rank_;
  int64_t sizes_[max_rank], at_[max_rank] = {}, before_ = 0;
};

// out [selected, rank] = the coordinates of the elements that are not zero, in row-major order.
void nonzero(const NonzeroBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const Nest<1> nest = block.nest;
  const Coordinates coordinates(block, nest.count());
  const Places places(operands, 1, nest.count(), block.block_size, block.selected);
  const char *x = operands.input(0, dtype, block.offset, nest.extent(0));
  const int rank = coordinates.rank();
  int64_t *out = operands.results<int64_t>(2, 0, Extent(rank).along(block.selected, rank));
  parallel_for(nest.count(), places.size(), [&](int64_t begin, int64_t end) {
    Coordinates each = coordinates;
    int64_t place = places.begin(begin);
    const int64_t last = places.end(begin);
    for_each_piece(nest, 0, dtype, x, begin, end,
                   [&](const int64_t (&)[1], int64_t first, int64_t length, const uint8_t *flags, int64_t set) {
                     if (set == 0) return;
                     int64_t positions[mask_piece + 1];
                     int64_t found = 0;
                     for (int64_t i = 0; i < length; i++) {
                       positions[found] = first + i; // the next element replaces it unless this one is set
                       found += flags[i];
                     }
                     found = std::min(found, last - place);
                     if (rank == 1) std::memcpy(out + place, positions, static_cast<size_t>(found) * sizeof *out);
                     else each.write(positions, found, out + place * rank);
                     place += found;
                   });
  });
}

template <class Use> void with_size(DType dtype, Use &&use) {
  switch (dtype_sizes[static_cast<int>(dtype)]) {
  case 1: return use(uint8_t{});
  case 2: return use(uint16_t{});
  case 4: return use(uint32_t{});
  default: return use(uint64_t{});
  }
}

// out = the elements of x where the mask is true, in row-major order.
void masked_select(const MaskedSelectBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const Nest<2> nest = block.nest;
  const Places places(operands, 2, nest.count(), block.block_size, block.selected);
  const char *from = operands.input(0, dtype, block.offsets[0], nest.extent(0));
  const char *mask = operands.input(1, DType::boolean, block.offsets[1], nest.extent(1));
  char *to = operands.result(3, dtype, 0, Extent(block.selected));
  with_size(dtype, [&](auto element) {
    using T = decltype(element);
    const int64_t stride = nest.run_stride(0);
    parallel_for(nest.count(), places.size(), [&](int64_t begin, int64_t end) {
      T *out = reinterpret_cast<T *>(to) + places.begin(begin), *last = reinterpret_cast<T *>(to) + places.end(begin);
      for_each_piece(nest, 1, DType::boolean, mask, begin, end,
                     [&](const int64_t (&at)[2], int64_t, int64_t length, const uint8_t *flags, int64_t set) {
                       if (set == 0) return;
                       const T *x = reinterpret_cast<const T *>(from) + at[0];
                       T chosen[mask_piece + 1];
                       int64_t found = 0;
                       for (int64_t i = 0; i < length; i++) {
                         chosen[found] = x[i * stride];
                         found += flags[i];
                       }
                       found = std::min<int64_t>(found, last - out);
                       std::memcpy(out, chosen, static_cast<size_t>(found) * sizeof(T));
                       out += found;
                     });
    });
  });
}

// out = x, with the first elements of the source, in order, where the mask is true.
void masked_scatter(const MaskedScatterBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const Nest<3> nest = block.nest;
  const int64_t selected = block.selected;
  const Places places(operands, 3, nest.count(), block.block_size, selected);
  const char *from = operands.input(0, dtype, block.offsets[0], nest.extent(0));
  const char *mask = operands.input(1, DType::boolean, block.offsets[1], nest.extent(1));
  const char *values = operands.input(2, dtype, block.source_offset, Extent(selected));
  char *to = operands.result(4, dtype, block.offsets[2], nest.extent(2));
  with_size(dtype, [&](auto element) {
    using T = decltype(element);
    const int64_t stride = nest.run_stride(0), out_stride = nest.run_stride(2);
    parallel_for(nest.count(), places.size(), [&](int64_t begin, int64_t end) {
      int64_t place = places.begin(begin);
      const int64_t last = places.end(begin);
      const T *source = reinterpret_cast<const T *>(values);
      for_each_piece(nest, 1, DType::boolean, mask, begin, end,
                     [&](const int64_t (&at)[3], int64_t, int64_t length, const uint8_t *flags, int64_t set) {
                       const T *x = reinterpret_cast<const T *>(from) + at[0];
                       T *out = reinterpret_cast<T *>(to) + at[2];
                       if (set == 0 || place + set > last) {
                         for (int64_t i = 0; i < length; i++) out[i * out_stride] = x[i * stride];
                         return;
                       }
                       for (int64_t i = 0; i < length; i++) { // bits instead of a branch, which is often mispredicted
                         const T is_set = T(0) - T(flags[i]), value = source[std::min(place, last - 1)];
                         out[i * out_stride] = T((value & is_set) | (x[i * stride] & T(~is_set)));
                         place += flags[i];
                       }
                     });
    });
  });
}

ORCHARD_FUNCTION("maskStarts", mask_starts, MaskStartsBlock, 2)
ORCHARD_FUNCTION("nonzero", nonzero, NonzeroBlock, 3)
ORCHARD_FUNCTION("maskedSelect", masked_select, MaskedSelectBlock, 4)
ORCHARD_FUNCTION("maskedScatter", masked_scatter, MaskedScatterBlock, 5)

} // namespace
