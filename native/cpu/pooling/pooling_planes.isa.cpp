// Max pooling of blocks of planes, whose lanes are planes.
#include "plane_lanes.h"
#include "tuning.h"
#include "window_ranges.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Positions have as many lanes as values: they are of the type of comparisons of values.
template <class C> using PlaceOf = std::remove_reference_t<decltype((Vector<C>{} > Vector<C>{})[0])>;

// The maxima of one window of each plane so far, and their positions in the plane.
template <class C, bool is_indexed> struct Maxima {
  static constexpr int parts = planes_together / lanes<C>;
  using P = PlaceOf<C>;
  Vector<C> values[parts];
  Vector<P> places[parts];

  void clear() {
    for (int part = 0; part < parts; part++) {
      values[part] = Vector<C>{} - std::numeric_limits<C>::infinity();
      places[part] = Vector<P>{} - 1;
    }
  }

  // Includes the elements at position `at`. The first element of a window counts whatever it is, so its place is set.
  inline void include(const C *x, P at) {
#pragma GCC unroll 8
    for (int part = 0; part < parts; part++) {
      const Vector<C> value = load_vector(x + part * lanes<C>);
      if constexpr (is_indexed) {
        const auto is_better = (value > values[part]) | (value != value) | (places[part] < 0);
        values[part] = is_better ? value : values[part];
        places[part] = is_better ? Vector<P>{} + at : places[part];
      } else {
        const auto is_better = (value > values[part]) | (value != value);
        values[part] = is_better ? value : values[part];
      }
    }
  }

  void write(C *to, P *indices) const {
    for (int part = 0; part < parts; part++) {
      store_vector<C>(values[part], to + part * lanes<C>);
      if constexpr (is_indexed) store_vector<P>(places[part], indices + part * lanes<C>);
    }
  }
};

// A window along an axis: its first element inside the input, and how many there are.
struct Window {
  int64_t first, count;
};

Window window_of(const ConvolutionAxis &axis, int64_t at) {
  const Range places = places_inside(axis, at);
  return {first_of(axis, at) + places.begin * axis.dilation, places.end - places.begin};
}

// Computes the results of the windows from `begin` on along the last axis, at most `some_windows`.
using tuning::pooling::some_windows;
template <bool is_indexed, class C>
void pool_windows(const Pooling &pooling, int64_t begin, const C *x, C *values, PlaceOf<C> *indices) {
  const auto &[deep, high, wide] = pooling.axes;
  const int64_t row_step = high.dilation * wide.input, depth_step = deep.dilation * high.input * wide.input;
  const int64_t count = std::min(some_windows, wide.output - begin);
  Window across[some_windows];
  for (int64_t w = 0; w < count; w++) across[w] = window_of(wide, begin + w);
  for (int64_t line = 0; line < pooling.lines(); line++) {
    const Window depths = window_of(deep, line / high.output), rows = window_of(high, line % high.output);
    const int64_t corner = (depths.first * high.input + rows.first) * wide.input;
    for (int64_t w = 0; w < count; w++) {
      Maxima<C, is_indexed> best;
      best.clear();
      for (int64_t k = 0; k < depths.count; k++)
        for (int64_t j = 0; j < rows.count; j++) {
          int64_t at = corner + k * depth_step + j * row_step + across[w].first;
          for (int64_t i = 0; i < across[w].count; i++, at += wide.dilation)
            best.include(x + at * planes_together, PlaceOf<C>(at));
        }
      const int64_t result = (line * wide.output + begin + w) * planes_together;
      best.write(values + result, indices + result);
    }
  }
}

template <bool is_indexed, class C> void pool(const Pooling &pooling, const C *x, C *values, PlaceOf<C> *indices) {
  for (int64_t begin = 0; begin < pooling.axes[2].output; begin += some_windows)
    pool_windows<is_indexed>(pooling, begin, x, values, indices);
}

template <class T, class I>
void planes(const Pooling &pooling, const void *x, int64_t count, void *values, void *indices, void *scratch) {
  using C = Compute<T>;
  using P = PlaceOf<C>;
  const int64_t pixels = pooling.pixels(), results = pooling.results();
  C *from = static_cast<C *>(scratch), *best = from + interleaved_size(pixels);
  P *places = reinterpret_cast<P *>(best + interleaved_size(results));
  interleave(static_cast<const T *>(x), pixels, count, pixels, from);
  if (indices) pool<true>(pooling, from, best, places);
  else pool<false>(pooling, from, best, places);
  deinterleave(best, results, count, static_cast<T *>(values), results, narrow<T>);
  if (!indices) return;
  const auto convert = [](const P *in, I *out, int64_t some) {
    for (int64_t i = 0; i < some; i++) out[i] = I(in[i]);
  };
  deinterleave(places, results, count, static_cast<I *>(indices), results, convert);
}

template <class T> constexpr MaxPoolPlanes both[] = {planes<T, int32_t>, planes<T, int64_t>};

} // namespace

extern const MaxPoolBlocks max_pool_blocks = {planes_together,
                                              {{both<double>[0], both<double>[1]},
                                               {both<float>[0], both<float>[1]},
                                               {both<Float16>[0], both<Float16>[1]},
                                               {both<BFloat16>[0], both<BFloat16>[1]}}};

} // namespace orchard::ORCHARD_ISA
