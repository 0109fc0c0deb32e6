#include "loop.h"

#include "../parallel.h"
#include "stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace orchard {
namespace {

// Elements that are not dense are copied in pieces that fit in the L1 cache.
constexpr int64_t tile = 512;
constexpr int64_t widest = 8;        // bytes of an element
constexpr int64_t grain = 1 << 15;   // elements; a multiple of the tile
constexpr int64_t shortest_run = 96; // shorter ones are gathered to tiles

// A result of at least this many bytes is written with nontemporal stores: the caches would evict it before it is read.
constexpr int64_t streamed = 16 << 20;

template <class T> void copy_strided(const char *source, int64_t stride, char *dense, int64_t count) {
  const T *in = reinterpret_cast<const T *>(source);
  T *out = reinterpret_cast<T *>(dense);
  for (int64_t i = 0; i < count; i++) out[i] = in[i * stride];
}

template <class T> void copy_to_strided(const char *dense, char *target, int64_t stride, int64_t count) {
  const T *in = reinterpret_cast<const T *>(dense);
  T *out = reinterpret_cast<T *>(target);
  for (int64_t i = 0; i < count; i++) out[i * stride] = in[i];
}

// Calls use(T{}) for an unsigned integer type T of `size` bytes.
template <class Use> void with_size(int64_t size, Use &&use) {
  switch (size) {
  case 1: return use(uint8_t{});
  case 2: return use(uint16_t{});
  case 4: return use(uint32_t{});
  default: return use(uint64_t{});
  }
}

} // namespace

// An operand's layout and addresses during a call.
struct Loop::View {
  Layout layout;
  const LoopOperand *operand;
  int64_t period; // after which the elements repeat, if that is at most half a tile; otherwise 0

  int64_t size() const { return operand->size; }
  char *first() const { return operand->first; }
  char *dense(int64_t start) const { return first() + start * size(); }
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

void Loop::run(ElementwiseRow row) const {
  run_all([row](const void *const *inputs, void *result, int64_t, int64_t count) { row(inputs, result, count); }, true);
}

void Loop::run_placed(const PlacedRow &row) const { run_all(row, false); }

void Loop::run_all(const PlacedRow &row, bool starts_anywhere) const {
  View views[max_operands];
  for (int i = 0; i < operands_; i++) views[i] = {layout_of(operand_[i]), &operand_[i], period_of(operand_[i])};
  if (starts_anywhere && goes_by_runs(views))
    return parallel_for(count_, grain, [&](int64_t begin, int64_t end) { run_by_runs(row, views, begin, end); });
  parallel_for(count_, grain, [&](int64_t begin, int64_t end) { run_part(row, views, begin, end); });
}

// A row that is broadcast repeats: its elements are gathered once for all tiles.
int64_t Loop::period_of(const LoopOperand &operand) const {
  int64_t period = count_;
  for (int axis = 0; axis < rank_ && operand.strides[axis] == 0; axis++) period /= std::max<int64_t>(1, shape_[axis]);
  return period > 0 && period <= tile / 2 && period < count_ ? period : 0;
}

// Returns whether rows are computed run by run, along the innermost axis, so that operands with adjacent elements there
// are read where they are, and one element that is broadcast along it is written to a buffer once.
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
  return has_columns || (has_rows && target == Target::in_place);
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
  for (int64_t start = begin; start < end;) {
    const int64_t column = start % shape_[inner], length = std::min(end - start, shape_[inner] - column);
    for (int i = 0; i < last; i++) {
      if (views[i].layout != Layout::strided) continue;
      int64_t place = column * operand_[i].strides[inner], number = start / shape_[inner];
      for (int axis = inner - 1; axis >= 0; axis--) {
        place += (axis == 0 ? number : number % shape_[axis]) * operand_[i].strides[axis];
        if (axis > 0) number /= shape_[axis];
      }
      runs[i] = views[i].first() + place * views[i].size();
      if (operand_[i].strides[inner] == 1 || filled[i] == runs[i]) continue;
      with_size(views[i].size(), [&](auto element) {
        copy_strided<decltype(element)>(runs[i], 0, buffers[i], std::min(tile, shape_[inner]));
      });
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
  int64_t step = in_one_piece ? end - begin : tile;
  for (int64_t start = begin; start < end; start += step) {
    int64_t length = std::min(step, end - start);
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
  bool is_large = count_ * result.size() >= streamed;
  bool is_aligned = reinterpret_cast<uintptr_t>(result.first()) % stream_line == 0;
  return streams().copy && is_large && is_aligned ? Target::streamed : Target::in_place;
}

bool Loop::any(int operand, Test test) const {
  const View view{layout_of(operand_[operand]), &operand_[operand], 0};
  std::atomic<bool> found{false};
  parallel_for(count_, grain, [&](int64_t begin, int64_t end) {
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

void Loop::gather(const View &view, int64_t start, int64_t length, char *dense) const {
  with_size(view.size(), [&](auto element) {
    using T = decltype(element);
    move(view, start, length, [&](const char *source, int64_t stride, int64_t at, int64_t count) {
      if (stride == 1) std::memcpy(dense + at * sizeof(T), source, count * sizeof(T));
      else copy_strided<T>(source, stride, dense + at * sizeof(T), count);
    });
  });
}

void Loop::scatter(const View &view, int64_t start, int64_t length, const char *dense) const {
  with_size(view.size(), [&](auto element) {
    using T = decltype(element);
    move(view, start, length, [&](char *target, int64_t stride, int64_t at, int64_t count) {
      if (stride == 1) std::memcpy(target, dense + at * sizeof(T), count * sizeof(T));
      else copy_to_strided<T>(dense + at * sizeof(T), target, stride, count);
    });
  });
}

} // namespace orchard
