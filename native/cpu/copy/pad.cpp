// The functions "pad" and "padGradient".
#include "pad.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <cstring>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::copy::padded_elements;

ORCHARD_EXPORT_NAMES(PadMode)

constexpr int64_t nowhere = -1;

// An axis of `size` elements, with its border.
struct Axis {
  int64_t size, stride, before, after;

  int64_t total() const { return before + size + after; }
  bool has_border() const { return before > 0 || after > 0; }

  // Returns the element at position `at` of the padded axis; `nowhere` for a constant.
  int64_t source(PadMode mode, int64_t at) const {
    const int64_t index = at - before;
    if (index >= 0 && index < size) return index;
    switch (mode) {
    case PadMode::replicate: return index < 0 ? 0 : size - 1;
    case PadMode::reflect: return index < 0 ? -index : 2 * (size - 1) - index;
    case PadMode::circular: return index < 0 ? index + size : index - size;
    case PadMode::constant:
    case PadMode::count: break;
    }
    return nowhere;
  }
};

struct Axes {
  PadMode mode;
  int rank;
  Axis axes[max_rank];

  // `may_rotate`: whether axes may be rotated, that is, get as many circular elements before them as they lose after.
  template <class Block> explicit Axes(const Block &block, bool may_rotate = false) : mode(block.mode) {
    const int64_t given = block.rank;
    if (given < 1 || given > max_rank)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a rank of 1 to 8, got " + std::to_string(given));
    rank = static_cast<int>(given);
    for (int axis = 0; axis < rank; axis++) {
      axes[axis] = {block.sizes[axis], block.strides[axis], block.before[axis], block.after[axis]};
      check(axes[axis], may_rotate);
    }
  }

  // The elements of the padded tensor, dense.
  Extent padded() const {
    Extent all;
    int64_t step = 1;
    for (int axis = rank - 1; axis >= 0; step *= axes[axis--].total()) all.along(axes[axis].total(), step);
    return all;
  }
  // The elements without the border, dense.
  Extent inside() const {
    Extent all;
    int64_t step = 1;
    for (int axis = rank - 1; axis >= 0; step *= axes[axis--].size) all.along(axes[axis].size, step);
    return all;
  }
  Extent strided(bool is_padded) const {
    Extent all;
    for (int axis = 0; axis < rank; axis++)
      all.along(is_padded ? axes[axis].total() : axes[axis].size, axes[axis].stride);
    return all;
  }

private:
  void check(const Axis &axis, bool may_rotate) const {
    if (may_rotate && mode == PadMode::circular && axis.before > 0 && axis.after == -axis.before &&
        axis.before <= axis.size)
      return;
    constexpr int64_t most = int64_t(1) << 40; // products of the sizes are checked by extents
    const int64_t border = std::max(axis.before, axis.after);
    bool fits = axis.size >= 0 && axis.size < most && std::min(axis.before, axis.after) >= 0 && border < most;
    if (fits && border > 0 && mode != PadMode::constant)
      fits = axis.size > 0 && (mode == PadMode::replicate || border <= axis.size - (mode == PadMode::reflect ? 1 : 0));
    if (!fits)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "can't add " + std::to_string(axis.before) + " and " +
                                             std::to_string(axis.after) + " elements to an axis of " +
                                             std::to_string(axis.size));
  }
};

// Merges axes without a border into the axis before them, where both are dense. The elements of a border then become
// whole blocks, so only the modes `constant` and `circular` can merge into an axis with a border.
void merge(Axes &all) {
  int last = 0;
  const bool keeps_blocks = all.mode == PadMode::constant || all.mode == PadMode::circular;
  for (int axis = 1; axis < all.rank; axis++) {
    Axis &outer = all.axes[last];
    const Axis inner = all.axes[axis];
    const bool merges =
        !inner.has_border() && outer.stride == inner.stride * inner.size && (keeps_blocks || !outer.has_border());
    if (merges) outer = {outer.size * inner.size, inner.stride, outer.before * inner.size, outer.after * inner.size};
    else all.axes[++last] = inner;
  }
  all.rank = last + 1;
}

// For each axis but the last, and each position along it: the offset of the source element (its index times the
// stride), or `is_constant` if there is none.
constexpr int64_t is_constant = INT64_MIN;

class Sources {
public:
  explicit Sources(const Axes &all) : all_(all), offsets_(count(all)) {
    int64_t *to = offsets_.data();
    for (int axis = 0; axis < all.rank - 1; axis++) {
      first_[axis] = to;
      for (int64_t at = 0; at < all.axes[axis].total(); at++) {
        const int64_t source = all.axes[axis].source(all.mode, at);
        *to++ = source == nowhere ? is_constant : source * all.axes[axis].stride;
      }
    }
  }

  // Rows of the result in row-major order, beginning with some row. Only the first row needs divisions, since they
  // would take longer than copying a short row.
  class Walk {
  public:
    Walk(const Sources &sources, int64_t row) : sources_(sources) {
      for (int axis = sources.all_.rank - 2; axis >= 0; axis--) {
        const int64_t total = sources.all_.axes[axis].total();
        at_[axis] = row % total;
        row /= total;
      }
      add_up(0);
    }

    // The offset of the row's elements in x, or `is_constant`.
    int64_t offset() const { return offsets_[sources_.all_.rank - 1]; }

    // Calls use(offset) for at most `count` rows that differ along one axis, which need no sums over the other axes,
    // and moves on. Returns the number of rows. For modes without a constant.
    template <class Use> int64_t for_some(int64_t count, Use &&use) {
      const int axis = sources_.all_.rank - 2;
      if (axis < 0) {
        use(offset());
        return 1;
      }
      const int64_t rows = std::min(count, sources_.all_.axes[axis].total() - at_[axis]), base = offsets_[axis];
      const int64_t *parts = sources_.first_[axis] + at_[axis];
      for (int64_t row = 0; row < rows; row++) use(base + parts[row]);
      at_[axis] += rows - 1;
      next();
      return rows;
    }

    void next() {
      int axis = sources_.all_.rank - 2;
      while (axis >= 0 && ++at_[axis] == sources_.all_.axes[axis].total()) at_[axis--] = 0;
      if (axis >= 0) add_up(axis);
    }

  private:
    // offsets_[axis + 1] is the offset along the axes up to this one.
    void add_up(int axis) {
      for (; axis < sources_.all_.rank - 1; axis++) {
        const int64_t before = offsets_[axis], part = sources_.first_[axis][at_[axis]];
        offsets_[axis + 1] = before == is_constant || part == is_constant ? is_constant : before + part;
      }
    }

    const Sources &sources_;
    int64_t at_[max_rank], offsets_[max_rank] = {};
  };

private:
  static int64_t count(const Axes &all) {
    int64_t total = 0;
    for (int axis = 0; axis < all.rank - 1; axis++) total += all.axes[axis].total();
    return total;
  }

  const Axes &all_;
  Scratch<int64_t> offsets_;
  const int64_t *first_[max_rank];
};

// Copies adjacent elements. Short parts are copied inline, 16 bytes at a time; the last step may overlap the one
// before.
template <class T> void copy_adjacent(const T *from, T *to, int64_t count) {
  constexpr int64_t step = 16 / int64_t(sizeof(T)), short_part = tuning::copy::short_part_bytes / int64_t(sizeof(T));
  if (count > short_part) return void(std::memcpy(to, from, size_t(count) * sizeof(T)));
  if (count < step) {
    for (int64_t i = 0; i < count; i++) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + step <= count; i += step) std::memcpy(to + i, from + i, 16);
  std::memcpy(to + count - step, from + count - step, 16);
}

template <class T> void copy_part(const T *from, int64_t stride, T *to, int64_t count) {
  if (stride == 1) return copy_adjacent(from, to, count);
  for (int64_t i = 0; i < count; i++) to[i] = from[i * stride];
}

// Writes positions [begin, end) of a row of the result. x is the row's first element without the border.
template <class T>
void write_row(const Axis &axis, PadMode mode, const T *x, T value, T *row, int64_t begin, int64_t end) {
  const auto border = [&](int64_t from, int64_t to) {
    if (mode == PadMode::constant) std::fill(row + from, row + std::max(from, to), value);
    else if (mode == PadMode::circular && from < to)
      copy_part(x + axis.source(mode, from) * axis.stride, axis.stride, row + from, to - from);
    else
      for (int64_t at = from; at < to; at++) row[at] = x[axis.source(mode, at) * axis.stride];
  };
  const int64_t inside = axis.before + axis.size;
  border(begin, std::min(end, axis.before));
  const int64_t first = std::max(begin, axis.before), last = std::min(end, inside);
  if (first < last) copy_part(x + (first - axis.before) * axis.stride, axis.stride, row + first, last - first);
  border(std::max(begin, inside), end);
}

// The elements of x in each row of the result, for rows with a short border of copies.
class RowSources {
public:
  RowSources(const Axis &axis, PadMode mode)
      : axis_(axis), inside_(std::min(axis.size, axis.total() - axis.before)),
        is_used_(mode != PadMode::constant && axis.before <= most && axis.after <= most) {
    if (!is_used_) return;
    for (int64_t at = 0; at < axis.before; at++) before_[at] = axis.source(mode, at) * axis.stride;
    for (int64_t at = 0; at < axis.after; at++)
      after_[at] = axis.source(mode, axis.before + axis.size + at) * axis.stride;
  }

  bool are_used() const { return is_used_; }
  template <class T> void copy(const T *x, T *row) const {
    for (int64_t at = 0; at < axis_.before; at++) row[at] = x[before_[at]];
    row += axis_.before;
    copy_part(x, axis_.stride, row, inside_);
    row += inside_;
    for (int64_t at = 0; at < axis_.after; at++) row[at] = x[after_[at]];
  }

private:
  static constexpr int64_t most = tuning::copy::listed_places;
  const Axis axis_;
  int64_t inside_; // elements between the borders: fewer than the axis has, if it is rotated
  bool is_used_;
  int64_t before_[most], after_[most];
};

template <class T> void pad_elements(const PadBlock &block, const Operands &operands) {
  Axes all(block, true);
  const Extent padded = all.padded();
  T *out = operands.results<T>(2, 0, padded);
  const bool is_filled = all.mode == PadMode::constant;
  const T value = is_filled ? *operands.inputs<T>(1, block.value_offset, Extent()) : T{};
  const T *x = operands.inputs<T>(0, block.offset, all.strided(false));
  if (padded.is_empty()) return;
  merge(all);
  const Sources sources(all);
  const Axis &last = all.axes[all.rank - 1];
  const int64_t length = last.total(), pieces = (length - 1) / padded_elements + 1;
  const int64_t piece = (length - 1) / pieces + 1, rows = padded.count() / length;
  const RowSources row_sources(last, all.mode);
  parallel_for(rows * pieces, std::max<int64_t>(1, padded_elements / piece), [&](int64_t begin, int64_t end) {
    int64_t row = begin / pieces, part = begin % pieces;
    Sources::Walk walk(sources, row);
    if (pieces == 1 && row_sources.are_used()) {
      T *at = out + begin * length;
      while (row < end)
        row += walk.for_some(end - row, [&](int64_t offset) {
          row_sources.copy(x + offset, at);
          at += length;
        });
      return;
    }
    for (int64_t task = begin; task < end; task++) {
      const int64_t from = part * piece, to = std::min(from + piece, length), offset = walk.offset();
      T *at = out + row * length;
      if (offset == is_constant) std::fill(at + from, at + std::max(from, to), value);
      else write_row(last, all.mode, x + offset, value, at, from, to);
      if (++part < pieces) continue;
      part = 0;
      row++;
      walk.next();
    }
  });
}

// out = x with a border. The second operand is the constant's value, for that mode only.
void pad(const PadBlock &block, Operands operands) {
  switch (dtype_sizes[static_cast<int>(DType(block.dtype))]) {
  case 1: return pad_elements<uint8_t>(block, operands);
  case 2: return pad_elements<uint16_t>(block, operands);
  case 4: return pad_elements<uint32_t>(block, operands);
  default: return pad_elements<uint64_t>(block, operands);
  }
}

// ---------------------------------------------------------------- gradients

struct Range {
  int64_t begin, end;
};

// The positions of the padded axis that copy an element: those in the border before it, its position without the
// border, and those in the border after it.
struct Positions {
  Range before;
  int64_t inside;
  Range after;

  Positions(const Axis &axis, PadMode mode, int64_t element) : inside(axis.before + element) {
    const int64_t end = axis.before + axis.size, total = axis.total();
    const auto within = [](int64_t at, int64_t first, int64_t last) {
      return at >= first && at < last ? Range{at, at + 1} : Range{0, 0};
    };
    if (mode == PadMode::replicate) {
      before = element == 0 ? Range{0, axis.before} : Range{0, 0};
      after = element == axis.size - 1 ? Range{end, total} : Range{0, 0};
    } else if (mode == PadMode::reflect) {
      before = within(axis.before - element, 0, axis.before);
      after = within(axis.before + 2 * (axis.size - 1) - element, end, total);
    } else {
      before = within(inside - axis.size, 0, axis.before);
      after = within(inside + axis.size, end, total);
    }
  }

  bool is_single() const { return before.begin == before.end && after.begin == after.end; }
  // Calls use(position) in ascending order.
  template <class Use> void for_each(Use &&use) const {
    for (int64_t at = before.begin; at < before.end; at++) use(at);
    use(inside);
    for (int64_t at = after.begin; at < after.end; at++) use(at);
  }
};

// The elements of an axis that the border before it copies, and those that the border after it copies.
Range copied_before(const Axis &axis, PadMode mode) {
  if (axis.before == 0) return {0, 0};
  if (mode == PadMode::replicate) return {0, 1};
  return mode == PadMode::reflect ? Range{1, axis.before + 1} : Range{axis.size - axis.before, axis.size};
}
Range copied_after(const Axis &axis, PadMode mode) {
  if (axis.after == 0) return {0, 0};
  if (mode == PadMode::replicate) return {axis.size - 1, axis.size};
  return mode == PadMode::reflect ? Range{axis.size - 1 - axis.after, axis.size - 1} : Range{0, axis.after};
}

// The sum of a row of the result's gradient, for a row without copies of other rows. Sums of copies are in float64 and
// rounded once; adding 0 makes a sum of only −0 a 0, as there.
template <class T> void add_single_row(const Axis &axis, PadMode mode, const T *gradient, T *out) {
  const int64_t stride = axis.stride, size = axis.size;
  const T *inside = gradient + axis.before * stride;
  if (stride == 1)
    for (int64_t i = 0; i < size; i++) out[i] = store<T>(load(inside[i]) + Compute<T>(0));
  else
    for (int64_t i = 0; i < size; i++) out[i] = store<T>(load(inside[i * stride]) + Compute<T>(0));
  for (const Range copied : {copied_before(axis, mode), copied_after(axis, mode)})
    for (int64_t i = copied.begin; i < copied.end; i++) {
      double sum = 0;
      Positions(axis, mode, i).for_each([&](int64_t at) { sum += double(load(gradient[at * stride])); });
      out[i] = store<T>(Compute<T>(sum));
    }
}

// Adds a row of the result's gradient to the sums of the row without the border.
template <class T> void add_row(const Axis &axis, PadMode mode, const T *gradient, double *sums) {
  for (int64_t at = 0; at < axis.before; at++) sums[axis.source(mode, at)] += double(load(gradient[at * axis.stride]));
  const T *inside = gradient + axis.before * axis.stride;
  if (axis.stride == 1)
    for (int64_t i = 0; i < axis.size; i++) sums[i] += double(load(inside[i]));
  else
    for (int64_t i = 0; i < axis.size; i++) sums[i] += double(load(inside[i * axis.stride]));
  for (int64_t at = axis.before + axis.size; at < axis.total(); at++)
    sums[axis.source(mode, at)] += double(load(gradient[at * axis.stride]));
}

// Adds the rows that are copies of the row at these indices, in the order in which a dense gradient stores them.
template <class T> void add_copies(const Axes &all, const int64_t *indices, int axis, const T *gradient, double *sums) {
  const Axis &along = all.axes[axis];
  if (axis == all.rank - 1) return add_row(along, all.mode, gradient, sums);
  Positions(along, all.mode, indices[axis]).for_each([&](int64_t at) {
    add_copies(all, indices, axis + 1, gradient + at * along.stride, sums);
  });
}

template <class T> void add_gradients(const PadGradientBlock &block, const Operands &operands) {
  Axes all(block);
  const Extent inside = all.inside();
  const T *gradient = operands.inputs<T>(0, block.offset, all.strided(true));
  T *out = operands.results<T>(1, 0, inside);
  if (inside.is_empty()) return;
  merge(all);
  const Axis &last = all.axes[all.rank - 1];
  const int64_t length = last.size, rows = inside.count() / length;
  const int64_t grain = std::max<int64_t>(1, padded_elements / length);
  ScratchSlots<double> slots((rows - 1) / grain + 1, all.rank > 1 ? length : 0);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](double *sums) {
      for (int64_t row = begin; row < end; row++) {
        int64_t indices[max_rank], rest = row;
        const T *single = gradient; // the row without the border
        bool is_single = true;
        for (int axis = all.rank - 2; axis >= 0; axis--) {
          const Axis &along = all.axes[axis];
          indices[axis] = rest % along.size;
          rest /= along.size;
          const Positions positions(along, all.mode, indices[axis]);
          single += positions.inside * along.stride;
          is_single = is_single && positions.is_single();
        }
        if (is_single) {
          add_single_row(last, all.mode, single, out + row * length);
          continue;
        }
        std::fill_n(sums, length, 0.0);
        add_copies(all, indices, 0, gradient, sums);
        for (int64_t i = 0; i < length; i++) out[row * length + i] = store<T>(Compute<T>(sums[i]));
      }
    });
  });
}

// out = the sum of the gradients of each element's copies, for modes other than `constant`.
void pad_gradient(const PadGradientBlock &block, Operands operands) {
  if (PadMode(block.mode) == PadMode::constant)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a border of copies, got a constant one");
  switch (DType(block.dtype)) {
  case DType::float64: return add_gradients<double>(block, operands);
  case DType::float32: return add_gradients<float>(block, operands);
  case DType::float16: return add_gradients<Float16>(block, operands);
  case DType::bfloat16: return add_gradients<BFloat16>(block, operands);
  default: fail(ORCHARD_CPU_UNSUPPORTED, "expected a gradient of floats");
  }
}

ORCHARD_FUNCTION("pad", pad, PadBlock, 3)
ORCHARD_FUNCTION("padGradient", pad_gradient, PadGradientBlock, 2)

} // namespace
