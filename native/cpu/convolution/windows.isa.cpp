// Sums over windows as matrix products (implicit im2col): the matrix of source elements is never stored as a whole; its
// blocks are gathered into a cache.
//
//   pack the weight into tiles of rows, with all steps of the depth adjacent                  [threads share them]
//   for each task, some positions and some tiles of rows, in parallel:
//     for each block of the depth:
//       gather the source's elements under the positions into panels                       [in the L2 cache]
//       for each tile of rows: for each panel: sum a tile of the result                    [a tile's weights: in L1]
//
// The split of the depth depends on its size only, so results do not depend on the number of threads.
#include "../matmul/tile.h"
#include "../memory.h"
#include "share_tasks.h"
#include "window_rows.h"
#include "window_weight.h"
#include "tuning.h"

#include <vector>

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::convolution;

// The division of positions and rows into tasks: the panels and the tiles of rows of each task.
struct Division {
  int64_t panels, tiles;
};

// A task: the panel where its positions begin, its tiles of rows, and the number that selects the thread's scratch
// memory.
template <class T> struct Task {
  int64_t group, first_panel, tile, end_tile, worker;
  T *panels, *sums;
};

template <class T> class Multiplication {
public:
  static constexpr int64_t width = tile_columns<T>;

  Multiplication(const Windows &phase, const T *source, const T *weight, T *result)
      : windows_(phase), blocks_(phase, most_depth), source_(source), weight_(weight), result_(result),
        source_end_(source + phase.batch * phase.groups * phase.channels * phase.pixels()),
        positions_(phase.batch * phase.positions()), tiles_(divided_up(phase.rows, tile_rows)),
        tile_size_(rounded_up(phase.depth() * tile_rows + lanes<T>, 64)), is_whole_(phase.is_whole()) {}

  const Windows &windows() const { return windows_; }
  int64_t panels() const { return divided_up(positions_, width); }
  int64_t tiles() const { return tiles_; }
  int64_t block() const { return blocks_.block; }
  int64_t places() const { return blocks_.places(); }
  int64_t packed_size() const { return windows_.groups * tiles_ * tile_size_; }
  double operations() const {
    return 2.0 * double(windows_.groups * positions_) * double(windows_.rows) * double(windows_.depth());
  }
  // Includes room for the stores past its end.
  static int64_t panel_size(int64_t steps) { return steps * width + line_numbers; }

  void pack_weight(T *packed) {
    packed_ = packed;
    pack_window_weight<T, tile_rows>(windows_, weight_, packed, tile_size_);
  }

  void compute(const Task<T> &task, RowSpace<T> &space, int64_t panels) const {
    Part part{task, std::min(panels, this->panels() - task.first_panel), panel_size(block()), {}};
    for (int64_t panel = 0; panel < part.count; panel++) {
      const int64_t first = first_of(task, panel), end = std::min(first + width, positions_);
      part.run_counts[panel] = find_runs(windows_, first, end, space.runs_of(task.worker, panel));
    }
    for (int64_t step = 0, end; step < windows_.depth(); step = end) {
      end = blocks_.end(step);
      bring_panels(part, space, step, end);
      for (int64_t tile = task.tile; tile < task.end_tile; tile++)
        for (int64_t panel = 0; panel < part.count; panel++) multiply_tile_of(part, tile, panel, step, end);
    }
    for (int64_t panel = 0; panel < part.count; panel++)
      if (!is_direct(task, panel)) finish_panel(part, panel, space.runs_of(task.worker, panel), part.run_counts[panel]);
  }

private:
  struct Part {
    const Task<T> &task;
    int64_t count, panel_size; // of panels
    int64_t run_counts[most_panels];
  };

  // Gathers one channel's elements for all panels before the next channel's, since elements of a channel are adjacent.
  void bring_panels(const Part &part, RowSpace<T> &space, int64_t step, int64_t end) const {
    const Task<T> &task = part.task;
    const int64_t first = step % windows_.place_count, places = std::min(windows_.place_count, end - step);
    for (int64_t panel = 0; panel < part.count; panel++)
      space.find_rows(windows_, task.worker, panel, part.run_counts[panel], first, first + places, width);
    const T *channel = source_ + (task.group * windows_.channels + step / windows_.place_count) * windows_.pixels();
    T *to = task.panels;
    for (int64_t at = step; at < end; at += places, channel += windows_.pixels(), to += places * width)
      for (int64_t panel = 0; panel < part.count; panel++)
        space.copy(task.worker, panel, windows_.axes[2].step, places, channel, source_end_,
                   to + panel * part.panel_size, width);
  }

  static int64_t first_of(const Task<T> &task, int64_t panel) { return (task.first_panel + panel) * width; }

  // Returns whether a panel's sums are adjacent elements of one row of the result.
  bool is_direct(const Task<T> &task, int64_t panel) const {
    const int64_t first = first_of(task, panel), grid = windows_.positions();
    return is_whole_ && first + width <= positions_ && first / grid == (first + width - 1) / grid;
  }

  T *result_of(const Task<T> &task, int64_t picture, int64_t row) const {
    return result_ + ((picture * windows_.groups + task.group) * windows_.rows + row) * windows_.results();
  }

  void multiply_tile_of(const Part &part, int64_t number, int64_t panel, int64_t step, int64_t end) const {
    const Task<T> &task = part.task;
    const int64_t row = number * tile_rows, height = std::min<int64_t>(tile_rows, windows_.rows - row);
    Tile<T> tile;
    tile.depth = end - step;
    tile.a = packed_ + (task.group * tiles_ + number) * tile_size_ + step * tile_rows, tile.a_stride = tile_rows;
    tile.b = task.panels + panel * part.panel_size, tile.b_stride = width;
    if (is_direct(task, panel)) {
      const int64_t first = first_of(task, panel), picture = first / windows_.positions();
      tile.c = result_of(task, picture, row) + first % windows_.positions(), tile.c_stride = windows_.results();
    } else tile.c = sums_of(part, panel, row), tile.c_stride = part.count * width;
    tile.input = step > 0 ? tile.c : nullptr, tile.input_stride = tile.c_stride;
    tile_kernels<T, Adjacent::step>.multiply[height - 1](tile);
  }

  static T *sums_of(const Part &part, int64_t panel, int64_t row) {
    return part.task.sums + ((row - part.task.tile * tile_rows) * part.count + panel) * width;
  }

  // Writes the sums to their elements of the result.
  void finish_panel(const Part &part, int64_t panel, const Run *runs, int64_t count) const {
    const Task<T> &task = part.task;
    const auto &[deep, high, wide] = windows_.axes;
    const auto along = [](const WindowAxis &axis, int64_t at) { return axis.result_first + at * axis.result_step; };
    const int64_t end_row = std::min(task.end_tile * tile_rows, windows_.rows);
    for (int64_t i = 0; i < count; i++) {
      const Run &run = runs[i];
      const int64_t at = (along(deep, run.z) * high.result + along(high, run.y)) * wide.result + along(wide, run.x);
      for (int64_t row = task.tile * tile_rows; row < end_row; row++)
        scatter_line(sums_of(part, panel, row) + run.at, run.count, result_of(task, run.picture, row) + at,
                     wide.result_step);
    }
  }
  static void scatter_line(const T *from, int64_t count, T *to, int64_t step) {
    if (step == 1) std::copy_n(from, count, to);
    else
      for (int64_t x = 0; x < count; x++) to[x * step] = from[x];
  }

  const Windows &windows_;
  const DepthBlocks blocks_;
  const T *source_, *weight_;
  T *result_;
  const T *source_end_;
  const int64_t positions_, tiles_, tile_size_;
  const bool is_whole_;
  const T *packed_ = nullptr;
};

// Chooses the panels and tiles of a task so that all threads finish at the same time. Costs are in units of one tile
// row times one step. A panel costs its rows plus `windows_bring` for gathering it; a tile costs `windows_read` for its
// weights.
Division divide(int64_t groups, int64_t panels, int64_t tiles, int64_t block) {
  const int64_t threads = thread_count(),
                fitting = std::clamp<int64_t>(most_panels * most_depth / block, 1, most_panels);
  Division best{1, tiles};
  int64_t least = INT64_MAX;
  for (int64_t parts = 1; parts <= std::min(tiles, 2 * threads); parts++)
    for (int64_t count = std::min(panels, fitting); count > 0; count--) {
      const int64_t height = divided_up(tiles, parts),
                    tasks = groups * divided_up(panels, count) * divided_up(tiles, height);
      const int64_t cost =
          divided_up(tasks, threads) * (count * (height * tile_rows + windows_bring) + height * windows_read);
      if (cost < least) least = cost, best = {count, height};
    }
  return best;
}

// Computes all phases of a result. A task computes the same part of each phase: neighboring elements belong to
// different phases, and are written while their cache line is in the cache.
template <class T>
void multiply(const Windows *phases, int64_t phase_count, const T *source, const T *weight, T *result) {
  std::vector<Multiplication<T>> all;
  all.reserve(static_cast<size_t>(phase_count));
  int64_t panels = 0, block = 0, places = 0, runs = 0, packed_size = 0;
  double operations = 0;
  for (int64_t i = 0; i < phase_count; i++) {
    const Multiplication<T> &phase = all.emplace_back(phases[i], source, weight, result);
    panels = std::max(panels, phase.panels()), block = std::max(block, phase.block());
    places = std::max(places, phase.places()), operations += phase.operations();
    runs = std::max(runs, most_runs(phases[i], Multiplication<T>::width)), packed_size += phase.packed_size();
  }
  constexpr int64_t width = Multiplication<T>::width;
  const int64_t tiles = all[0].tiles(), groups = phases[0].groups;
  const Division division = divide(groups, panels, tiles, block);
  const int64_t panel_tasks = divided_up(panels, division.panels), tile_tasks = divided_up(tiles, division.tiles),
                tasks = groups * panel_tasks * tile_tasks, workers = workers_for(operations, tasks);
  Scratch<T> packed(packed_size);
  T *next = packed.data();
  for (Multiplication<T> &phase : all) phase.pack_weight(next), next += phase.packed_size();
  const int64_t panels_size = division.panels * Multiplication<T>::panel_size(block),
                size = panels_size + division.tiles * rounded_up(tile_rows * division.panels * width, 64);
  Scratch<T> numbers(scratch_product({workers, size}));
  RowSpace<T> space(runs, places, division.panels, workers);
  share_tasks(tasks, workers, [&](int64_t task, int64_t worker) {
    const int64_t tile = task % tile_tasks * division.tiles, panel = task / tile_tasks % panel_tasks * division.panels;
    T *memory = numbers.data() + worker * size;
    for (const Multiplication<T> &phase : all)
      if (panel < phase.panels())
        phase.compute({task / tile_tasks / panel_tasks, panel, tile, std::min(tile + division.tiles, tiles), worker,
                       memory, memory + panels_size},
                      space, division.panels);
  });
}

// The gradient of the weight, as a matrix product: its rows are steps of the depth, its columns are the result's rows,
// and its depth is the positions. The positions are divided into parts; each is summed separately, and the parts' sums
// are added in order.
//
//   sums[part][step, row] = Σ over the part's positions p of source under p [step, p] · gradient[row, p]
template <class T> class Weighing {
  static constexpr int64_t width = tile_columns<T>;
  static constexpr int64_t block_positions = weigh_positions, row_stride = block_positions + weigh_padding;
  static constexpr int64_t block_steps = weigh_tiles * tile_rows;

public:
  Weighing(const Windows &windows, const T *source, const T *gradient, T *weight)
      : windows_(windows), source_(source), gradient_(gradient), weight_(weight),
        source_end_(source + windows.batch * windows.groups * windows.channels * windows.pixels()),
        positions_(windows.batch * windows.positions()), panels_(divided_up(windows.rows, width)),
        sums_size_(windows.depth() * panels_ * width), parts_(count_parts()),
        part_positions_(rounded_up(divided_up(positions_, parts_), block_positions)) {}

  void run() {
    divide();
    const int64_t chunks = divided_up(windows_.depth(), chunk_), tasks = parts_ * windows_.groups * chunks;
    const int64_t workers = workers_for(operations(), tasks);
    const DepthBlocks blocks(windows_, block_steps);
    const int64_t source_size = blocks.block * row_stride + 64, gradient_size = panels_ * block_positions * width;
    Scratch<T> sums(scratch_product({parts_, windows_.groups, sums_size_}));
    Scratch<T> numbers(scratch_product({workers, source_size + gradient_size}));
    RowSpace<T> rows(most_runs(windows_, block_positions), blocks.places(), 1, workers);
    share_tasks(tasks, workers, [&](int64_t task, int64_t worker) {
      const int64_t part = task / chunks / windows_.groups, group = task / chunks % windows_.groups,
                    step = task % chunks * chunk_;
      T *space = numbers.data() + worker * (source_size + gradient_size);
      compute({part, group, step, std::min(step + chunk_, windows_.depth()),
               sums.data() + (part * windows_.groups + group) * sums_size_, space, space + source_size, worker},
              blocks, rows);
    });
    add_parts(sums.data());
  }

private:
  struct Task {
    int64_t part, group, step, end_step;
    T *sums, *source, *gradient;
    int64_t worker;
  };

  double operations() const {
    return 2.0 * double(windows_.groups * positions_) * double(windows_.rows) * double(windows_.depth());
  }

  // Returns the number of parts, which depends on sizes only: a power of two, which divides well among threads.
  int64_t count_parts() const {
    const int64_t most = std::min({most_weigh_parts, positions_ / least_weigh_positions,
                                   most_weigh_sums / std::max<int64_t>(1, windows_.groups * sums_size_)});
    int64_t parts = 1;
    while (2 * parts <= most) parts *= 2;
    return parts;
  }

  // Chooses the steps of a task, whole channels, so that all threads finish at the same time. Each task packs the
  // gradient's columns again.
  void divide() {
    const int64_t threads = thread_count(), unit = std::max(windows_.place_count, int64_t(tile_rows)),
                  most = std::max<int64_t>(1, std::min(windows_.depth() / unit, 4 * threads)),
                  others = parts_ * windows_.groups;
    int64_t least = INT64_MAX;
    for (int64_t count = 1; count <= most; count++) {
      const int64_t channels = divided_up(windows_.channels, count), steps = channels * windows_.place_count,
                    tasks = others * divided_up(windows_.channels, channels);
      const int64_t cost = divided_up(tasks, threads) * (rounded_up(steps, tile_rows) + 14);
      if (cost < least) least = cost, chunk_ = steps;
    }
  }

  void compute(const Task &task, const DepthBlocks &blocks, RowSpace<T> &rows) const {
    const int64_t first = std::min(task.part * part_positions_, positions_),
                  end = std::min(first + part_positions_, positions_);
    if (first == end)
      std::fill(task.sums + task.step * panels_ * width, task.sums + task.end_step * panels_ * width, T(0));
    for (int64_t at = first; at < end; at += block_positions) {
      const int64_t count = std::min(block_positions, end - at);
      bring_gradient(task, at, count);
      const int64_t run_count = find_runs(windows_, at, at + count, rows.runs_of(task.worker, 0));
      for (int64_t step = task.step, next; step < task.end_step; step = next) {
        next = std::min(blocks.end(step), task.end_step);
        bring_source(task, rows, run_count, step, next, count);
        multiply_block(task, step, next, count, at > first);
      }
    }
  }

  // Packs the gradient. Its rows are the columns of the product, so they are transposed, picture by picture.
  void bring_gradient(const Task &task, int64_t first, int64_t count) const {
    const int64_t grid = windows_.positions();
    for (int64_t row = 0; row < windows_.rows; row += width)
      for (int64_t at = first, length; at < first + count; at += length) {
        length = std::min(grid - at % grid, first + count - at);
        const T *from =
            gradient_ + ((at / grid * windows_.groups + task.group) * windows_.rows + row) * grid + at % grid;
        pack_panel<T, width>(from, grid, 1, std::min(width, windows_.rows - row), length,
                             task.gradient + row * block_positions + (at - first) * width);
      }
  }

  void bring_source(const Task &task, RowSpace<T> &rows, int64_t run_count, int64_t step, int64_t end,
                    int64_t count) const {
    const int64_t first = step % windows_.place_count, places = std::min(windows_.place_count, end - step);
    rows.find_rows(windows_, task.worker, 0, run_count, first, first + places, count);
    const T *channel = source_ + (task.group * windows_.channels + step / windows_.place_count) * windows_.pixels();
    T *to = task.source;
    for (int64_t at = step; at < end; at += places, channel += windows_.pixels(), to += places * row_stride)
      rows.copy(task.worker, 0, windows_.axes[2].step, places, channel, source_end_, to, row_stride);
  }

  void multiply_block(const Task &task, int64_t step, int64_t end, int64_t count, bool is_added) const {
    const int64_t tiles = divided_up(end - step, tile_rows), height = (end - step) / tiles,
                  taller = (end - step) % tiles;
    Tile<T> tile;
    tile.depth = count;
    tile.a_stride = row_stride, tile.b_stride = width;
    tile.c_stride = tile.input_stride = panels_ * width;
    for (int64_t i = 0, row = 0; i < tiles; i++) {
      const int64_t rows = height + (i < taller);
      for (int64_t panel = 0; panel < panels_; panel++) {
        tile.a = task.source + row * row_stride;
        tile.b = task.gradient + panel * block_positions * width;
        tile.c = task.sums + (step + row) * panels_ * width + panel * width;
        tile.input = is_added ? tile.c : nullptr;
        tile_kernels<T, Adjacent::row>.multiply[rows - 1](tile);
      }
      row += rows;
    }
  }

  // weight[row, step] = Σ over parts of sums[part][step, row], in order.
  void add_parts(const T *sums) const {
    constexpr int64_t steps = 16;
    const int64_t depth = windows_.depth(), blocks = divided_up(depth, steps);
    const int64_t grain = std::max<int64_t>(1, 16384 / (parts_ * panels_ * width * steps));
    parallel_for(windows_.groups * blocks, grain, [&](int64_t begin, int64_t end) {
      T total[steps][width];
      for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / blocks, step = i % blocks * steps, count = std::min(steps, depth - step);
        for (int64_t row = 0; row < windows_.rows; row += width) {
          for (int64_t s = 0; s < count; s++) add_rows(sums, group, (step + s) * panels_ * width + row, total[s]);
          for (int64_t r = 0; r < std::min(width, windows_.rows - row); r++)
            for (int64_t s = 0; s < count; s++)
              weight_[(group * windows_.rows + row + r) * depth + step + s] = total[s][r];
        }
      }
    });
  }
  void add_rows(const T *sums, int64_t group, int64_t at, T *total) const {
    const T *from = sums + group * sums_size_ + at;
    for (int64_t r = 0; r < width; r++) total[r] = from[r];
    for (int64_t part = 1; part < parts_; part++) {
      from += windows_.groups * sums_size_;
      for (int64_t r = 0; r < width; r++) total[r] += from[r];
    }
  }

  const Windows &windows_;
  const T *source_, *gradient_;
  T *weight_;
  const T *source_end_;
  const int64_t positions_, panels_, sums_size_, parts_, part_positions_;
  int64_t chunk_ = 1;
};

template <class T> void weigh(const Windows &windows, const T *source, const T *gradient, T *weight) {
  Weighing<T>(windows, source, gradient, weight).run();
}

} // namespace

extern const WindowKernels window_kernels = {{multiply<double>, weigh<double>}, {multiply<float>, weigh<float>}};

} // namespace orchard::ORCHARD_ISA
