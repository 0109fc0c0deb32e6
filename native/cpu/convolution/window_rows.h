// Gathers the source elements under windows into rows (im2col): for some elements of the kernel (places) and
// consecutive positions of the grid, one row per channel and place.
#pragma once

#include "../matmul/simd.h"
#include "../memory.h"
#include "windows.h"

#include <utility>

namespace orchard::ORCHARD_ISA {

constexpr int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }
constexpr int64_t rounded_up(int64_t value, int64_t to) { return divided_up(value, to) * to; }

// Consecutive positions in one line of the grid; `at` is the index of the first among the requested positions.
struct Run {
  int64_t picture, z, y, x, count, at;
};

// Returns an upper bound on the number of runs for `count` positions.
inline int64_t most_runs(const Windows &windows, int64_t count) {
  return std::min(count, count / windows.axes[2].grid + 2);
}

// Finds the runs that make up positions [first, end), counted over all pictures. Returns their number.
inline int64_t find_runs(const Windows &windows, int64_t first, int64_t end, Run *runs) {
  const auto &[deep, high, wide] = windows.axes;
  int64_t line = first / wide.grid, x = first % wide.grid, count = 0;
  for (int64_t at = first; at < end; line++, x = 0, count++) {
    const int64_t length = std::min(wide.grid - x, end - at), plane = line / high.grid;
    runs[count] = {plane / deep.grid, plane % deep.grid, line % high.grid, x, length, at - first};
    at += length;
  }
  return count;
}

// Adjacent elements of a row: `from` is the offset of the first one from the start of the picture's channel, or -1 for
// zeros.
struct Segment {
  int64_t from;
  int32_t at, count;
};

// Each run consists of zeros, elements, and zeros.
constexpr int64_t segments_of_run = 3;

// The segments of the rows of some places: place i's segments start at `begins[i]`, and one more entry marks the end.
struct SegmentTable {
  Segment *segments;
  int32_t *begins;
};

class SegmentWriter {
public:
  SegmentWriter(const Windows &windows, SegmentTable table) : windows_(windows), table_(table) {}

  // Writes the segments of places [first, end), in rows of `width` numbers. Zeros fill a row after the last run.
  void write(const Run *runs, int64_t run_count, int64_t first, int64_t end, int64_t width) {
    count_ = 0;
    for (int64_t place = first; place < end; place++) {
      table_.begins[place - first] = static_cast<int32_t>(count_);
      write_place(runs, run_count, windows_.places[place]);
      const Run &last = runs[run_count - 1];
      add(-1, last.at + last.count, width);
    }
    table_.begins[end - first] = static_cast<int32_t>(count_);
  }

private:
  static bool is_inside(const WindowAxis &axis, int64_t position) { return position >= 0 && position < axis.source; }

  void write_place(const Run *runs, int64_t run_count, const Place &place) {
    const auto &[deep, high, wide] = windows_.axes;
    const auto &[z_shift, y_shift, x_shift] = place.shift;
    // The range of positions in the line whose elements are in bounds.
    const int64_t step = wide.step, begin = x_shift >= 0 ? 0 : (-x_shift - 1) / step + 1,
                  end = wide.source > x_shift ? (wide.source - x_shift - 1) / step + 1 : 0;
    for (int64_t i = 0; i < run_count; i++) {
      const Run &run = runs[i];
      const int64_t z = run.z * deep.step + z_shift, y = run.y * high.step + y_shift, stop = run.at + run.count;
      if (!is_inside(deep, z) || !is_inside(high, y)) {
        add(-1, run.at, stop);
        continue;
      }
      const int64_t first = run.at + std::clamp<int64_t>(begin - run.x, 0, run.count),
                    last = std::max(first, run.at + std::clamp<int64_t>(end - run.x, 0, run.count));
      const int64_t picture = run.picture * windows_.groups * windows_.channels * windows_.pixels(),
                    line = (z * high.source + y) * wide.source, x = (run.x + first - run.at) * step + x_shift;
      add(-1, run.at, first);
      add(picture + line + x, first, last);
      add(-1, last, stop);
    }
  }

  void add(int64_t from, int64_t at, int64_t stop) {
    if (at < stop) table_.segments[count_++] = {from, static_cast<int32_t>(at), static_cast<int32_t>(stop - at)};
  }

  const Windows &windows_;
  SegmentTable table_;
  int64_t count_ = 0;
};

// Returns the lanes with even indices.
template <class T, int... lane>
inline Vector<T> even_lanes(Vector<T> first, Vector<T> second, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(first, second, (2 * lane)...);
}

// Loads a vector of elements that are `step` apart.
template <class T, int step> inline Vector<T> load_apart(const T *from) {
  static_assert(step == 1 || step == 2);
  if constexpr (step == 1) return load_vector(from);
  else
    return even_lanes<T>(load_vector(from), load_vector(from + lanes<T>), std::make_integer_sequence<int, lanes<T>>());
}

// Copies whole vectors: the next segment overwrites elements written past the end of this one.
template <class T, int step> inline void copy_segment(const T *from, T *to, int64_t count) {
  for (int64_t i = 0; i < count; i += lanes<T>) store_vector<T>(load_apart<T, step>(from + i * step), to + i);
}
template <class T> inline void copy_segment_exactly(const T *from, T *to, int64_t count, int64_t step) {
  for (int64_t i = 0; i < count; i++) to[i] = from[i * step];
}
template <class T> inline void clear_segment(T *to, int64_t count) {
  for (int64_t i = 0; i < count; i += lanes<T>) store_vector<T>(Vector<T>{}, to + i);
}

// Writes the rows of `places` places of one channel, `stride` apart, in order of addresses. Up to one vector past the
// last row is overwritten. Reads nothing beyond `end`, the end of the source.
template <class T, int step>
void copy_rows(const SegmentTable &table, int64_t places, const T *channel, const T *end, T *to, int64_t stride,
               int64_t general_step) {
  for (int64_t place = 0; place < places; place++, to += stride)
    for (int32_t i = table.begins[place]; i < table.begins[place + 1]; i++) {
      const auto &[from, at, count] = table.segments[i];
      if (from < 0) {
        clear_segment(to + at, count);
        continue;
      }
      const T *start = channel + from;
      if (step > 0 && end - start >= (count + lanes<T>)*(step > 0 ? step : 1))
        copy_segment<T, step == 2 ? 2 : 1>(start, to + at, count);
      else copy_segment_exactly(start, to + at, count, general_step);
    }
}

// Splits the depth into blocks of at most `most` steps: each block is whole channels, or some places of one channel.
struct DepthBlocks {
  int64_t place_count, channels, block;

  DepthBlocks(const Windows &windows, int64_t most) : place_count(windows.place_count), channels(windows.channels) {
    const auto evenly = [](int64_t count, int64_t limit) {
      const int64_t parts = (count + limit - 1) / limit;
      return (count + parts - 1) / parts;
    };
    block = place_count > most ? evenly(place_count, most)
                               : evenly(channels, std::max<int64_t>(1, most / place_count)) * place_count;
  }
  // Returns the end of the block that begins at step `first`.
  int64_t end(int64_t first) const {
    if (block >= place_count) return std::min(first + block, channels * place_count);
    return std::min(first + block, (first / place_count + 1) * place_count);
  }
  int64_t places() const { return std::min(block, place_count); }
};

// The threads' scratch memory for rows of up to `places` places, and for panels of up to `most_runs` runs.
template <class T> class RowSpace {
public:
  RowSpace(int64_t most_runs, int64_t places, int64_t panels, int64_t workers)
      : most_runs_(most_runs), panels_(panels), places_(places), segments_(places * (most_runs * segments_of_run + 1)),
        runs(scratch_product({workers, panels, most_runs})), segments(scratch_product({workers, panels, segments_})),
        begins(scratch_product({workers, panels, places + 1})) {}

  Run *runs_of(int64_t worker, int64_t panel) { return runs.data() + at(worker, panel) * most_runs_; }

  // Finds the segments for the rows of places [first, end).
  void find_rows(const Windows &windows, int64_t worker, int64_t panel, int64_t run_count, int64_t first, int64_t end,
                 int64_t width) {
    SegmentWriter(windows, table_of(worker, panel)).write(runs_of(worker, panel), run_count, first, end, width);
  }

  // Copies one channel's elements into the rows found by find_rows. Up to one vector past the last row is overwritten.
  void copy(int64_t worker, int64_t panel, int64_t step, int64_t places, const T *channel, const T *end, T *to,
            int64_t stride) {
    const auto copy = step == 1 ? copy_rows<T, 1> : step == 2 ? copy_rows<T, 2> : copy_rows<T, 0>;
    copy(table_of(worker, panel), places, channel, end, to, stride, step);
  }

private:
  int64_t at(int64_t worker, int64_t panel) const { return worker * panels_ + panel; }
  SegmentTable table_of(int64_t worker, int64_t panel) {
    return {segments.data() + at(worker, panel) * segments_, begins.data() + at(worker, panel) * (places_ + 1)};
  }

  int64_t most_runs_, panels_, places_, segments_;
  Scratch<Run> runs;
  Scratch<Segment> segments;
  Scratch<int32_t> begins;
};

} // namespace orchard::ORCHARD_ISA
