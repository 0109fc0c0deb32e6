// The functions "quantile" and "mode".
#include "order.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "network.h"
#include "records.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::sorting::order_elements;

ORCHARD_EXPORT_NAMES(QuantileInterpolation)

// Selects elements of a slice by their position in ascending order.
template <class C> class Order {
public:
  Order(C *numbers, int64_t count) : numbers_(numbers), count_(count) {}

  C at(int64_t position) {
    std::nth_element(numbers_, numbers_ + position, numbers_ + count_);
    return numbers_[position];
  }
  // The element after that of the last call of `at`.
  C after(int64_t position) const {
    return position + 1 < count_ ? *std::min_element(numbers_ + position + 1, numbers_ + count_) : numbers_[position];
  }

private:
  C *numbers_;
  int64_t count_;
};

// The same for a slice of a block that a network has sorted.
template <class T> struct SortedSlice {
  const T *x;
  int64_t along;
  const int32_t *indices; // `pitch` apart
  int64_t pitch, count;

  Compute<T> at(int64_t position) const { return load(x[indices[position * pitch] * along]); }
  Compute<T> after(int64_t position) const { return at(std::min(position + 1, count - 1)); }
};

// Interpolates as lerp does: from the nearer element.
template <class C> C between(C below, C above, C weight) {
  return weight < C(0.5) ? below + weight * (above - below) : above - (C(1) - weight) * (above - below);
}

template <class C, class Order>
C quantile_of(Order &&order, int64_t count, C chance, QuantileInterpolation interpolation) {
  if (count == 0) return std::numeric_limits<C>::quiet_NaN();
  const C place = C(count - 1) * chance, low = std::floor(place), high = std::ceil(place);
  const auto position = [count](C value) { return std::clamp<int64_t>(int64_t(value), 0, count - 1); };
  switch (interpolation) {
  case QuantileInterpolation::lower: return order.at(position(low));
  case QuantileInterpolation::higher: return order.at(position(high));
  case QuantileInterpolation::nearest: return order.at(position(std::nearbyint(place)));
  case QuantileInterpolation::linear:
  case QuantileInterpolation::midpoint:
  case QuantileInterpolation::count: break;
  }
  const C below = order.at(position(low)), above = high > low ? order.after(position(low)) : below;
  return between(below, above, interpolation == QuantileInterpolation::midpoint ? C(0.5) : place - low);
}

template <class T> struct Quantiles {
  Slices<1> slices;
  QuantileInterpolation interpolation;
  int64_t quantiles, count; // of slices
  bool skips_nan;
  const T *x;
  const double *chances;
  T *out;

  // Writes the quantiles of a slice with this many numbers.
  template <class Order> void write(int64_t slice, Order &&order, int64_t numbers) const {
    using C = Compute<T>;
    const bool is_number = skips_nan || numbers == slices.length;
    for (int64_t at = 0; at < quantiles; at++)
      out[at * count + slice] = store<T>(is_number ? quantile_of(order, numbers, C(chances[at]), interpolation)
                                                   : std::numeric_limits<C>::quiet_NaN());
  }

  void write_block(DType dtype, int64_t begin, int64_t in_block) const {
    int64_t starts[1][most_short_slices];
    NetworkOrders orders;
    find_starts(slices.nest, begin, in_block, starts);
    const ShortSlices block{slices.length, in_block, slices.along[0], starts[0]};
    orchard::networks().order[static_cast<int>(dtype)]({reinterpret_cast<const char *>(x), block, false}, orders);
    for (int64_t j = 0; j < in_block; j++) {
      const int64_t numbers = orders.numbers[j];
      write(begin + j, SortedSlice<T>{x + starts[0][j], slices.along[0], orders.index + j, orders.pitch, numbers},
            numbers);
    }
  }

  void write_slice(int64_t slice, Compute<T> *numbers) const {
    int64_t offsets[1], known = 0;
    slices.find_offsets(slice, offsets);
    for (int64_t i = 0; i < slices.length; i++) {
      const Compute<T> value = load(x[offsets[0] + i * slices.along[0]]);
      numbers[known] = value;
      known += value == value ? 1 : 0;
    }
    write(slice, Order<Compute<T>>(numbers, known), known);
  }
};

template <class T> void quantiles_of(const QuantileBlock &block, const Operands &operands) {
  const Slices<1> slices(block.slices);
  const int64_t length = slices.length, count = slices.count(), quantiles = block.quantiles;
  const T *x = operands.inputs<T>(0, slices.offsets[0], slices.extent(0));
  const double *chances = operands.inputs<double>(1, 0, Extent(quantiles));
  T *out = operands.results<T>(2, 0, Extent(count).along(quantiles, count));
  for (int64_t at = 0; at < quantiles; at++)
    if (!(chances[at] >= 0 && chances[at] <= 1)) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected quantiles from 0 to 1");
  if (slices.is_empty() || quantiles == 0) return;
  const Quantiles<T> all{slices, block.interpolation, quantiles, count, block.skips_nan, x, chances, out};
  if (are_for_network(length, count))
    return for_network_blocks(length, count,
                              [&](int64_t begin, int64_t in_block) { all.write_block(block.dtype, begin, in_block); });
  const int64_t in_task = std::max<int64_t>(1, order_elements / length);
  ScratchSlots<Compute<T>> slots((count + in_task - 1) / in_task, length);
  parallel_for(count, in_task, [&](int64_t begin, int64_t end) {
    slots.with([&](Compute<T> *numbers) {
      for (int64_t slice = begin; slice < end; slice++) all.write_slice(slice, numbers);
    });
  });
}

void quantile(const QuantileBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  if (dtype == DType::float64) quantiles_of<double>(block, operands);
  else if (dtype == DType::float32) quantiles_of<float>(block, operands);
  else if (dtype == DType::float16) quantiles_of<Float16>(block, operands);
  else if (dtype == DType::bfloat16) quantiles_of<BFloat16>(block, operands);
  else fail(ORCHARD_CPU_UNSUPPORTED, "expected floats");
}

// Returns the last index of the first longest run of equal keys. The last runs are of NaN, which equals nothing.
template <class R> int64_t mode_of(const R *sorted, int64_t numbers) {
  int64_t longest = 1, end = 0, begin = 0;
  for (int64_t i = 1; i < numbers; i++) {
    begin = sorted[i].key() == sorted[i - 1].key() ? begin : i;
    if (i - begin + 1 > longest) longest = i - begin + 1, end = i;
  }
  return sorted[end].index();
}

template <class T> void write_modes(const Slices<1> &slices, const T *x, int64_t *indices) {
  const int64_t length = slices.length, count = slices.count(), along = slices.along[0];
  const int64_t in_task = std::max<int64_t>(1, order_elements / length);
  ScratchSlots<Record<T>> slots((count + in_task - 1) / in_task, scratch_product({length, 2}));
  parallel_for(count, in_task, [&](int64_t begin, int64_t end) {
    slots.with([&](Record<T> *records) {
      for (int64_t slice = begin; slice < end; slice++) {
        const T *from = x + slices.nest.offset(0, slice);
        int64_t numbers = 0;
        for (int64_t i = 0; i < length; i++) numbers += load(from[i * along]) == load(from[i * along]) ? 1 : 0;
        with_sorted(from, along, length, false, length, records,
                    [&](const auto *sorted) { indices[slice] = mode_of(sorted, numbers); });
      }
    });
  });
}

void mode(const ModeBlock &block, Operands operands) {
  const Slices<1> slices(block.slices);
  const DType dtype = block.dtype;
  const int64_t length = slices.length, count = slices.count();
  const char *x = operands.input(0, dtype, slices.offsets[0], slices.extent(0));
  int64_t *indices = operands.results<int64_t>(1, 0, Extent(count));
  if (slices.is_empty()) return;
  check_length(length);
  if (are_for_network(length, count))
    return for_network_blocks(length, count, [&](int64_t begin, int64_t in_block) {
      int64_t starts[1][most_short_slices];
      int32_t found[most_short_slices];
      find_starts(slices.nest, begin, in_block, starts);
      orchard::networks().mode[static_cast<int>(dtype)](
          {x, ShortSlices{length, in_block, slices.along[0], starts[0]}, false}, found);
      std::copy_n(found, in_block, indices + begin);
    });
  with_storage(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    write_modes(slices, reinterpret_cast<const T *>(x), indices);
  });
}

ORCHARD_FUNCTION("quantile", quantile, QuantileBlock, 3)
ORCHARD_FUNCTION("mode", mode, ModeBlock, 2)

} // namespace
