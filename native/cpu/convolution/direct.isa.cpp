// Direct convolution for grids whose lines divide into pieces that fill a tile. A tile's columns are rows of the
// result. Its rows are the positions of one or two pieces, which read a box of the source (box.h) at a fixed offset for
// each element of the kernel. Unlike im2col, this does not copy elements once per element of the kernel, and small
// pictures fill tiles as well as large ones.
//
//   pack the weight into panels of rows, with all steps of the depth adjacent                 [threads share them]
//   for each task, some bands of lines and some panels, in parallel:
//     for each block of channels:
//       copy the source's elements into boxes, one for each band and channel               [in the L2 cache]
//       for each panel: for each two pieces: sum a tile                                    [their elements: in L1]
//     transpose the sums into the result
//
// The split of the depth depends on its size only, so results do not depend on the number of threads.
#include "../matmul/tile.h"
#include "../memory.h"
#include "box.h"
#include "share_tasks.h"
#include "window_weight.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::convolution;

constexpr int tile_pieces = 2;
constexpr int most_length = tile_rows / tile_pieces, least_length = (most_length + 1) / 2; // positions of a piece

// The input of a tile: for each piece, the address of its first position in the first channel's box.
template <class T> struct Pieces {
  const T *sources[tile_pieces];
  const int64_t *offsets; // one for each step: the offset of its channel and kernel element in the boxes
  const T *weight;        // one step's rows are adjacent
  int64_t steps;
  T *sums; // one position's rows are adjacent
  bool is_added;
};

template <class T, int length, int pieces> void sum_pieces(const Pieces<T> &args) {
  constexpr int positions = length * pieces;
  Sums<T, positions> sums = {};
  const T *weight = args.weight, *first = args.sources[0], *last = args.sources[pieces - 1];
  for (int64_t step = 0; step < args.steps; step++, weight += tile_columns<T>) {
    const T *from_first = first + args.offsets[step], *from_last = last + args.offsets[step];
    add_step<T, positions>(weight, sums, [&](int r) { return r < length ? from_first[r] : from_last[r - length]; });
  }
  Tile<T> tile{};
  tile.c = args.sums, tile.c_stride = tile_columns<T>;
  tile.input = args.sums, tile.input_stride = tile_columns<T>;
  if (args.is_added) store_sums<T, positions, true>(tile, sums);
  else store_sums<T, positions, false>(tile, sums);
}

// Indexed by the number of pieces, then by their length minus `least_length`.
template <class T> struct PieceKernels {
  void (*sum[tile_pieces][most_length - least_length + 1])(const Pieces<T> &);
};
template <class T, int... more> constexpr PieceKernels<T> piece_kernels_of(std::integer_sequence<int, more...>) {
  return {{{sum_pieces<T, least_length + more, 1>...}, {sum_pieces<T, least_length + more, 2>...}}};
}
template <class T>
constexpr PieceKernels<T> piece_kernels =
    piece_kernels_of<T>(std::make_integer_sequence<int, most_length - least_length + 1>());

// Returns the length of pieces with the lowest cost; among equals, the largest. A piece costs its positions, plus half
// a position for its loads.
int64_t piece_length(int64_t grid) {
  const auto cost = [&](int64_t length) { return divided_up(grid, length) * (2 * length + 1); };
  int64_t best = most_length;
  for (int64_t length = most_length - 1; length >= least_length; length--)
    if (cost(length) < cost(best)) best = length;
  return best;
}

// A task: some units, which are bands of a picture's planes, and some panels of rows.
struct DirectTask {
  int64_t group, unit, units, panel, panels;
};

// A thread's scratch memory: boxes, sums, one panel's weights for a block, and the offsets of the pieces in the boxes.
template <class T> struct DirectSpace {
  T *boxes, *sums, *weights;
  int64_t *pieces;
};

template <class T> class Direct {
public:
  static constexpr int64_t width = tile_columns<T>;

  Direct(const Windows &windows, const T *source, const T *weight, T *result)
      : windows_(windows), blocks_(windows, most_channels), source_(source), weight_(weight), result_(result),
        length_(piece_length(windows.axes[2].grid)), line_pieces_(divided_up(windows.axes[2].grid, length_)),
        panels_(divided_up(windows.rows, width)), panel_size_(rounded_up(windows.depth() * width + lanes<T>, 64)),
        block_channels_(blocks_.block / windows.place_count), box_(windows, line_pieces_ * length_) {
    divide();
  }

  // Returns whether the kernel applies: tiles have little padding, and the boxes that one line needs fit in a task's
  // scratch memory.
  static bool takes(const Windows &windows) {
    const WindowAxis &wide = windows.axes[2];
    if (!windows.is_whole() || windows.place_count == 1 || windows.place_count > most_channels) return false;
    const int64_t line = rounded_up(wide.grid, piece_length(wide.grid)), rows = rounded_up(windows.rows, width);
    if (double(line) * double(rows) > most_padding * double(wide.grid) * double(windows.rows)) return false;
    return line <= task_positions && Box<T>(windows, line).size() * most_channels <= task_numbers * windows.place_count;
  }

  void run() {
    const int64_t size = boxes_size() + sums_size() + weights_size(),
                  tasks = windows_.groups * unit_tasks() * panel_tasks(), workers = workers_for(operations(), tasks);
    // If only one task uses each weight, that task packs its weights itself.
    Scratch<T> packed(unit_tasks() > 1 ? scratch_product({windows_.groups, panels_, panel_size_}) : 0);
    Scratch<T> numbers(scratch_product({workers, size}));
    Scratch<int64_t> pieces(scratch_product({workers, most_pieces()})), offsets(blocks_.block);
    if (unit_tasks() > 1) pack_window_weight<T, width>(windows_, weight_, packed.data(), panel_size_);
    packed_ = unit_tasks() > 1 ? packed.data() : nullptr, offsets_ = offsets.data();
    for (int64_t step = 0; step < blocks_.block; step++)
      offsets.data()[step] =
          step / windows_.place_count * box_.size() + box_.offset_of(windows_.places[step % windows_.place_count]);
    share_tasks(tasks, workers, [&](int64_t task, int64_t worker) {
      const int64_t unit = task / panel_tasks() % unit_tasks() * task_units_,
                    panel = task % panel_tasks() * task_panels_;
      T *boxes = numbers.data() + worker * size, *sums = boxes + boxes_size();
      compute({task / panel_tasks() / unit_tasks(), unit, std::min(task_units_, units() - unit), panel,
               std::min(task_panels_, panels_ - panel)},
              {boxes, sums, sums + sums_size(), pieces.data() + worker * most_pieces()});
    });
  }

private:
  // A band: some lines of one plane of a picture.
  struct Unit {
    int64_t picture, z, y, lines;
  };

  int64_t bands() const { return divided_up(windows_.axes[1].grid, box_.band()); }
  int64_t units() const { return windows_.batch * windows_.axes[0].grid * bands(); }
  int64_t unit_tasks() const { return divided_up(units(), task_units_); }
  int64_t panel_tasks() const { return divided_up(panels_, task_panels_); }
  int64_t unit_boxes() const { return block_channels_ * box_.size(); }
  int64_t most_pieces() const { return task_units_ * box_.band() * line_pieces_; }
  int64_t boxes_size() const { return rounded_up(task_units_ * unit_boxes() + lanes<T>, 64); }
  // Includes room for the loads past the last piece.
  int64_t sums_size() const { return rounded_up((task_panels_ * most_pieces() * length_ + lanes<T>)*width, 64); }
  int64_t weights_size() const { return rounded_up(blocks_.block * width + lanes<T>, 64); }
  double operations() const {
    return 2.0 * double(windows_.batch * windows_.groups * windows_.positions()) * double(windows_.rows) *
           double(windows_.depth());
  }

  Unit unit_of(int64_t number) const {
    const int64_t plane = number / bands(), y = number % bands() * box_.band(), planes = windows_.axes[0].grid;
    return {plane / planes, plane % planes, y, std::min(box_.band(), windows_.axes[1].grid - y)};
  }

  // Chooses the lines of a band, and the bands and panels of a task, so that all threads finish at the same time. Costs
  // are in units of one position times one row. Each position costs `direct_bring` rows for filling the boxes; each
  // panel costs `direct_read` positions for reading its weights.
  void divide() {
    const int64_t threads = thread_count(), lines = windows_.axes[1].grid, line = line_pieces_ * length_,
                  most = std::min(box_.lines_within(task_numbers / block_channels_, 1),
                                  std::max<int64_t>(1, task_positions / line));
    double least = std::numeric_limits<double>::infinity();
    int64_t best = 1;
    for (int64_t parts = divided_up(lines, most); parts <= std::min(lines, divided_up(lines, most) + 2 * threads);
         parts++) {
      box_.set_band(divided_up(lines, parts));
      const int64_t positions = box_.band() * line, brought = (box_.band() + 1) * line * direct_bring,
                    fitting = std::max<int64_t>(1, std::min(task_positions / positions, task_numbers / unit_boxes()));
      for (int64_t panels = 1; panels <= panels_; panels++)
        for (int64_t count = 1; count <= std::min(fitting, units()); count++) {
          if (count * panels > 1 && count * positions * panels * width > task_numbers) break;
          const int64_t tasks = windows_.groups * divided_up(units(), count) * divided_up(panels_, panels);
          const double cost = double(divided_up(tasks, threads)) *
                              double(count * (positions * panels * width + brought) + panels * width * direct_read);
          if (cost < least) least = cost, best = box_.band(), task_units_ = count, task_panels_ = panels;
        }
    }
    box_.set_band(best);
  }

  void compute(const DirectTask &task, const DirectSpace<T> &space) const {
    int64_t pieces = 0;
    for (int64_t i = 0; i < task.units; i++)
      for (int64_t line = 0; line < unit_of(task.unit + i).lines; line++)
        for (int64_t piece = 0; piece < line_pieces_; piece++)
          space.pieces[pieces++] = i * unit_boxes() + line * box_.line_step() + piece * length_;
    for (int64_t step = 0, end; step < windows_.depth(); step = end) {
      end = blocks_.end(step);
      fill_boxes(task, space.boxes, step / windows_.place_count, end / windows_.place_count);
      for (int64_t panel = 0; panel < task.panels; panel++)
        sum_panel(weights_of(task, task.panel + panel, step, end, space.weights), step, end, pieces, space,
                  space.sums + panel * pieces * length_ * width);
    }
    for (int64_t panel = 0; panel < task.panels; panel++)
      finish_panel(task, task.panel + panel, space.sums + panel * pieces * length_ * width);
  }

  void fill_boxes(const DirectTask &task, T *boxes, int64_t channel, int64_t end) const {
    for (int64_t i = 0; i < task.units; i++) {
      const Unit unit = unit_of(task.unit + i);
      const T *from = source_ + (unit.picture * windows_.groups + task.group) * windows_.channels * windows_.pixels();
      for (int64_t c = channel; c < end; c++)
        box_.fill(from + c * windows_.pixels(), unit.z, unit.y, unit.lines, end_of(windows_, source_),
                  boxes + i * unit_boxes() + (c - channel) * box_.size());
    }
  }

  // Returns the packed weights of a panel for one block.
  const T *weights_of(const DirectTask &task, int64_t panel, int64_t step, int64_t end, T *space) const {
    if (packed_) return packed_ + (task.group * panels_ + panel) * panel_size_ + step * width;
    pack_window_panel<T, width>(windows_, weight_, task.group, panel * width, step / windows_.place_count,
                                end / windows_.place_count, space);
    return space;
  }

  void sum_panel(const T *weights, int64_t step, int64_t end, int64_t count, const DirectSpace<T> &space,
                 T *sums) const {
    Pieces<T> pieces{{}, offsets_, weights, end - step, sums, step > 0};
    for (int64_t i = 0; i < count; i += tile_pieces, pieces.sums += tile_pieces * length_ * width) {
      const int64_t more = std::min<int64_t>(tile_pieces, count - i);
      for (int64_t piece = 0; piece < more; piece++) pieces.sources[piece] = space.boxes + space.pieces[i + piece];
      piece_kernels<T>.sum[more - 1][length_ - least_length](pieces);
    }
  }

  // Without padding positions, the lines of a unit form one contiguous run.
  void finish_panel(const DirectTask &task, int64_t panel, const T *sums) const {
    const auto &[deep, high, wide] = windows_.axes;
    const int64_t line = line_pieces_ * length_, row = panel * width, rows = std::min(width, windows_.rows - row);
    for (int64_t i = 0; i < task.units; i++) {
      const Unit unit = unit_of(task.unit + i);
      T *to = result_ + ((unit.picture * windows_.groups + task.group) * windows_.rows + row) * windows_.results() +
              (unit.z * high.grid + unit.y) * wide.grid;
      if (line == wide.grid) write_run(sums, unit.lines * line, rows, to);
      else
        for (int64_t y = 0; y < unit.lines; y++)
          write_run(sums + y * line * width, wide.grid, rows, to + y * wide.grid);
      sums += unit.lines * line * width;
    }
  }

  // Transposes rows of positions into rows of the result. The last square overlaps the previous one, so that it is
  // whole.
  void write_run(const T *sums, int64_t count, int64_t rows, T *to) const {
    T part[width * lanes<T>];
    const int64_t stride = windows_.results(), whole = std::min<int64_t>(lanes<T>, count);
    for (int64_t at = 0; at < count; at += lanes<T>) {
      const T *from = sums + std::min(at, count - whole) * width;
      T *square = to + std::min(at, count - whole);
      for (int64_t row = 0; row < rows; row += lanes<T>) {
        const auto position = [&](int r) { return from + r * width + row; };
        if (whole == lanes<T>) transpose_rows<T>(position, square + row * stride, stride, rows - row);
        else transpose_rows<T>(position, part + row * lanes<T>, lanes<T>, rows - row);
      }
      if (whole < lanes<T>)
        for (int64_t row = 0; row < rows; row++) std::copy_n(part + row * lanes<T>, whole, square + row * stride);
    }
  }

  const Windows &windows_;
  const DepthBlocks blocks_;
  const T *source_, *weight_;
  T *result_;
  const int64_t length_, line_pieces_, panels_, panel_size_, block_channels_;
  Box<T> box_;
  int64_t task_units_ = 1, task_panels_ = 1;
  const T *packed_ = nullptr;
  const int64_t *offsets_ = nullptr;
};

template <class T> bool takes(const Windows &windows) { return Direct<T>::takes(windows); }
template <class T> void multiply(const Windows &windows, const T *source, const T *weight, T *result) {
  Direct<T>(windows, source, weight, result).run();
}

} // namespace

extern const DirectKernels direct_kernels = {{takes<double>, multiply<double>}, {takes<float>, multiply<float>}};

} // namespace orchard::ORCHARD_ISA
