#include "largest.h"
#include "tuning.h"
#include "window_ranges.h"

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::pooling;

// The maxima of adjacent windows so far, and their positions in the plane if requested.
template <class C, class I> struct Best {
  C *values;
  I *places;
};

// Includes x[i · step], at position at + i · step of the plane, in the maximum of each window i. The loop is vectorized
// if the step is a compile-time constant.
template <int known_step, bool is_indexed, class T, class I>
void include(const T *__restrict x, int64_t given_step, int64_t count, I at, Best<Compute<T>, I> best) {
  using C = Compute<T>;
  const int64_t step = known_step ? known_step : given_step;
  C *__restrict values = best.values;
  I *__restrict places = best.places;
  for (int64_t i = 0; i < count; i++) {
    const C value = load(x[i * step]), before = values[i];
    if constexpr (is_indexed) {
      const I place = places[i];
      const bool is_better = (value > before) | (value != value) | (place < 0);
      values[i] = is_better ? value : before;
      places[i] = is_better ? I(at + I(i) * I(step)) : place;
    } else {
      const bool is_better = (value > before) | (value != value);
      values[i] = is_better ? value : before;
    }
  }
}

// Includes the elements of each window one by one.
template <bool is_indexed, class T, class I>
void include_row_slowly(const ConvolutionAxis &wide, const T *row, I row_place, Range windows,
                        Best<Compute<T>, I> best) {
  for (int64_t window = windows.begin; window < windows.end; window++) {
    const Range places = places_inside(wide, window);
    const int64_t index = window - windows.begin, first = window * wide.stride - wide.before;
    for (int64_t place = places.begin; place < places.end; place++) {
      const int64_t at = first + place * wide.dilation;
      include<1, is_indexed, T, I>(row + at, 1, 1, I(row_place + I(at)),
                                   {best.values + index, is_indexed ? best.places + index : nullptr});
    }
  }
}

// Includes `count` adjacent elements of one window, by lanes. Returns false, and includes nothing, if one is NaN.
template <bool is_indexed, class T, class I>
bool include_adjacent(const T *x, int64_t count, I at, Best<Compute<T>, I> best) {
  using C = Compute<T>;
  Largest<T> largest;
  largest.include(x, count);
  if (largest.has_nan()) return false;
  const C found = largest.value();
  if constexpr (is_indexed) {
    if (!(found > *best.values) && *best.places >= 0) return true;
    *best.places = I(at + I(position_of(found, x, count)));
    *best.values = found;
  } else *best.values = found > *best.values ? found : *best.values;
  return true;
}

// For few long windows: the elements of each are adjacent.
template <bool is_indexed, class T, class I>
void include_row_by_windows(const ConvolutionAxis &wide, const T *row, I row_place, Range windows,
                            Best<Compute<T>, I> best) {
  for (int64_t window = windows.begin; window < windows.end; window++) {
    const Range places = places_inside(wide, window);
    const int64_t index = window - windows.begin, first = window * wide.stride - wide.before + places.begin;
    const int64_t count = places.end - places.begin;
    const Best<Compute<T>, I> own = {best.values + index, is_indexed ? best.places + index : nullptr};
    const I at = I(row_place + I(first));
    const bool is_before_nan = *own.values != *own.values;
    if (count <= 0 || (!is_before_nan && include_adjacent<is_indexed, T, I>(row + first, count, at, own))) continue;
    for (int64_t i = 0; i < count; i++) include<1, is_indexed, T, I>(row + first + i, 1, 1, I(at + I(i)), own);
  }
}

template <bool is_indexed, class T, class I>
void include_row(const ConvolutionAxis &wide, const T *row, I row_place, Range windows, Best<Compute<T>, I> best) {
  // Most elements of the kernel are outside the input for every window.
  if (wide.kernel > wide.input) return include_row_slowly<is_indexed>(wide, row, row_place, windows, best);
  const bool has_few = windows.end - windows.begin < few_windows && wide.kernel >= long_window;
  if (has_few && wide.dilation == 1)
    return include_row_by_windows<is_indexed, T, I>(wide, row, row_place, windows, best);
  for (int64_t place = 0; place < wide.kernel; place++) {
    const Range inside = windows_inside(wide, place, windows);
    const int64_t count = inside.end - inside.begin;
    if (count <= 0) continue;
    const int64_t first = inside.begin * wide.stride + place * wide.dilation - wide.before;
    const int64_t skipped = inside.begin - windows.begin;
    const Best<Compute<T>, I> part = {best.values + skipped, is_indexed ? best.places + skipped : nullptr};
    const I at = I(row_place + I(first));
    if (wide.stride == 1) include<1, is_indexed, T, I>(row + first, 1, count, at, part);
    else if (wide.stride == 2) include<2, is_indexed, T, I>(row + first, 2, count, at, part);
    else include<0, is_indexed, T, I>(row + first, wide.stride, count, at, part);
  }
}

// The elements of an adaptive window: `rows` rows of each of `depths` matrices, from x[0] on.
struct Box {
  int64_t depths, rows, columns;
  int64_t depth_stride, row_stride;
};

// Finds the maximum of a box of short rows, element by element. Equal elements and NaN are as in `find_in_box`.
template <bool is_indexed, class T, class I>
void find_in_short_rows(const T *plane, int64_t first, const Box &box, Best<Compute<T>, I> best) {
  Compute<T> largest = -std::numeric_limits<Compute<T>>::infinity();
  I found = -1;
  for (int64_t depth = 0; depth < box.depths; depth++)
    for (int64_t row = 0; row < box.rows; row++) {
      const int64_t at = first + depth * box.depth_stride + row * box.row_stride;
      for (int64_t i = 0; i < box.columns; i++) {
        const Compute<T> value = load(plane[at + i]);
        const bool is_better = (value > largest) | (value != value) | (is_indexed && found < 0);
        largest = is_better ? value : largest;
        if constexpr (is_indexed) found = is_better ? I(at + i) : found;
      }
    }
  *best.values = largest;
  if constexpr (is_indexed) *best.places = found;
}

// Finds the maximum of a box, whose first element is at position `first` of the plane. Of equal elements the first one
// counts, of NaNs the last one.
template <bool is_indexed, class T, class I>
void find_in_box(const T *plane, int64_t first, const Box &box, Best<Compute<T>, I> best) {
  using C = Compute<T>;
  if (box.columns < short_row) return find_in_short_rows<is_indexed>(plane, first, box, best);
  const auto for_each_row = [&](auto &&use) {
    for (int64_t depth = 0; depth < box.depths; depth++)
      for (int64_t row = 0; row < box.rows; row++)
        if (use(first + depth * box.depth_stride + row * box.row_stride)) return;
  };
  Largest<T> largest;
  for_each_row([&](int64_t at) {
    largest.include(plane + at, box.columns);
    return false;
  });
  if (largest.has_nan())
    return for_each_row([&](int64_t at) {
      for (int64_t i = 0; i < box.columns; i++) include<1, is_indexed, T, I>(plane + at + i, 1, 1, I(at + i), best);
      return false;
    });
  const C found = largest.value();
  *best.values = found;
  if constexpr (is_indexed)
    for_each_row([&](int64_t at) {
      const int64_t i = position_of(found, plane + at, box.columns);
      if (i < box.columns) *best.places = I(at + i);
      return i < box.columns;
    });
}

template <bool is_indexed, class T, class I>
void find_line(const Pooling &pooling, const T *plane, int64_t line, T *values, I *indices) {
  using C = Compute<T>;
  const auto &[deep, high, wide] = pooling.axes;
  const Range depths = places_inside(deep, line / high.output), rows = places_inside(high, line % high.output);
  const int64_t z = first_of(deep, line / high.output), y = first_of(high, line % high.output);
  C best[chunk];
  for (int64_t begin = 0; begin < wide.output; begin += chunk) {
    const Range windows = {begin, std::min(begin + chunk, wide.output)};
    const int64_t count = windows.end - windows.begin;
    I *places = is_indexed ? indices + begin : nullptr;
    std::fill_n(best, count, -std::numeric_limits<C>::infinity());
    if constexpr (is_indexed) std::fill_n(places, count, I(-1));
    if (is_adaptive(wide)) {
      for (int64_t i = 0; i < count; i++) {
        const Box box = {depths.end - depths.begin, rows.end - rows.begin, places_inside(wide, begin + i).end,
                         deep.dilation * high.input * wide.input, high.dilation * wide.input};
        const int64_t depth = z + depths.begin * deep.dilation, row = y + rows.begin * high.dilation;
        find_in_box<is_indexed, T, I>(plane, (depth * high.input + row) * wide.input + first_of(wide, begin + i), box,
                                      {best + i, is_indexed ? places + i : nullptr});
      }
      narrow(best, values + begin, count);
      continue;
    }
    for (int64_t k = depths.begin; k < depths.end; k++)
      for (int64_t j = rows.begin; j < rows.end; j++) {
        const int64_t row = ((z + k * deep.dilation) * high.input + y + j * high.dilation) * wide.input;
        include_row<is_indexed, T, I>(wide, plane + row, I(row), windows, {best, places});
      }
    narrow(best, values + begin, count);
  }
}

template <class T, class I>
void line(const Pooling &pooling, const void *plane, int64_t number, void *values, void *indices) {
  const T *elements = static_cast<const T *>(plane);
  T *out = static_cast<T *>(values);
  if (indices) find_line<true>(pooling, elements, number, out, static_cast<I *>(indices));
  else find_line<false>(pooling, elements, number, out, static_cast<I *>(nullptr));
}

template <class T, class I>
void scatter(const Pooling &pooling, const void *gradient, const void *indices, void *sums, void *plane) {
  using C = Compute<T>;
  const int64_t pixels = pooling.pixels(), results = pooling.results();
  const T *from = static_cast<const T *>(gradient);
  const I *places = static_cast<const I *>(indices);
  C *totals = static_cast<C *>(sums);
  std::fill_n(totals, pixels, C(0));
  for (int64_t i = 0; i < results; i++) {
    const uint64_t place = uint64_t(int64_t(places[i])); // −1 and other invalid positions are beyond all pixels
    if (place < uint64_t(pixels)) totals[place] += load(from[i]);
  }
  if constexpr (!std::is_same_v<T, C>) narrow(totals, static_cast<T *>(plane), pixels);
}

template <class T, class I> constexpr MaxPoolKernel kernel() { return {line<T, I>, scatter<T, I>}; }

} // namespace

extern const MaxPools max_pools = {{{kernel<double, int32_t>(), kernel<double, int64_t>()},
                                    {kernel<float, int32_t>(), kernel<float, int64_t>()},
                                    {kernel<Float16, int32_t>(), kernel<Float16, int64_t>()},
                                    {kernel<BFloat16, int32_t>(), kernel<BFloat16, int64_t>()}}};

} // namespace orchard::ORCHARD_ISA
