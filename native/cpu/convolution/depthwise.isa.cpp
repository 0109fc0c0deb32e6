// Sums over windows with few rows, for example one channel per group. A band of the source is copied into a box
// (box.h), and several lines of the result are summed in registers over all elements of the kernel.
#include "../parallel.h"
#include "box.h"
#include "tuning.h"

#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::convolution;

// Stores a whole vector, or the first `count` lanes if that is less.
template <class T> inline void store_line(Vector<T> vector, T *to, int64_t count) {
  if (count >= lanes<T>) store_vector<T>(vector, to);
  else store_part<T>(vector, to, count);
}

// One element of the kernel: the offset at which it reads the box, and its weight.
template <class T> struct Tap {
  int64_t offset;
  T weight;
};

// Lines of a result, `count` numbers each: result[l][x] = Σ over taps of weight · box[l · line_step + offset + x].
template <class T> struct Lines {
  const T *box;
  int64_t line_step;
  const Tap<T> *taps;
  int64_t tap_count;
  T *result;
  int64_t result_step, count;
};

template <class T, int lines> void sum_lines(const Lines<T> &args) {
  for (int64_t at = 0; at < args.count; at += lanes<T>) {
    Vector<T> sums[lines] = {};
    // The last vector overlaps the previous one, so that it is a whole vector.
    const int64_t x = args.count < lanes<T> ? 0 : std::min(at, args.count - lanes<T>);
    for (int64_t i = 0; i < args.tap_count; i++) {
      const T *from = args.box + args.taps[i].offset + x, weight = args.taps[i].weight;
#pragma GCC unroll 8
      for (int l = 0; l < lines; l++)
        sums[l] = multiply_add<T>(load_vector(from + l * args.line_step), weight, sums[l]);
    }
#pragma GCC unroll 8
    for (int l = 0; l < lines; l++) store_line<T>(sums[l], args.result + l * args.result_step + x, args.count);
  }
}

template <class T> struct LineKernels {
  void (*sum[most_lines])(const Lines<T> &);
};
template <class T, int... lines> constexpr LineKernels<T> line_kernels_of(std::integer_sequence<int, lines...>) {
  return {{sum_lines<T, lines + 1>...}};
}
template <class T>
constexpr LineKernels<T> line_kernels = line_kernels_of<T>(std::make_integer_sequence<int, most_lines>());

// sums[t · lanes + x % lanes] += Σ over lines and x of gradient[l · gradient_step + x] · box[l · line_step + offsets[t]
// + x]
template <class T> struct Products {
  const T *box;
  int64_t line_step;
  const int64_t *offsets;
  const T *gradient;
  int64_t gradient_step, lines, count;
  T *sums;
};

// Sums the lanes as a binary tree; overwrites `numbers`.
template <class T> inline T sum_of_lanes(T *numbers) {
  for (int half = lanes<T> / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) numbers[lane] += numbers[lane + half];
  return numbers[0];
}

template <class T, int taps> void add_products(const Products<T> &args) {
  Vector<T> sums[taps] = {};
  int64_t offsets[taps];
  std::copy_n(args.offsets, taps, offsets);
  for (int64_t l = 0; l < args.lines; l++) {
    const T *box = args.box + l * args.line_step, *gradient = args.gradient + l * args.gradient_step;
    int64_t x = 0;
    for (; x + lanes<T> <= args.count; x += lanes<T>) {
      const Vector<T> factor = load_vector(gradient + x);
#pragma GCC unroll 9
      for (int t = 0; t < taps; t++) sums[t] = multiply_add<T>(load_vector(box + offsets[t] + x), factor, sums[t]);
    }
    if (x == args.count) continue;
    const Vector<T> factor = load_part<T>(gradient + x, args.count - x);
#pragma GCC unroll 9
    for (int t = 0; t < taps; t++)
      sums[t] = multiply_add<T>(load_part<T>(box + offsets[t] + x, args.count - x), factor, sums[t]);
  }
#pragma GCC unroll 9
  for (int t = 0; t < taps; t++) {
    T *to = args.sums + t * lanes<T>;
    store_vector<T>(load_vector(to) + sums[t], to);
  }
}

template <class T> struct ProductKernels {
  void (*add[most_taps])(const Products<T> &);
};
template <class T, int... taps> constexpr ProductKernels<T> product_kernels_of(std::integer_sequence<int, taps...>) {
  return {{add_products<T, taps + 1>...}};
}
template <class T>
constexpr ProductKernels<T> product_kernels = product_kernels_of<T>(std::make_integer_sequence<int, most_taps>());

template <class T> Box<T> box_of(const Windows &windows) {
  Box<T> box(windows, rounded_up(windows.axes[2].grid, lanes<T>));
  box.set_band(box.lines_within(std::min(box_numbers, all_box_numbers / windows.channels), most_lines));
  return box;
}

// Computes windows.rows results, each the sum over windows.channels channels.
template <class T> class DepthwiseSums {
public:
  DepthwiseSums(const Windows &windows, const T *source, const T *weight, T *result)
      : windows_(windows), box_(box_of<T>(windows)), source_(source), weight_(weight), result_(result),
        scattered_(windows.axes[2].result_step == 1 ? 0 : rounded_up(windows.axes[2].grid, lanes<T>)),
        bands_(divided_up(windows.axes[1].grid, box_.band())), offsets_(windows.depth()) {
    int64_t *offset = offsets_.data();
    for (int64_t channel = 0; channel < windows.channels; channel++)
      for (int64_t i = 0; i < windows.place_count; i++)
        *offset++ = channel * box_.size() + box_.offset_of(windows.places[i]);
  }

  void run() {
    const int64_t items = windows_.batch * windows_.groups * windows_.axes[0].grid * bands_, taps = windows_.depth();
    const double operations =
        double(windows_.positions()) / double(windows_.axes[0].grid * bands_) * double(taps * windows_.rows);
    const int64_t tasks = divided_up(items, std::max<int64_t>(1, int64_t(depthwise_operations / operations)));
    const int64_t size = 2 * boxes_size() + rounded_up(most_lines * scattered_, 16),
                  workers = std::min<int64_t>(tasks, thread_count());
    Scratch<T> space(scratch_product({workers, size}));
    Scratch<Tap<T>> all(scratch_product({workers, taps}));
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      const int64_t first = items * worker / workers, end = items * (worker + 1) / workers;
      T *boxes = space.data() + worker * size;
      // Two boxes alternate: one is filled while the other is summed. A load that spans several recent stores would
      // stall, since store forwarding fails.
      for (int64_t item = first; item <= end; item++) {
        if (item < end) fill(item, item < first + 2, boxes + item % 2 * boxes_size());
        if (item > first)
          sum(item - 1, boxes + (item - 1) % 2 * boxes_size(), offsets_.data(), boxes + 2 * boxes_size(),
              all.data() + worker * taps);
      }
    });
  }

private:
  // A band: some lines of a plane of the grid.
  struct Item {
    int64_t y, z, group, count;
  };
  Item item_of(int64_t item) const {
    const int64_t y = item % bands_ * box_.band(), plane = item / bands_, deep = windows_.axes[0].grid;
    return {y, plane % deep, plane / deep, std::min(box_.band(), windows_.axes[1].grid - y)};
  }
  int64_t boxes_size() const { return rounded_up(windows_.channels * box_.size(), 16); }

  void fill(int64_t number, bool is_first, T *box) const {
    const Item item = item_of(number);
    for (int64_t channel = 0; channel < windows_.channels; channel++, box += box_.size()) {
      const T *from = source_ + (item.group * windows_.channels + channel) * windows_.pixels();
      if (!is_first && box_.has_same_zeros()) box_.refill(from, box);
      else box_.fill(from, item.z, item.y, item.count, end_of(windows_, source_), box);
    }
  }

  void sum(int64_t number, const T *box, const int64_t *offsets, T *scattered, Tap<T> *taps) const {
    const WindowAxis &deep = windows_.axes[0];
    const Item item = item_of(number);
    for (int64_t row = 0; row < windows_.rows; row++) {
      find_taps(item.group % windows_.groups, row, offsets, taps);
      T *plane = result_ + (item.group * windows_.rows + row) * windows_.results() +
                 (deep.result_first + item.z * deep.result_step) * windows_.axes[1].result * windows_.axes[2].result;
      sum_band(box, scattered, taps, item.y, item.count, plane);
    }
  }

  void find_taps(int64_t group, int64_t row, const int64_t *offsets, Tap<T> *taps) const {
    const T *weight = weight_ + group * windows_.weight_group + row * windows_.weight_row;
    for (int64_t channel = 0; channel < windows_.channels; channel++, weight += windows_.weight_channel)
      for (int64_t i = 0; i < windows_.place_count; i++) *taps++ = {*offsets++, weight[windows_.places[i].weight]};
  }

  // Sums lines [y, y + count) of a plane of the grid.
  void sum_band(const T *box, T *scattered, const Tap<T> *taps, int64_t y, int64_t count, T *plane) const {
    const auto &[deep, high, wide] = windows_.axes;
    for (int64_t at = 0; at < count; at += most_lines) {
      const int64_t lines = std::min<int64_t>(most_lines, count - at), step = high.result_step * wide.result;
      T *to = plane + (high.result_first + (y + at) * high.result_step) * wide.result;
      const bool is_direct = scattered_ == 0;
      line_kernels<T>.sum[lines - 1]({box + at * box_.line_step(), box_.line_step(), taps, windows_.depth(),
                                      is_direct ? to + wide.result_first : scattered, is_direct ? step : scattered_,
                                      is_direct ? wide.grid : scattered_});
      if (is_direct) continue;
      for (int64_t l = 0; l < lines; l++)
        scatter(scattered + l * scattered_, to + l * step + wide.result_first, wide.grid, wide.result_step);
    }
  }
  static void scatter(const T *from, T *to, int64_t count, int64_t step) {
    if (step == 2)
      for (int64_t x = 0; x < count; x++) to[2 * x] = from[x];
    else
      for (int64_t x = 0; x < count; x++) to[x * step] = from[x];
  }

  const Windows &windows_;
  const Box<T> box_;
  const T *source_, *weight_;
  T *result_;
  const int64_t scattered_; // length of a line whose results are scattered, or 0
  const int64_t bands_;     // bands per plane
  Scratch<int64_t> offsets_;
};

// The gradient of the weight. If there are few channels, the pictures are divided into parts, whose number depends on
// sizes only, and the parts' sums are added in order.
template <class T> class DepthwiseWeighing {
public:
  DepthwiseWeighing(const Windows &windows, const T *source, const T *gradient, T *weight)
      : windows_(windows), box_(box_of<T>(windows)), source_(source), gradient_(gradient), weight_(weight),
        share_(divided_up(windows.batch,
                          std::min(windows.batch, divided_up(least_weigh_tasks, windows.groups * windows.channels)))),
        parts_(divided_up(windows.batch, share_)) {}

  void run() {
    const int64_t channels = windows_.groups * windows_.channels,
                  size = channels * windows_.rows * windows_.place_count, box = rounded_up(box_.size(), 16);
    const int64_t tasks = parts_ * channels, workers = std::min<int64_t>(tasks, thread_count());
    const int64_t lane_sums = windows_.rows * windows_.place_count * lanes<T>;
    Scratch<T> sums(scratch_product({parts_, size})), space(scratch_product({workers, box + lane_sums}));
    Scratch<int64_t> offsets(windows_.place_count);
    for (int64_t i = 0; i < windows_.place_count; i++) offsets.data()[i] = box_.offset_of(windows_.places[i]);
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      T *worker_box = space.data() + worker * (box + lane_sums), *worker_sums = worker_box + box;
      const int64_t first_task = tasks * worker / workers;
      for (int64_t task = first_task; task < tasks * (worker + 1) / workers; task++) {
        const int64_t first = task / channels * share_, end = std::min(first + share_, windows_.batch);
        std::fill_n(worker_sums, lane_sums, T(0));
        for (int64_t picture = first; picture < end; picture++)
          add_picture(picture, task % channels, task == first_task && picture == first, offsets.data(), worker_box,
                      worker_sums);
        finish(task % channels, worker_sums, sums.data() + task / channels * size);
      }
    });
    for (int64_t i = 0; i < size; i++) {
      weight_[i] = sums.data()[i];
      for (int64_t part = 1; part < parts_; part++) weight_[i] += sums.data()[part * size + i];
    }
  }

private:
  // Sums the lanes of one channel and writes the results to [group, row, channel of the group, place].
  void finish(int64_t channel, T *sums, T *to) const {
    for (int64_t row = 0; row < windows_.rows; row++) {
      T *places =
          to + ((channel / windows_.channels * windows_.rows + row) * windows_.channels + channel % windows_.channels) *
                   windows_.place_count;
      for (int64_t i = 0; i < windows_.place_count; i++, sums += lanes<T>) places[i] = sum_of_lanes(sums);
    }
  }

  // Adds the products of one picture to the sums [row, place, lane].
  void add_picture(int64_t picture, int64_t channel, bool is_first, const int64_t *offsets, T *box, T *sums) const {
    const auto &[deep, high, wide] = windows_.axes;
    const int64_t group = channel / windows_.channels, plane = picture * windows_.groups + group;
    const T *source = source_ + (picture * windows_.groups * windows_.channels + channel) * windows_.pixels();
    for (int64_t z = 0; z < deep.grid; z++)
      for (int64_t y = 0; y < high.grid; y += box_.band()) {
        const int64_t count = std::min(box_.band(), high.grid - y);
        if (!is_first && box_.has_same_zeros()) box_.refill(source, box);
        else box_.fill(source, z, y, count, end_of(windows_, source_), box);
        for (int64_t row = 0; row < windows_.rows; row++) {
          const T *gradient =
              gradient_ + (plane * windows_.rows + row) * windows_.positions() + (z * high.grid + y) * wide.grid;
          T *to = sums + row * windows_.place_count * lanes<T>;
          for (int64_t tap = 0; tap < windows_.place_count; tap += most_taps)
            product_kernels<T>.add[std::min<int64_t>(most_taps, windows_.place_count - tap) - 1](
                {box, box_.line_step(), offsets + tap, gradient, wide.grid, count, wide.grid, to + tap * lanes<T>});
        }
      }
  }

  const Windows &windows_;
  const Box<T> box_;
  const T *source_, *gradient_;
  T *weight_;
  const int64_t share_, parts_; // pictures per part, and the number of parts
};

template <class T> void multiply(const Windows *phases, int64_t count, const T *source, const T *weight, T *result) {
  for (int64_t i = 0; i < count; i++) DepthwiseSums<T>(phases[i], source, weight, result).run();
}
template <class T> void weigh(const Windows &windows, const T *source, const T *gradient, T *weight) {
  DepthwiseWeighing<T>(windows, source, gradient, weight).run();
}

} // namespace

extern const DepthwiseKernels depthwise_kernels = {{multiply<double>, weigh<double>}, {multiply<float>, weigh<float>}};

} // namespace orchard::ORCHARD_ISA
