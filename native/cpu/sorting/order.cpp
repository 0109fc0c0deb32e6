// The functions "quantile" and "mode".
#include "order.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "entries.h"
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

// Interpolates as lerp does: from the nearer element.
template <class C> C between(C below, C above, C weight) {
  return weight < C(0.5) ? below + weight * (above - below) : above - (C(1) - weight) * (above - below);
}

template <class C> C quantile_of(C *numbers, int64_t count, C chance, QuantileInterpolation interpolation) {
  if (count == 0) return std::numeric_limits<C>::quiet_NaN();
  const C place = C(count - 1) * chance, low = std::floor(place), high = std::ceil(place);
  Order<C> order(numbers, count);
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

template <class T> void quantiles_of(const QuantileBlock &block, const Operands &operands) {
  using C = Compute<T>;
  const Slices<1> slices(block.slices);
  const QuantileInterpolation interpolation = block.interpolation;
  const int64_t length = slices.length, count = slices.count(), quantiles = block.quantiles;
  const bool skips_nan = block.skips_nan;
  const T *x = operands.inputs<T>(0, slices.offsets[0], slices.extent(0));
  const double *chances = operands.inputs<double>(1, 0, Extent(quantiles));
  T *out = operands.results<T>(2, 0, Extent(count).along(quantiles, count));
  for (int64_t at = 0; at < quantiles; at++)
    if (!(chances[at] >= 0 && chances[at] <= 1)) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected quantiles from 0 to 1");
  if (slices.is_empty() || quantiles == 0) return;
  const int64_t in_task = std::max<int64_t>(1, order_elements / length);
  ScratchSlots<C> slots((count + in_task - 1) / in_task, length);
  parallel_for(count, in_task, [&](int64_t begin, int64_t end) {
    slots.with([&](C *numbers) {
      for (int64_t slice = begin; slice < end; slice++) {
        int64_t offsets[1], known = 0;
        slices.find_offsets(slice, offsets);
        for (int64_t i = 0; i < length; i++) {
          const C value = load(x[offsets[0] + i * slices.along[0]]);
          numbers[known] = value;
          known += value == value ? 1 : 0;
        }
        const bool is_number = skips_nan || known == length;
        for (int64_t at = 0; at < quantiles; at++)
          out[at * count + slice] = store<T>(is_number ? quantile_of(numbers, known, C(chances[at]), interpolation)
                                                       : std::numeric_limits<C>::quiet_NaN());
      }
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

// Returns the last index of the first longest run of equal keys. Keys of NaN, which no number has, make no runs.
template <class Entry, class T> int64_t mode_of(const T *x, int64_t stride, int64_t length, Entry *entries) {
  constexpr bool has_nan = std::is_floating_point_v<Compute<T>>;
  const auto nan_key = uint64_t(std::numeric_limits<decltype(sort_key(*x))>::max());
  for (int64_t i = 0; i < length; i++) set(entries[i], uint64_t(sort_key(x[i * stride])), uint64_t(i));
  std::sort(entries, entries + length);
  int64_t longest = 1, end = 0, begin = 0;
  for (int64_t i = 1; i < length; i++) {
    const uint64_t key = key_in(entries[i]);
    const bool is_same = key == key_in(entries[i - 1]) && !(has_nan && key == nan_key);
    begin = is_same ? begin : i;
    if (i - begin + 1 > longest) longest = i - begin + 1, end = i;
  }
  return index_in(entries[end]);
}

void mode(const ModeBlock &block, Operands operands) {
  const Slices<1> slices(block.slices);
  const DType dtype = block.dtype;
  const int64_t length = slices.length, count = slices.count();
  const char *x = operands.input(0, dtype, slices.offsets[0], slices.extent(0));
  int64_t *indices = operands.results<int64_t>(1, 0, Extent(count));
  if (slices.is_empty()) return;
  const int64_t in_task = std::max<int64_t>(1, order_elements / length);
  const bool is_short = dtype_sizes[static_cast<int>(dtype)] < 8 && length <= int64_t(UINT32_MAX);
  ScratchSlots<uint64_t> slots((count + in_task - 1) / in_task, scratch_product({length, is_short ? 1 : 2}));
  parallel_for(count, in_task, [&](int64_t begin, int64_t end) {
    slots.with([&](uint64_t *entries) {
      with_storage(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        for (int64_t slice = begin; slice < end; slice++) {
          int64_t offsets[1];
          slices.find_offsets(slice, offsets);
          const T *from = reinterpret_cast<const T *>(x) + offsets[0];
          indices[slice] = is_short ? mode_of(from, slices.along[0], length, entries)
                                    : mode_of(from, slices.along[0], length, reinterpret_cast<KeyAndIndex *>(entries));
        }
      });
    });
  });
}

ORCHARD_FUNCTION("quantile", quantile, QuantileBlock, 3)
ORCHARD_FUNCTION("mode", mode, ModeBlock, 2)

} // namespace
