// Sums over windows with short lines. Gathering the source's elements under each window (windows.isa.cpp) costs more
// than the multiplications there, because each line is a separate copy. Here they are copied into boxes (box.h) once
// for all elements of the kernel. The lines of a box follow each other, so positions of several lines are adjacent:
//
//   sums[row, y · line + x] = Σ over steps of weight[row, step] · box[offset(step) + y · line + x]
//
// Sums between two lines belong to no position and are dropped. In the weight's gradient, ∂y is 0 there.
//
// How the depth and the positions are split depends on sizes only, so results do not depend on the number of threads.
#include "../matmul/tile.h"
#include "../memory.h"
#include "box.h"
#include "share_tasks.h"
#include "window_weight.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::convolution;

// A band: some lines of one plane of a picture.
struct Unit {
  int64_t picture, z, y, lines;
};

// The bands of all pictures, and the boxes that hold them.
template <class T> class Bands {
public:
  explicit Bands(const Windows &windows) : windows_(windows), box_(windows, windows.axes[2].grid) {
    const int64_t lines = windows.axes[1].grid,
                  bands = divided_up(lines, std::max<int64_t>(1, unit_positions / line()));
    box_.set_band(divided_up(lines, bands));
  }

  const Box<T> &box() const { return box_; }
  int64_t line() const { return box_.line_step(); }
  // The numbers from a band's first position to its last one.
  int64_t length() const { return (box_.band() - 1) * line() + windows_.axes[2].grid; }
  int64_t count() const { return windows_.batch * windows_.axes[0].grid * bands(); }

  Unit unit(int64_t number) const {
    const int64_t plane = number / bands(), y = number % bands() * box_.band(), planes = windows_.axes[0].grid;
    return {plane / planes, plane % planes, y, std::min(box_.band(), windows_.axes[1].grid - y)};
  }

  // Fills the box of a channel. What follows the box's elements is 0 too.
  void fill(const T *source, const Unit &unit, int64_t group, int64_t channel, T *box) const {
    const T *from =
        source + ((unit.picture * windows_.groups + group) * windows_.channels + channel) * windows_.pixels();
    if (unit.lines < box_.band()) std::fill_n(box, box_.size(), T(0));
    box_.fill(from, unit.z, unit.y, unit.lines, end_of(windows_, source), box);
    std::fill_n(box + box_.size() - lanes<T>, lanes<T>, T(0));
  }

private:
  int64_t bands() const { return divided_up(windows_.axes[1].grid, box_.band()); }

  const Windows &windows_;
  Box<T> box_;
};

// Where a line of the result begins.
inline int64_t line_of(const Windows &windows, const Unit &unit, int64_t y) {
  const auto &[deep, high, wide] = windows.axes;
  const auto along = [](const WindowAxis &axis, int64_t at) { return axis.result_first + at * axis.result_step; };
  return (along(deep, unit.z) * high.result + along(high, unit.y + y)) * wide.result + wide.result_first;
}

// ---------------------------------------------------------------- sums

// One tile: `rows` rows of the result at adjacent positions.
template <class T> struct PlaneTile {
  const T *weight;        // the rows of one step are adjacent
  const T *source;        // of the first position
  const int64_t *offsets; // one for each step
  int64_t steps;
  T *sums;
  int64_t stride; // between rows of sums
  bool is_added;
};

template <class T, int rows> void sum_plane(const PlaneTile<T> &args) {
  Sums<T, rows> sums = {};
  const T *weight = args.weight, *source = args.source;
  for (int64_t step = 0; step < args.steps; step++, weight += tile_rows)
    add_step<T, rows>(source + args.offsets[step], sums, [&](int r) { return weight[r]; });
  Tile<T> tile{};
  tile.c = args.sums, tile.c_stride = args.stride;
  tile.input = args.sums, tile.input_stride = args.stride;
  if (args.is_added) store_sums<T, rows, true>(tile, sums);
  else store_sums<T, rows, false>(tile, sums);
}

// Indexed by the number of rows minus 1.
template <class T> struct PlaneSums {
  void (*sum[tile_rows])(const PlaneTile<T> &);
};
template <class T, int... row> constexpr PlaneSums<T> plane_sums_of(std::integer_sequence<int, row...>) {
  return {{sum_plane<T, row + 1>...}};
}
template <class T> constexpr PlaneSums<T> plane_sums = plane_sums_of<T>(std::make_integer_sequence<int, tile_rows>());

template <class T> class Planes {
  static constexpr int64_t width = tile_columns<T>;

public:
  Planes(const Windows &windows, const T *source, const T *weight, T *result)
      : windows_(windows), bands_(windows), blocks_(windows, most_depth), source_(source), weight_(weight),
        result_(result), tiles_(divided_up(windows.rows, tile_rows)),
        tile_size_(rounded_up(windows.depth() * tile_rows + lanes<T>, 64)), stride_(rounded_up(bands_.length(), width)),
        places_(windows.place_count) {
    for (int64_t i = 0; i < windows.place_count; i++) places_.data()[i] = bands_.box().offset_of(windows.places[i]);
  }

  void run() {
    const int64_t units = windows_.groups * bands_.count(),
                  parts = std::clamp<int64_t>(divided_up(2 * thread_count(), units), 1, tiles_),
                  part_tiles = divided_up(tiles_, parts), tasks = units * divided_up(tiles_, part_tiles);
    const double operations = 2.0 * double(units * bands_.length()) * double(windows_.rows) * double(windows_.depth());
    const int64_t workers = workers_for(operations, tasks), boxes = block_channels() * bands_.box().size() + width,
                  size = rounded_up(boxes, 64) + rounded_up(part_tiles * tile_rows * stride_, 64);
    Scratch<T> packed(scratch_product({windows_.groups, tiles_, tile_size_}));
    Scratch<T> numbers(scratch_product({workers, size}));
    Scratch<int64_t> offsets(scratch_product({workers, blocks_.block}));
    pack_window_weight<T, tile_rows>(windows_, weight_, packed.data(), tile_size_);
    packed_ = packed.data();
    share_tasks(tasks, workers, [&](int64_t task, int64_t worker) {
      const int64_t unit = task % units, tile = task / units * part_tiles;
      T *memory = numbers.data() + worker * size;
      compute({unit / bands_.count(), tile, std::min(tile + part_tiles, tiles_), bands_.unit(unit % bands_.count()),
               memory, memory + rounded_up(boxes, 64), offsets.data() + worker * blocks_.block});
    });
  }

private:
  struct Task {
    int64_t group, tile, end_tile;
    Unit unit;
    T *boxes, *sums;
    int64_t *offsets;
  };

  // The channels that a block of the depth reads, at most.
  int64_t block_channels() const { return std::max<int64_t>(1, blocks_.block / windows_.place_count); }

  void compute(const Task &task) const {
    for (int64_t step = 0, end; step < windows_.depth(); step = end) {
      end = blocks_.end(step);
      const int64_t first = step / windows_.place_count, channels = (end - 1) / windows_.place_count + 1 - first;
      for (int64_t c = 0; c < channels; c++)
        bands_.fill(source_, task.unit, task.group, first + c, task.boxes + c * bands_.box().size());
      for (int64_t at = step; at < end; at++)
        task.offsets[at - step] =
            (at / windows_.place_count - first) * bands_.box().size() + place_offsets_[at % windows_.place_count];
      for (int64_t tile = task.tile; tile < task.end_tile; tile++) sum_tile(task, tile, step, end);
    }
    write(task);
  }

  void sum_tile(const Task &task, int64_t tile, int64_t step, int64_t end) const {
    const int64_t row = tile * tile_rows, rows = std::min<int64_t>(tile_rows, windows_.rows - row);
    T *sums = task.sums + (tile - task.tile) * tile_rows * stride_;
    const T *weight = packed_ + (task.group * tiles_ + tile) * tile_size_ + step * tile_rows;
    for (int64_t at = 0; at < stride_; at += width)
      plane_sums<T>.sum[rows - 1]({weight, task.boxes + at, task.offsets, end - step, sums + at, stride_, step > 0});
  }

  void write(const Task &task) const {
    const WindowAxis &wide = windows_.axes[2];
    const int64_t end_row = std::min(task.end_tile * tile_rows, windows_.rows);
    const T *sums = task.sums;
    for (int64_t row = task.tile * tile_rows; row < end_row; row++, sums += stride_) {
      T *to = result_ + ((task.unit.picture * windows_.groups + task.group) * windows_.rows + row) * windows_.results();
      for (int64_t y = 0; y < task.unit.lines; y++) {
        T *line = to + line_of(windows_, task.unit, y);
        const T *from = sums + y * bands_.line();
        if (wide.result_step == 1) std::copy_n(from, wide.grid, line);
        else
          for (int64_t x = 0; x < wide.grid; x++) line[x * wide.result_step] = from[x];
      }
    }
  }

  const Windows &windows_;
  const Bands<T> bands_;
  const DepthBlocks blocks_;
  const T *source_, *weight_;
  T *result_;
  const int64_t tiles_, tile_size_, stride_;
  Scratch<int64_t> places_;
  const int64_t *const place_offsets_ = places_.data();
  const T *packed_ = nullptr;
};

// ---------------------------------------------------------------- the weight's gradient

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int weigh_rows = 4, weigh_steps = 6; // of 32 registers
#else
constexpr int weigh_rows = 2, weigh_steps = 5; // of 16 registers
#endif

// The sums of some rows and steps over all bands of a part.
template <class T> struct PlaneWeights {
  const T *boxes;     // of one channel; those of the next band are `box_size` numbers later
  const T *gradients; // rows of `length` numbers; those of the next band are `band_size` later
  int64_t box_size, band_size, length;
  int64_t bands;
  int64_t offsets[weigh_steps];
  T sums[weigh_rows][weigh_steps];
};

template <class T, int rows> void weigh_plane(PlaneWeights<T> &args) {
  Vector<T> sums[rows][weigh_steps] = {};
  const T *box = args.boxes, *gradient = args.gradients;
  const int64_t length = args.length;
  for (int64_t band = 0; band < args.bands; band++, box += args.box_size, gradient += args.band_size)
    for (int64_t at = 0; at < length; at += lanes<T>) {
      Vector<T> factors[rows];
#pragma GCC unroll 4
      for (int r = 0; r < rows; r++) factors[r] = load_vector(gradient + r * length + at);
#pragma GCC unroll 6
      for (int s = 0; s < weigh_steps; s++) {
        const Vector<T> source = load_vector(box + args.offsets[s] + at);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) sums[r][s] = multiply_add<T>(source, factors[r], sums[r][s]);
      }
    }
  for (int r = 0; r < rows; r++)
    for (int s = 0; s < weigh_steps; s++) {
      T each[lanes<T>];
      store_vector<T>(sums[r][s], each);
      for (int half = lanes<T> / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++) each[lane] += each[lane + half];
      args.sums[r][s] = each[0];
    }
}

// Indexed by the number of rows minus 1.
template <class T> struct PlaneWeighings {
  void (*weigh[weigh_rows])(PlaneWeights<T> &);
};
template <class T, int... row> constexpr PlaneWeighings<T> weighings_of(std::integer_sequence<int, row...>) {
  return {{weigh_plane<T, row + 1>...}};
}
template <class T>
constexpr PlaneWeighings<T> plane_weighings = weighings_of<T>(std::make_integer_sequence<int, weigh_rows>());

template <class T> class PlaneWeighing {
public:
  PlaneWeighing(const Windows &windows, const T *source, const T *gradient, T *weight)
      : windows_(windows), bands_(windows), source_(source), gradient_(gradient), weight_(weight),
        length_(rounded_up(bands_.length(), lanes<T>)), parts_(count_parts()),
        part_bands_(divided_up(bands_.count(), parts_)), places_(windows.place_count) {
    for (int64_t i = 0; i < windows.place_count; i++) places_.data()[i] = bands_.box().offset_of(windows.places[i]);
  }

  void run() {
    const int64_t size = windows_.rows * windows_.depth(), tasks = parts_ * windows_.groups * windows_.channels;
    const double operations = 2.0 * double(bands_.count() * length_) * double(size) * double(windows_.groups);
    const int64_t workers = workers_for(operations, tasks), boxes = rounded_up(part_bands_ * bands_.box().size(), 64);
    Scratch<T> gradients(scratch_product({windows_.groups, bands_.count(), windows_.rows, length_}));
    Scratch<T> sums(scratch_product({parts_, windows_.groups, size})), numbers(scratch_product({workers, boxes}));
    spread_gradient(gradients.data());
    share_tasks(tasks, workers, [&](int64_t task, int64_t worker) {
      const int64_t channel = task % windows_.channels, group = task / windows_.channels % windows_.groups,
                    part = task / windows_.channels / windows_.groups;
      compute({part, group, channel, numbers.data() + worker * boxes, gradients.data(),
               sums.data() + (part * windows_.groups + group) * size});
    });
    add_parts(sums.data(), windows_.groups * size);
  }

private:
  struct Task {
    int64_t part, group, channel;
    T *boxes;
    const T *gradients;
    T *sums;
  };

  // Depends on sizes only. A power of two divides well among threads.
  int64_t count_parts() const {
    const int64_t size = windows_.groups * windows_.rows * windows_.depth(),
                  most = std::min({most_weigh_parts, bands_.count(), bands_.count() * length_ / least_plane_positions,
                                   most_weigh_sums / std::max<int64_t>(1, size)});
    int64_t parts = 1;
    while (2 * parts <= most) parts *= 2;
    return parts;
  }

  // Copies the gradient's lines to where their positions are in a box, with zeros between them.
  void spread_gradient(T *to) const {
    const int64_t grid = windows_.positions(), count = windows_.groups * bands_.count();
    parallel_for(count, std::max<int64_t>(1, 16384 / (windows_.rows * length_)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const Unit unit = bands_.unit(i % bands_.count());
        const auto &[deep, high, wide] = windows_.axes;
        for (int64_t row = 0; row < windows_.rows; row++) {
          T *spread = to + (i * windows_.rows + row) * length_;
          const T *from = gradient_ +
                          ((unit.picture * windows_.groups + i / bands_.count()) * windows_.rows + row) * grid +
                          (unit.z * high.grid + unit.y) * wide.grid;
          std::fill_n(spread, length_, T(0));
          for (int64_t y = 0; y < unit.lines; y++)
            std::copy_n(from + y * wide.grid, wide.grid, spread + y * bands_.line());
        }
      }
    });
  }

  void compute(const Task &task) const {
    const int64_t first = std::min(task.part * part_bands_, bands_.count()),
                  count = std::min(part_bands_, bands_.count() - first);
    for (int64_t i = 0; i < count; i++)
      bands_.fill(source_, bands_.unit(first + i), task.group, task.channel, task.boxes + i * bands_.box().size());
    PlaneWeights<T> args{};
    args.boxes = task.boxes;
    args.box_size = bands_.box().size(), args.band_size = windows_.rows * length_, args.length = length_;
    args.bands = count;
    const T *gradients = task.gradients + (task.group * bands_.count() + first) * args.band_size;
    for (int64_t place = 0; place < windows_.place_count; place += weigh_steps) {
      const int64_t steps = std::min<int64_t>(weigh_steps, windows_.place_count - place);
      for (int64_t s = 0; s < weigh_steps; s++) args.offsets[s] = place_offsets_[place + std::min(s, steps - 1)];
      for (int64_t row = 0; row < windows_.rows; row += weigh_rows) {
        const int64_t rows = std::min<int64_t>(weigh_rows, windows_.rows - row);
        args.gradients = gradients + row * length_;
        plane_weighings<T>.weigh[rows - 1](args);
        T *to = task.sums + row * windows_.depth() + task.channel * windows_.place_count + place;
        for (int64_t r = 0; r < rows; r++) std::copy_n(args.sums[r], steps, to + r * windows_.depth());
      }
    }
  }

  // weight = Σ over parts, in order.
  void add_parts(const T *sums, int64_t size) const {
    parallel_for(size, 16384, [&](int64_t begin, int64_t end) {
      std::copy(sums + begin, sums + end, weight_ + begin);
      for (int64_t part = 1; part < parts_; part++)
        for (int64_t i = begin; i < end; i++) weight_[i] += sums[part * size + i];
    });
  }

  const Windows &windows_;
  const Bands<T> bands_;
  const T *source_, *gradient_;
  T *weight_;
  const int64_t length_, parts_, part_bands_;
  Scratch<int64_t> places_;
  const int64_t *const place_offsets_ = places_.data();
};

// ---------------------------------------------------------------- which windows

template <class T> bool takes(const Windows &windows) {
  const auto &[deep, high, wide] = windows.axes;
  if (windows.place_count == 1 || high.step != 1 || wide.step != 1 || deep.step > unit_positions) return false;
  if (windows.rows <= 2 && windows.channels <= 2) return false; // the depthwise kernel
  const Bands<T> bands(windows);
  const int64_t block = DepthBlocks(windows, most_depth).block;
  const int64_t channels = std::max(std::max<int64_t>(1, block / windows.place_count), bands.count());
  if (double(bands.box().size()) * double(channels) > double(most_box_steps)) return false;
  const double grid = double(windows.batch * windows.positions()), rows = double(windows.rows),
               computed = double(bands.count() * rounded_up(bands.length(), tile_columns<T>));
  return computed * rows < grid * (rows + plane_bring + plane_line / double(wide.grid));
}

template <class T> void multiply(const Windows &windows, const T *source, const T *weight, T *result) {
  Planes<T>(windows, source, weight, result).run();
}
template <class T> void weigh(const Windows &windows, const T *source, const T *gradient, T *weight) {
  PlaneWeighing<T>(windows, source, gradient, weight).run();
}

} // namespace

extern const PlaneKernels plane_kernels = {{takes<double>, multiply<double>, weigh<double>},
                                           {takes<float>, multiply<float>, weigh<float>}};

} // namespace orchard::ORCHARD_ISA
