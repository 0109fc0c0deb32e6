// Packs the weight of windows in the order in which tiles read it.
#pragma once

#include "../matmul/pack.h"
#include "../parallel.h"
#include "windows.h"

namespace orchard::ORCHARD_ISA {

// Prefetches cache lines that the hardware prefetcher can't predict, because each is in a different page.
template <class T> inline void prefetch_numbers(const T *from, int64_t count) {
  for (int64_t i = 0; i < count; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(from + i, 0, 2);
}

// Packs rows whose steps are adjacent in the weight.
template <class T, int width> void pack_steps(const T *from, int64_t row_stride, int64_t rows, int64_t steps, T *to) {
  constexpr int64_t chunk = 64; // a multiple of the side of a transposed square
  for (int64_t step = 0; step < steps; step += chunk) {
    const int64_t count = std::min(chunk, steps - step), next = std::min(chunk, steps - step - count);
    for (int64_t row = 0; row < rows; row++) prefetch_numbers(from + row * row_stride + step + count, next);
    pack_panel<T, width>(from + step, row_stride, 1, rows, count, to + step * width);
  }
}

// Packs rows whose places are adjacent in the weight, in any order: the adjoint reads channels this way. Up to `lanes`
// rows become the lanes of one vector for each place; some numbers past the end are read.
template <class T, int width> class PlacePacking {
public:
  PlacePacking(const Windows &windows, const T *weight)
      : windows_(windows), end_(weight + windows.groups * windows.weight_group),
        is_dense_(2 * windows.place_count > windows.weight_row) {}

  void pack(const T *from, int64_t rows, int64_t channels, T *to) const {
    for (int64_t channel = 0; channel < channels; channel++, from += windows_.weight_channel) {
      const bool is_last = channel + 1 == channels;
      prefetch_numbers(from + windows_.weight_channel, is_last ? 0 : rows * windows_.weight_row);
      int64_t row = 0;
      if (is_dense_)
        for (; row + lanes<T> <= rows && reads_within(from + row * windows_.weight_row); row += lanes<T>)
          pack_square(from + row * windows_.weight_row, to + row);
      for (int64_t place = 0; place < windows_.place_count; place++, to += width) {
        const T *weight = from + windows_.places[place].weight;
        for (int64_t r = row; r < rows; r++) to[r] = weight[r * windows_.weight_row];
        std::fill(to + rows, to + width, T(0));
      }
    }
  }

private:
  bool reads_within(const T *from) const { return end_ - from >= lanes<T> * (windows_.weight_row + lanes<T>); }

  void pack_square(const T *from, T *to) const {
    T columns[lanes<T> * lanes<T>];
    for (int64_t first = 0; first < windows_.weight_row; first += lanes<T>) {
      const int64_t count = std::min<int64_t>(lanes<T>, windows_.weight_row - first);
      transpose_rows<T>([&](int r) { return from + r * windows_.weight_row + first; }, columns, lanes<T>, count);
      for (int64_t place = 0; place < windows_.place_count; place++) {
        const int64_t column = windows_.places[place].weight - first;
        if (column >= 0 && column < count)
          store_vector<T>(load_vector(columns + column * lanes<T>), to + place * width);
      }
    }
  }

  const Windows &windows_;
  const T *end_;
  const bool is_dense_; // whether most places of the weight are read
};

// Packs weight[group, row, step], for up to `width` rows from `row` on and channels [channel, end), to [step][row]. Up
// to one vector past the end is overwritten.
template <class T, int width>
void pack_window_panel(const Windows &windows, const T *weight, int64_t group, int64_t row, int64_t channel,
                       int64_t end, T *to) {
  const int64_t rows = std::min<int64_t>(width, windows.rows - row);
  const T *from = weight + group * windows.weight_group + row * windows.weight_row + channel * windows.weight_channel;
  if (windows.weight_channel == windows.place_count)
    pack_steps<T, width>(from, windows.weight_row, rows, (end - channel) * windows.place_count, to);
  else PlacePacking<T, width>(windows, weight).pack(from, rows, end - channel, to);
}

// Packs the whole weight to [group][panel][step][row of the panel]; panels are `panel_size` numbers apart.
template <class T, int width>
void pack_window_weight(const Windows &windows, const T *weight, T *packed, int64_t panel_size) {
  const int64_t panels = (windows.rows + width - 1) / width, grain = std::max<int64_t>(1, 32768 / panel_size);
  parallel_for(windows.groups * panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      pack_window_panel<T, width>(windows, weight, i / panels, i % panels * width, 0, windows.channels,
                                  packed + i * panel_size);
  });
}

} // namespace orchard::ORCHARD_ISA
