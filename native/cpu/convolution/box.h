// A box: a copy of some lines of the source, padded with zeros, so that each element of the kernel reads adjacent
// elements at a fixed offset.
//
// For each plane, a box holds the source lines that a line of the result reads. With a stride, a line is split into
// `step` phases: elements that are `step` apart become adjacent.
#pragma once

#include "window_rows.h"

namespace orchard::ORCHARD_ISA {

// Stores the first `count` lanes.
template <class T> inline void store_part(Vector<T> vector, T *to, int64_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(to, __mmask16((1u << count) - 1), vector);
  else _mm512_mask_storeu_pd(to, __mmask8((1u << count) - 1), vector);
#else
  __builtin_memcpy(to, &vector, static_cast<size_t>(count) * sizeof(T));
#endif
}
template <class T> inline Vector<T> load_part(const T *from, int64_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_maskz_loadu_ps(__mmask16((1u << count) - 1), from);
  else return _mm512_maskz_loadu_pd(__mmask8((1u << count) - 1), from);
#else
  Vector<T> vector = {};
  __builtin_memcpy(&vector, from, static_cast<size_t>(count) * sizeof(T));
  return vector;
#endif
}

template <class T> inline const T *end_of(const Windows &windows, const T *source) {
  return source + windows.batch * windows.groups * windows.channels * windows.pixels();
}

// Fills the box for some lines of one plane of the grid.
template <class T> class Box {
public:
  // Plans for lines of `grid` positions, at least as many as the grid has. Initially, the box covers one line.
  Box(const Windows &windows, int64_t grid) : windows_(windows) {
    for (int axis = 0; axis < convolution_axes; axis++) {
      least_[axis] = most_[axis] = windows.places[0].shift[axis];
      for (int64_t i = 1; i < windows.place_count; i++) {
        least_[axis] = std::min(least_[axis], windows.places[i].shift[axis]);
        most_[axis] = std::max(most_[axis], windows.places[i].shift[axis]);
      }
    }
    const WindowAxis &wide = windows.axes[2];
    length_ = grid + (most_[2] - least_[2]) / wide.step;
    line_ = wide.step * length_;
    planes_ = most_[0] - least_[0] + 1;
    set_band(1);
  }

  // Returns how many lines of the grid fit in a box of `numbers` elements: at least `least`, if the grid has that many.
  int64_t lines_within(int64_t numbers, int64_t least) const {
    const WindowAxis &high = windows_.axes[1];
    return std::clamp((numbers / (planes_ * line_) - span()) / high.step + 1, std::min(least, high.grid), high.grid);
  }
  void set_band(int64_t lines) { band_ = lines, rows_ = (lines - 1) * windows_.axes[1].step + span(); }

  // Returns the number of grid lines that the box covers.
  int64_t band() const { return band_; }
  int64_t size() const { return planes_ * rows_ * line_ + lanes<T>; }
  int64_t line_step() const { return windows_.axes[1].step * line_; }
  int64_t offset_of(const Place &place) const {
    const int64_t across = place.shift[2] - least_[2], step = windows_.axes[2].step;
    return ((place.shift[0] - least_[0]) * rows_ + place.shift[1] - least_[1]) * line_ + across % step * length_ +
           across / step;
  }

  // Fills the box for lines [y, y + count) of a plane of the grid, in order of addresses. Whole vectors are written;
  // each may overwrite what follows, which is written later.
  void fill(const T *channel, int64_t z, int64_t y, int64_t count, const T *source_end, T *box) const {
    const auto &[deep, high, wide] = windows_.axes;
    const int64_t rows = (count - 1) * high.step + span();
    const Line line(*this, source_end);
    for (int64_t plane = 0; plane < planes_; plane++)
      for (int64_t row = 0; row < rows; row++) {
        const int64_t at_z = z * deep.step + least_[0] + plane, at_y = y * high.step + least_[1] + row;
        T *to = box + (plane * rows_ + row) * line_;
        if (at_z < 0 || at_z >= deep.source || at_y < 0 || at_y >= high.source) clear_segment(to, line_);
        else line.fill(channel + (at_z * high.source + at_y) * wide.source, to);
      }
  }

  // Returns whether all planes have their zeros at the same offsets, so that the next box can reuse the zeros of this
  // one.
  bool has_same_zeros() const {
    const auto &[deep, high, wide] = windows_.axes;
    return deep.grid == 1 && band_ == high.grid && wide.step == 1;
  }
  // Copies the elements of another channel or picture into a box that was filled before; its zeros do not change.
  void refill(const T *channel, T *box) const {
    const auto &[deep, high, wide] = windows_.axes;
    const auto [begin, end] = elements_of(0);
    for (int64_t plane = std::max<int64_t>(0, -least_[0]); plane < std::min(planes_, deep.source - least_[0]); plane++)
      for (int64_t row = std::max<int64_t>(0, -least_[1]); row < std::min(rows_, high.source - least_[1]); row++) {
        const T *line = channel + ((least_[0] + plane) * high.source + least_[1] + row) * wide.source;
        copy_part(line + begin + least_[2], end - begin, box + (plane * rows_ + row) * line_ + begin);
      }
  }

private:
  int64_t span() const { return most_[1] - least_[1] + 1; }

  // The range of a phase's line that holds elements; zeros surround it.
  struct Elements {
    int64_t begin, end;
  };
  Elements elements_of(int64_t phase) const {
    const int64_t step = windows_.axes[2].step, shift = least_[2] + phase;
    const auto before = [&](int64_t position) { return position <= shift ? 0 : (position - shift - 1) / step + 1; };
    const int64_t begin = std::min(length_, before(0));
    return {begin, std::clamp(before(windows_.axes[2].source), begin, length_)};
  }

  // Values common to all lines, computed once: a division would take as long as copying a short line.
  class Line {
  public:
    Line(const Box &box, const T *source_end)
        : box_(box), source_end_(source_end), first_{box.elements_of(0), box.elements_of(1)} {}

    void fill(const T *from, T *line) const {
      const int64_t step = box_.windows_.axes[2].step, length = box_.length_;
      for (int64_t phase = 0; phase < step; phase++, line += length) {
        const auto [begin, end] = phase < 2 ? first_[phase] : box_.elements_of(phase);
        clear_segment(line, begin);
        copy(from + begin * step + box_.least_[2] + phase, end - begin, source_end_, line + begin, step);
        clear_segment(line + end, length - end);
      }
    }

  private:
    const Box &box_;
    const T *source_end_;
    const Elements first_[2];
  };

  static void copy(const T *from, int64_t count, const T *source_end, T *to, int64_t step) {
    if (count == 0) return;
    const bool has_more = source_end - from >= (count + lanes<T>)*step;
    if (step == 1 && has_more) copy_segment<T, 1>(from, to, count);
    else if (step == 2 && has_more) copy_segment<T, 2>(from, to, count);
    else copy_segment_exactly(from, to, count, step);
  }

  static void copy_part(const T *from, int64_t count, T *to) {
    for (int64_t i = 0; i < count; i += lanes<T>) {
      const int64_t length = std::min<int64_t>(lanes<T>, count - i);
      store_part<T>(load_part(from + i, length), to + i, length);
    }
  }

  const Windows &windows_;
  int64_t least_[convolution_axes], most_[convolution_axes];
  int64_t length_, line_, planes_, band_, rows_;
};

} // namespace orchard::ORCHARD_ISA
