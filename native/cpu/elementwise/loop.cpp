#include "loop.h"

#include "../copy/copy.h"
#include "../creation/creation.h"
#include "../parallel.h"
#include "../pieces.h"
#include "runs.h"
#include "stream.h"
#include "tuning.h"
#include "../streamed.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace orchard {
namespace {

using namespace tuning::elementwise;

constexpr int64_t widest = 8; // bytes of an element

int index_of_size(int64_t size) { return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3; }

// Calls use(T{}) for an unsigned integer type T of `size` bytes.
template <class Use> void with_size(int64_t size, Use &&use) {
  switch (size) {
  case 1: return use(uint8_t{});
  case 2: return use(uint16_t{});
  case 4: return use(uint32_t{});
  default: return use(uint64_t{});
  }
}

// The longest runs with a stride that are gathered with others like them, unless they have a few elements.
int64_t longest_whole(int64_t stride) { return stride == 1 ? longest_gathered : stride == 0 ? longest_repeated : 0; }

// Repeats an element, in whole cache lines: loads of vectors wait for narrower stores to the same bytes.
void repeat(const char *from, int64_t size, int64_t count, char *buffer) {
  constexpr int64_t line = 64;
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(size));
  const int64_t lines = (count * size + line - 1) / line;
  creations().fill[index_of_size(size)](buffer, bits, lines * (line / size), 1);
}

} // namespace

// An operand's layout and addresses during a call.
struct Loop::View {
  Layout layout;
  const LoopOperand *operand;
  int64_t period; // the period of repeating elements, if it is at most half a tile; otherwise 0

  int64_t size() const { return operand->size; }
  char *first() const { return operand->first; }
  char *dense(int64_t start) const { return first() + start * size(); }
};

// A transposed operand has its closest elements along an axis that is not the innermost. It is read in blocks over
// that axis and the innermost one, which are transposed in the L1 cache.
struct Loop::Blocks {
  int outer;            // the other axis
  int64_t wide, high;   // elements of a block along it and along the innermost axis
  int64_t across, down; // blocks along them
  bool is_dense;        // a block's elements are adjacent in the result
  bool has_few;
  bool is_transposed[max_operands];
};

// A block's size, and the offset of its first element in each operand, in elements.
struct Loop::Block {
  int64_t wide, high;
  int64_t places[max_operands];
};

void Loop::add_axis(int64_t size, const int64_t *strides) {
  count_ *= size;
  if (size == 1) return;
  bool joins = rank_ > 0;
  for (int i = 0; joins && i < operands_; i++) joins = operand_[i].strides[rank_ - 1] == strides[i] * size;
  if (joins) shape_[rank_ - 1] *= size;
  else shape_[rank_++] = size;
  for (int i = 0; i < operands_; i++) operand_[i].strides[rank_ - 1] = strides[i];
}

Loop::Layout Loop::layout_of(const LoopOperand &operand) const {
  bool is_constant = true, is_dense = true;
  int64_t run = 1;
  for (int axis = rank_ - 1; axis >= 0; axis--) {
    is_constant = is_constant && operand.strides[axis] == 0;
    is_dense = is_dense && operand.strides[axis] == run;
    run *= shape_[axis];
  }
  if (is_dense) return Layout::dense;
  return is_constant ? Layout::constant : Layout::strided;
}

void Loop::run(ElementwiseRow row, int64_t most) const {
  run_all([row](const void *const *inputs, void *result, int64_t, int64_t count) { row(inputs, result, count); }, true,
          most);
}

void Loop::run_placed(const PlacedRow &row) const { run_all(row, false, usual_grain); }

void Loop::run_all(const PlacedRow &row, bool starts_anywhere, int64_t most) const {
  View views[max_operands];
  for (int i = 0; i < operands_; i++) views[i] = {layout_of(operand_[i]), &operand_[i], period_of(operand_[i])};
  Blocks blocks;
  if (starts_anywhere && find_blocks(views, blocks)) return run_by_blocks(row, views, blocks);
  if (starts_anywhere && goes_by_runs(views)) // pieces divide runs, so they must not depend on the threads
    return parallel_for(count_, equal_pieces(count_, most, tile, 1),
                        [&](int64_t begin, int64_t end) { run_by_runs(row, views, begin, end); });
  const int64_t grain = equal_pieces(count_, most, tile, threads_at_hand());
  parallel_for(count_, grain, [&](int64_t begin, int64_t end) { run_part(row, views, begin, end); });
}

// Returns the number of elements after which a broadcast operand repeats; 0 if it is large. These elements are gathered
// once for all tiles.
int64_t Loop::period_of(const LoopOperand &operand) const {
  int64_t period = count_;
  for (int axis = 0; axis < rank_ && operand.strides[axis] == 0; axis++) period /= std::max<int64_t>(1, shape_[axis]);
  return period > 0 && period <= tile / 2 && period < count_ ? period : 0;
}

// Returns whether rows are computed run by run along the innermost axis. Then operands whose elements are adjacent
// along it are read in place, and an element that is broadcast along it is written to a buffer once.
bool Loop::goes_by_runs(const View *views) const {
  const int inner = rank_ - 1, last = operands_ - 1;
  if (rank_ < 2 || shape_[inner] < shortest_run) return false;
  const Target target = target_of(views[last]);
  if (target == Target::scattered) return false;
  if (target == Target::streamed && shape_[inner] * views[last].size() % stream_line != 0) return false;
  bool has_rows = false, has_columns = false;
  for (int i = 0; i < last; i++) {
    if (views[i].layout != Layout::strided) continue;
    const int64_t stride = operand_[i].strides[inner];
    if (stride != 0 && stride != 1) return false;
    (stride == 0 ? has_columns : has_rows) = true;
  }
  if (has_columns) return shape_[inner] > longest_repeated;
  return has_rows && target == Target::in_place;
}

void Loop::run_by_runs(const PlacedRow &row, const View *views, int64_t begin, int64_t end) const {
  alignas(64) char buffers[max_operands][tile * widest];
  const int last = operands_ - 1, inner = rank_ - 1;
  const View &result = views[last];
  const bool is_streamed = target_of(result) == Target::streamed;
  const char *filled[max_operands] = {}, *runs[max_operands];
  const void *inputs[max_operands];
  bool is_tiled = is_streamed;
  for (int i = 0; i < last; i++) {
    if (views[i].layout == Layout::constant) gather(views[i], 0, tile, buffers[i]);
    is_tiled = is_tiled || (views[i].layout != Layout::dense && operand_[i].strides[inner] == 0);
  }
  int64_t column = begin % shape_[inner], run = begin / shape_[inner];
  for (int64_t start = begin; start < end; run++, column = 0) {
    const int64_t length = std::min(end - start, shape_[inner] - column);
    for (int i = 0; i < last; i++) {
      if (views[i].layout != Layout::strided) continue;
      int64_t place = column * operand_[i].strides[inner], number = run;
      for (int axis = inner - 1; axis > 0; axis--) {
        place += number % shape_[axis] * operand_[i].strides[axis];
        number /= shape_[axis];
      }
      place += number * operand_[i].strides[0];
      runs[i] = views[i].first() + place * views[i].size();
      if (operand_[i].strides[inner] == 1 || filled[i] == runs[i]) continue;
      repeat(runs[i], views[i].size(), std::min(tile, shape_[inner]), buffers[i]);
      filled[i] = runs[i];
    }
    const int64_t most = is_tiled ? tile : length;
    for (int64_t done = 0; done < length; done += most) {
      const int64_t part = std::min(most, length - done);
      for (int i = 0; i < last; i++) {
        if (views[i].layout == Layout::dense) inputs[i] = views[i].dense(start + done);
        else if (views[i].layout == Layout::constant || operand_[i].strides[inner] == 0) inputs[i] = buffers[i];
        else inputs[i] = runs[i] + done * views[i].size();
      }
      char *to = result.dense(start + done);
      row(inputs, is_streamed ? buffers[last] : to, start + done, part);
      if (is_streamed) streams().copy(buffers[last], to, part * result.size());
    }
    start += length;
  }
  if (is_streamed) streams().finish();
}

// Returns the axis along which a transposed operand has its closest elements, or -1 for another layout.
int Loop::closest_axis(const View &view) const {
  const int64_t *strides = view.operand->strides;
  const int inner = rank_ - 1;
  if (view.layout != Layout::strided) return -1;
  int closest = inner;
  for (int axis = inner - 1; axis >= 0; axis--)
    if (strides[axis] != 0 && std::abs(strides[axis]) < std::abs(strides[closest])) closest = axis;
  return closest == inner ? -1 : closest;
}

bool Loop::find_blocks(const View *views, Blocks &blocks) const {
  const int inner = rank_ - 1, last = operands_ - 1;
  if (rank_ < 2 || count_ < fewest_transposed || target_of(views[last]) == Target::scattered) return false;
  blocks.outer = -1;
  int64_t side = tile;
  for (int i = 0; i < last; i++) {
    const int closest = closest_axis(views[i]);
    if (blocks.outer < 0) blocks.outer = closest;
    blocks.is_transposed[i] = closest >= 0 && closest == blocks.outer;
    side = std::min(side, transposes().side[index_of_size(views[i].size())]);
  }
  if (blocks.outer < 0) return false;
  const int64_t wide = shape_[blocks.outer], high = shape_[inner];
  const auto most = [&](int64_t size, int64_t other) {
    if (!blocks.has_few) return std::min(size, side);
    return std::min(size, size <= few && size <= other ? size : side * side / few);
  };
  blocks.has_few = std::min(wide, high) <= few;
  blocks.wide = most(wide, high);
  blocks.high = most(high, wide);
  blocks.across = (wide - 1) / blocks.wide + 1;
  blocks.down = (high - 1) / blocks.high + 1;
  blocks.is_dense = blocks.outer == inner - 1 && blocks.high == high;
  return wide * high >= fewest_in_block;
}

// Returns block `number`, in row-major order over the other axes, then along `outer`, then along the innermost axis.
Loop::Block Loop::block_at(const Blocks &blocks, int64_t number) const {
  const int inner = rank_ - 1;
  const int64_t row = number % blocks.down * blocks.high, column = number / blocks.down % blocks.across * blocks.wide;
  Block block{std::min(blocks.wide, shape_[blocks.outer] - column), std::min(blocks.high, shape_[inner] - row), {}};
  for (int i = 0; i < operands_; i++)
    block.places[i] = row * operand_[i].strides[inner] + column * operand_[i].strides[blocks.outer];
  number /= blocks.down * blocks.across;
  for (int axis = inner - 1; axis >= 0; axis--) {
    if (axis == blocks.outer) continue;
    for (int i = 0; i < operands_; i++) block.places[i] += number % shape_[axis] * operand_[i].strides[axis];
    number /= shape_[axis];
  }
  return block;
}

// Returns block `number`, given the one before it: usually the next one along a third axis.
Loop::Block Loop::next_block(const Blocks &blocks, const Block &before, int64_t number) const {
  const int third = blocks.outer - 1;
  if (blocks.across > 1 || third < 0 || number % shape_[third] == 0) return block_at(blocks, number);
  Block block = before;
  for (int i = 0; i < operands_; i++) block.places[i] += operand_[i].strides[third];
  return block;
}

// Writes the transposed block of an operand to rows of `high` elements.
void Loop::transpose(const View &view, const Blocks &blocks, const Block &block, int64_t place, char *dense) const {
  const int64_t size = view.size(), *strides = view.operand->strides;
  const int at_size = index_of_size(size);
  const auto kernel = blocks.has_few ? transposes().few[at_size] : transposes().block[at_size];
  kernel({view.first() + place * size,
          dense,
          {block.wide, strides[blocks.outer] * size, block.high * size},
          {block.high, strides[rank_ - 1] * size, size},
          false});
}

void Loop::run_by_blocks(const PlacedRow &row, const View *views, const Blocks &blocks) const {
  int64_t parts = blocks.across * blocks.down;
  for (int axis = 0; axis < rank_ - 1; axis++) parts *= axis == blocks.outer ? 1 : shape_[axis];
  parallel_for(parts, std::max<int64_t>(1, usual_grain / (blocks.wide * blocks.high)), [&](int64_t begin, int64_t end) {
    alignas(64) char buffers[max_operands][loop_block_bytes];
    if (blocks.is_dense) run_dense_blocks(row, views, blocks, begin, end, buffers);
    else run_parted_blocks(row, views, blocks, begin, end, buffers);
  });
}

// Small blocks that are adjacent in the result are computed together.
void Loop::run_dense_blocks(const PlacedRow &row, const View *views, const Blocks &blocks, int64_t begin, int64_t end,
                            Buffers buffers) const {
  const int last = operands_ - 1;
  const View &result = views[last];
  int64_t widest_element = 1;
  for (int i = 0; i < last; i++) widest_element = std::max(widest_element, views[i].size());
  const int64_t most = loop_block_bytes / widest_element;
  const void *inputs[max_operands];
  for (int64_t number = begin; number < end;) {
    Block block = block_at(blocks, number);
    const int64_t start = block.places[last];
    int64_t length = 0;
    while (true) {
      for (int i = 0; i < last; i++)
        if (blocks.is_transposed[i])
          transpose(views[i], blocks, block, block.places[i], buffers[i] + length * views[i].size());
      length += block.wide * block.high;
      if (++number == end) break;
      block = next_block(blocks, block, number);
      if (length + block.wide * block.high > most) break;
    }
    for (int i = 0; i < last; i++) {
      inputs[i] = views[i].layout == Layout::dense ? views[i].dense(start) : buffers[i];
      if (views[i].layout != Layout::dense && !blocks.is_transposed[i]) gather(views[i], start, length, buffers[i]);
    }
    row(inputs, result.dense(start), start, length);
  }
}

// Blocks whose rows are apart in the result are computed row by row.
void Loop::run_parted_blocks(const PlacedRow &row, const View *views, const Blocks &blocks, int64_t begin, int64_t end,
                             Buffers buffers) const {
  const int last = operands_ - 1;
  const View &result = views[last];
  const void *inputs[max_operands];
  for (int64_t number = begin; number < end; number++) {
    const Block block = block_at(blocks, number);
    for (int i = 0; i < last; i++)
      if (blocks.is_transposed[i]) transpose(views[i], blocks, block, block.places[i], buffers[i]);
    for (int64_t r = 0; r < block.wide; r++) {
      const int64_t start = block.places[last] + r * operand_[last].strides[blocks.outer];
      for (int i = 0; i < last; i++) {
        if (views[i].layout == Layout::dense) inputs[i] = views[i].dense(start);
        else if (blocks.is_transposed[i]) inputs[i] = buffers[i] + r * block.high * views[i].size();
        else {
          gather(views[i], start, block.high, buffers[i]);
          inputs[i] = buffers[i];
        }
      }
      row(inputs, result.dense(start), start, block.high);
    }
  }
}

bool Loop::is_repeated(const View &view) { return view.layout == Layout::strided && view.period > 0; }

void Loop::run_part(const PlacedRow &row, const View *views, int64_t begin, int64_t end) const {
  alignas(64) char buffers[max_operands][2 * tile * widest];
  const void *inputs[max_operands];
  const int last = operands_ - 1;
  const View &result = views[last];
  const Target target = target_of(result);
  bool in_one_piece = target == Target::in_place;
  for (int i = 0; i < last; i++) {
    in_one_piece = in_one_piece && views[i].layout == Layout::dense;
    if (views[i].layout == Layout::constant) gather(views[i], 0, std::min(tile, end - begin), buffers[i]);
    if (is_repeated(views[i])) gather(views[i], 0, std::min(tile + views[i].period, count_), buffers[i]);
  }
  const int64_t step = in_one_piece ? end - begin : tile;
  // a tile of whole runs, if `gather_short` gathers them, or repeats an element in each
  const int inner = rank_ - 1;
  int64_t run = 0;
  for (int i = 0; i < last && rank_ > 1 && target != Target::streamed; i++)
    if (views[i].layout == Layout::strided && shape_[inner] <= longest_whole(operand_[i].strides[inner]))
      run = shape_[inner];
  for (int64_t start = begin, length; start < end; start += length) {
    length = std::min(step, end - start);
    if (run > 0 && start + length < end) length = (start + length) / run * run - start;
    for (int i = 0; i < last; i++) {
      if (is_repeated(views[i])) {
        inputs[i] = buffers[i] + start % views[i].period * views[i].size();
        continue;
      }
      if (views[i].layout == Layout::strided) gather(views[i], start, length, buffers[i]);
      inputs[i] = views[i].layout == Layout::dense ? views[i].dense(start) : buffers[i];
    }
    row(inputs, target == Target::in_place ? result.dense(start) : buffers[last], start, length);
    if (target == Target::streamed) streams().copy(buffers[last], result.dense(start), length * result.size());
    if (target == Target::scattered) scatter(result, start, length, buffers[last]);
  }
  if (target == Target::streamed) streams().finish();
}

Loop::Target Loop::target_of(const View &result) const {
  if (result.layout != Layout::dense) return Target::scattered;
  bool is_large = count_ * result.size() >= tuning::streams::streamed_bytes;
  bool is_aligned = reinterpret_cast<uintptr_t>(result.first()) % stream_line == 0;
  return streams().copy && is_large && is_aligned ? Target::streamed : Target::in_place;
}

bool Loop::any(int operand, Test test) const {
  const View view{layout_of(operand_[operand]), &operand_[operand], 0};
  std::atomic<bool> found{false};
  parallel_for(count_, usual_grain, [&](int64_t begin, int64_t end) {
    alignas(64) char buffer[tile * widest];
    for (int64_t start = begin; start < end && !found.load(std::memory_order_relaxed); start += tile) {
      int64_t length = std::min(tile, end - start);
      if (view.layout != Layout::dense) gather(view, start, length, buffer);
      if (test(view.layout == Layout::dense ? view.dense(start) : buffer, length)) found = true;
    }
  });
  return found;
}

// For the elements from number `start` on, in row-major order: calls move(first byte, stride, index in the dense
// buffer, count) for each run along the innermost axis.
template <class Move> void Loop::move(const View &view, int64_t start, int64_t length, Move move) const {
  const int64_t *strides = view.operand->strides;
  if (rank_ == 0) return move(view.first(), int64_t(0), int64_t(0), length);
  int64_t index[max_rank];
  int64_t place = 0;
  for (int axis = rank_ - 1; axis >= 0; axis--) {
    index[axis] = start % shape_[axis];
    start /= shape_[axis];
    place += index[axis] * strides[axis];
  }
  const int inner = rank_ - 1;
  for (int64_t done = 0; done < length;) {
    int64_t run = std::min(length - done, shape_[inner] - index[inner]);
    move(view.first() + place * view.size(), strides[inner], done, run);
    done += run;
    index[inner] += run;
    place += run * strides[inner];
    for (int axis = inner; axis > 0 && index[axis] == shape_[axis]; axis--) {
      place += strides[axis - 1] - shape_[axis] * strides[axis];
      index[axis] = 0;
      index[axis - 1]++;
    }
  }
}

// Gathers whole runs of a few elements, for which the steps of `move` cost more than the elements: runs of any stride
// up to `longest_copied_run`, longer ones of adjacent elements, and those of one element each. `start` is the first
// element of a run. Returns the number of elements gathered.
template <class T> int64_t Loop::gather_short(const View &view, int64_t start, int64_t length, char *dense) const {
  const int inner = rank_ - 1;
  const int64_t run = shape_[inner], *strides = view.operand->strides;
  int64_t done = 0;
  while (length - done >= run) {
    int64_t number = (start + done) / run, place = 0;
    const int64_t column = number % shape_[inner - 1];
    for (int axis = inner - 1; axis >= 0; axis--) {
      place += number % shape_[axis] * strides[axis];
      number /= shape_[axis];
    }
    const int64_t runs = std::min(shape_[inner - 1] - column, (length - done) / run);
    const T *from = reinterpret_cast<const T *>(view.first()) + place;
    if (strides[inner] == 0 && run > longest_copied_run)
      creations().repeat[index_of_size(sizeof(T))](
          {from, strides[inner - 1], dense + done * sizeof(T), run, runs, run});
    else if (run <= longest_copied_run)
      copy_runs(from, strides[inner - 1], strides[inner], runs, reinterpret_cast<T *>(dense) + done, run);
    else copy_dense_runs(from, strides[inner - 1], runs, reinterpret_cast<T *>(dense) + done, run);
    done += runs * run;
  }
  return done;
}

void Loop::gather(const View &view, int64_t start, int64_t length, char *dense) const {
  const int64_t *strides = view.operand->strides;
  const int64_t longest = std::max(longest_copied_run, rank_ > 1 ? longest_whole(strides[rank_ - 1]) : 0);
  const int64_t run = rank_ > 1 && shape_[rank_ - 2] > 2 ? shape_[rank_ - 1] : longest + 1;
  with_size(view.size(), [&](auto element) {
    using T = decltype(element);
    constexpr int64_t size = sizeof(T);
    if (run > longest) return gather_elements<T>(view, start, length, dense);
    const int64_t first = std::min(length, (run - start % run) % run); // the rest of a run
    gather_elements<T>(view, start, first, dense);
    const int64_t done = first + gather_short<T>(view, start + first, length - first, dense + first * size);
    gather_elements<T>(view, start + done, length - done, dense + done * size);
  });
}

template <class T> void Loop::gather_elements(const View &view, int64_t start, int64_t length, char *dense) const {
  if (length > 0)
    move(view, start, length, [&](const char *source, int64_t stride, int64_t at, int64_t count) {
      if (stride == 1) copy_dense(dense + at * sizeof(T), source, count * sizeof(T));
      else copy_strided<T>(source, stride, dense + at * sizeof(T), count);
    });
}

void Loop::scatter(const View &view, int64_t start, int64_t length, const char *dense) const {
  with_size(view.size(), [&](auto element) {
    using T = decltype(element);
    move(view, start, length, [&](char *target, int64_t stride, int64_t at, int64_t count) {
      if (stride == 1) copy_dense(target, dense + at * sizeof(T), count * sizeof(T));
      else copy_to_strided<T>(dense + at * sizeof(T), target, stride, count);
    });
  });
}

} // namespace orchard
