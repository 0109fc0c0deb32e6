#include "segments.h"

#include "stream.h"
#include "../streamed.h"
#include "tuning.h"

#include <algorithm>
#include <cstring>

namespace orchard {
namespace {

using tuning::elementwise::fewest_tiles;
using tuning::elementwise::shortest_row;

using Layout = SegmentOperand::Layout;
using Access = SegmentStep::Access;

constexpr size_t most_steps = 128;

// The numbers of an elementwise call's block (elementwise.cpp): the operation, the dtype, a nest, and the offsets.
constexpr int64_t rank_at = 2, shape_at = 3;

void repeat(const char *element, int64_t size, char *to, int64_t count) {
  const auto write = [&](auto value) {
    std::memcpy(&value, element, sizeof value);
    std::fill_n(reinterpret_cast<decltype(value) *>(to), count, value);
  };
  if (size == 1) write(uint8_t{});
  else if (size == 2) write(uint16_t{});
  else if (size == 4) write(uint32_t{});
  else write(uint64_t{});
}

bool is_same(const SegmentOperand &a, const SegmentOperand &b) {
  return a.layout == b.layout && a.first == b.first && a.local == b.local;
}

} // namespace

// A call whose parts can be computed directly.
struct Segments::Found {
  bool is_direct = false;
  const FusedCall *of = nullptr;
  ElementwiseCall call;
  SegmentOperand operand[most_fused_operands];

  const SegmentOperand &result() const { return operand[call.operands - 1]; }
  bool reads(const SegmentOperand &other) const {
    return std::any_of(operand, operand + call.operands - 1,
                       [&](const SegmentOperand &each) { return is_same(each, other); });
  }
  bool is_by_units() const {
    return std::any_of(operand, operand + call.operands, [](const SegmentOperand &each) {
      return each.layout == Layout::row || each.layout == Layout::column;
    });
  }
};

// Adjacent elements from a unit and column on. `number` counts the piece's ranges before this one.
struct Segments::Range {
  int64_t unit, column, elements, number;
};

Segments::Segments(const Chain &chain, void *const *addresses) : chain_(chain) {
  std::vector<Found> found(chain.calls.size());
  for (size_t at = 0; at < found.size(); at++) found[at].is_direct = find(chain.calls[at], addresses, found[at]);
  for (size_t at = 0; at < found.size();) {
    size_t end = at;
    // a call takes at most three steps
    while (end < found.size() && 3 * (end - at) + 4 < most_steps && is_by_tiles(found[end]) &&
           !replaces_values(found, at, end))
      end++;
    if (end > at) {
      add_tiles(found, at, end);
      at = end;
      continue;
    }
    const bool has_row = found[at].is_direct && (!found[at].is_by_units() || chain.width >= shortest_row);
    if (has_row) add_row(found[at], at);
    else segments_.push_back({Segment::Kind::other, int64_t(at), false, {}, false, nullptr, {}});
    at++;
  }
}

bool Segments::find(const FusedCall &call, void *const *addresses, Found &found) const {
  found.of = &call;
  if (!describe_call(call.function->name, call.block, found.call)) return false;
  const int64_t rank = chain_.width == 1 ? 1 : 2;
  if (call.count != shape_at || call.block[rank_at] != double(rank)) return false;
  if (rank == 2 && call.block[shape_at + 1] != double(chain_.width)) return false;
  for (int at = 0; at < found.call.operands; at++)
    if (!find_operand(call, at, addresses, found)) return false;
  return found.result().layout == Layout::dense;
}

bool Segments::find_operand(const FusedCall &call, int at, void *const *addresses, Found &found) const {
  const FusedOperand &from = call.operand[at];
  const int operands = found.call.operands;
  const double *strides = call.block + shape_at + max_rank * (at + 1);
  const double along = strides[0], within = chain_.width == 1 ? 0 : strides[1];
  if (along != double(from.step) || from.offset != shape_at + max_rank * (operands + 1) + at) return false;
  const bool is_local = from.kind == OperandKind::local;
  SegmentOperand &operand = found.operand[at];
  operand = {Layout::constant, nullptr, is_local ? from.place : -1, found.call.sizes[at], -1};
  if (along == double(chain_.width) && (within == 1 || chain_.width == 1)) operand.layout = Layout::dense;
  else if (along == 0 && within == 1) operand.layout = Layout::row;
  else if (along == 1 && within == 0) operand.layout = Layout::column;
  else if (along != 0 || within != 0) return false;
  if (is_local) return operand.layout == Layout::dense || operand.layout == Layout::column;
  if (from.place < 0) return false;
  void *operand_addresses[most_fused_operands] = {};
  operand_addresses[at] = addresses[from.place];
  const auto *bytes = reinterpret_cast<const Whole *>(call.block + call.doubles - call.operands);
  const Operands memory(operand_addresses, bytes);
  const int64_t offset = Whole{call.block[from.offset]};
  const Extent extent(operand.layout == Layout::dense    ? chain_.units * chain_.width
                      : operand.layout == Layout::row    ? chain_.width
                      : operand.layout == Layout::column ? chain_.units
                                                         : 1);
  operand.first = at == operands - 1 ? memory.result(at, operand.size, offset, extent)
                                     : const_cast<char *>(memory.input(at, operand.size, offset, extent));
  return true;
}

// Whether a call has tile steps.
bool Segments::is_by_tiles(const Found &found) const {
  const auto &[operands, operation, dtype, row, sizes] = found.call;
  if (!found.is_direct || dtype != DType::float32 || sizes[operands - 1] != int64_t(sizeof(float))) return false;
  const int64_t tile = tiles().elements;
  if (found.is_by_units() && chain_.width % tile != 0 && chain_.width < fewest_tiles * tile) return false;
  if (operands == 2) return tiles().unary(operation) && std::strcmp(found.of->function->name, "unary") == 0;
  return operands == 3 && tiles().binary(operation, TileForm::both);
}

// Whether call `end` writes to a local buffer in which calls from `begin` on find an element for each unit. One segment
// would write it for the first unit before it reads it for the second.
bool Segments::replaces_values(const std::vector<Found> &found, size_t begin, size_t end) const {
  const SegmentOperand &result = found[end].result();
  return std::any_of(found.begin() + int64_t(begin), found.begin() + int64_t(end) + 1, [&](const Found &call) {
    return std::any_of(call.operand, call.operand + call.call.operands - 1, [&](const SegmentOperand &operand) {
      return operand.layout == Layout::column && operand.local >= 0 && operand.local == result.local;
    });
  });
}

// Whether a call from number `first` on reads a result, before another call replaces it.
bool Segments::is_read(const std::vector<Found> &found, const FusedOperand &result, size_t first) const {
  for (size_t at = first; at < found.size(); at++) {
    const FusedCall &call = chain_.calls[at];
    const int64_t inputs = found[at].is_direct ? call.operands - 1 : call.operands;
    for (int64_t operand = 0; operand < inputs; operand++)
      if (call.operand[operand].is_at(result)) return true;
    if (found[at].is_direct && call.operand[inputs].is_at(result)) return false;
  }
  return false;
}

// Adds the steps of calls [begin, end).
void Segments::add_tiles(const std::vector<Found> &found, size_t begin, size_t end) {
  Segment segment{Segment::Kind::tiles, int64_t(begin), false, {}, true, nullptr, {}};
  for (size_t at = begin; at < end; at++) {
    segment.is_by_units = segment.is_by_units || found[at].is_by_units();
    add_operation(found[at], at > begin ? &found[at - 1].result() : nullptr, segment);
    const bool is_accumulated = at + 1 < end && found[at + 1].reads(found[at].result());
    add_store(found, at, at + (is_accumulated ? 2 : 1), segment);
  }
  segment.steps.push_back({Access::none, {tiles().move(TileMove::stop), nullptr, 0}, {}});
  segments_.push_back(std::move(segment));
}

// Adds the steps of an operation. @param accumulated the operand in the accumulator, or null
void Segments::add_operation(const Found &found, const SegmentOperand *accumulated, Segment &segment) {
  const Tiles &code = tiles();
  const int64_t operation = found.call.operation;
  const bool is_binary = found.call.operands == 3;
  const SegmentOperand &a = found.operand[0], &b = found.operand[is_binary ? 1 : 0];
  const auto add = [&](TileCode step, Access access, const SegmentOperand &operand) {
    segment.steps.push_back({access, {step, nullptr, 0}, operand});
  };
  const auto load = [&](const SegmentOperand &operand) {
    if (operand.is_value()) add(code.move(TileMove::fill), Access::value, operand);
    else add(code.move(TileMove::load), Access::read, operand);
  };
  bool has_a = accumulated && is_same(a, *accumulated), has_b = accumulated && is_same(b, *accumulated);
  if (!has_a && !has_b) {
    const bool is_b_loaded = a.is_value() && !b.is_value();
    load(is_b_loaded ? b : a);
    has_a = !is_b_loaded, has_b = is_b_loaded || is_same(a, b);
  }
  if (!is_binary) return add(code.unary(operation), Access::none, a);
  if (has_a && has_b) return add(code.binary(operation, TileForm::both), Access::none, a);
  const SegmentOperand &other = has_a ? b : a;
  const TileForm form = other.is_value() ? (has_a ? TileForm::with_value : TileForm::value_first)
                                         : (has_a ? TileForm::with_memory : TileForm::memory_first);
  add(code.binary(operation, form), other.is_value() ? Access::value : Access::read, other);
}

// Adds a step that stores a call's result if a call from number `reader` on, or other code, reads it.
void Segments::add_store(const std::vector<Found> &found, size_t call, size_t reader, Segment &segment) {
  const SegmentOperand &result = found[call].result();
  const bool is_needed = is_read(found, found[call].of->operand[found[call].call.operands - 1], reader);
  if (!is_needed && result.local >= 0) return;
  for (const SegmentStep &step : segment.steps)
    if (step.access == Access::read && is_same(step.operand, result)) segment.is_repeatable = false;
  const TileCode stream = tiles().move(TileMove::stream);
  const bool is_streamed = stream && !is_needed && result.local < 0 &&
                           chain_.units * chain_.width * result.size >= tuning::streams::streamed_bytes;
  is_streamed_ = is_streamed_ || is_streamed;
  segment.steps.push_back({Access::write, {is_streamed ? stream : tiles().move(TileMove::store), nullptr, 0}, result});
}

void Segments::add_row(const Found &found, size_t call) {
  const int operands = found.call.operands;
  Segment segment{Segment::Kind::row,
                  int64_t(call),
                  found.is_by_units(),
                  {},
                  false,
                  found.call.row,
                  {found.operand, found.operand + operands}};
  for (int at = 0; at < operands - 1; at++)
    if (segment.operands[size_t(at)].is_value()) segment.operands[size_t(at)].fill = fills_++;
  segments_.push_back(std::move(segment));
}

void Segments::fill(char *locals) const {
  for (const Segment &segment : segments_)
    for (const SegmentOperand &operand : segment.operands)
      if (operand.fill >= 0 && operand.layout == Layout::constant)
        repeat(operand.first, operand.size, locals + (chain_.locals + operand.fill) * chain_.local_bytes(),
               chain_.piece * chain_.width);
}

void Segments::finish() const {
  if (is_streamed_) streams().finish();
}

void Segments::run(const Segment &segment, const Piece &piece, char *locals) const {
  const auto run_range = segment.kind == Segment::Kind::tiles ? &Segments::run_tiles : &Segments::run_row;
  if (!segment.is_by_units && piece.columns == chain_.width)
    return (this->*run_range)(segment, {piece.start, 0, piece.count * chain_.width, 0}, locals);
  for (int64_t unit = 0; unit < piece.count; unit++)
    (this->*run_range)(segment, {piece.start + unit, piece.column, piece.columns, unit}, locals);
}

char *Segments::address(const SegmentOperand &operand, const Range &range, char *locals) const {
  if (operand.local >= 0) {
    char *local = locals + operand.local * chain_.local_bytes();
    const int64_t width = operand.layout == Layout::dense ? range.elements : 1;
    return local + range.number * width * operand.size;
  }
  switch (operand.layout) {
  case Layout::dense: return operand.first + (range.unit * chain_.width + range.column) * operand.size;
  case Layout::row: return operand.first + range.column * operand.size;
  case Layout::column: return operand.first + range.unit * operand.size;
  case Layout::constant: break;
  }
  return operand.first;
}

void Segments::run_row(const Segment &segment, const Range &range, char *locals) const {
  const void *inputs[most_fused_operands];
  const size_t last = segment.operands.size() - 1;
  for (size_t at = 0; at < last; at++) {
    const SegmentOperand &operand = segment.operands[at];
    char *from = address(operand, range, locals);
    if (operand.fill >= 0) {
      char *filled = locals + (chain_.locals + operand.fill) * chain_.local_bytes();
      if (operand.layout == Layout::column) repeat(from, operand.size, filled, range.elements);
      from = filled;
    }
    inputs[at] = from;
  }
  segment.row(inputs, address(segment.operands[last], range, locals), range.elements);
}

void Segments::run_tiles(const Segment &segment, const Range &range, char *locals) const {
  const TileCode stream = tiles().move(TileMove::stream), store = tiles().move(TileMove::store);
  TileStep steps[most_steps];
  const size_t count = segment.steps.size();
  for (size_t at = 0; at < count; at++) {
    const auto &[access, step, operand] = segment.steps[at];
    steps[at] = step;
    if (access == Access::none) continue;
    float *place = reinterpret_cast<float *>(address(operand, range, locals));
    if (access == Access::value) steps[at].value = *place;
    else steps[at].place = place;
    if (step.code == stream && reinterpret_cast<uintptr_t>(place) % stream_line != 0) steps[at].code = store;
  }
  const int64_t tile = tiles().elements, whole = range.elements / tile, rest = range.elements % tile;
  tiles().run(steps, whole);
  if (rest == 0) return;
  // the last tile overlaps the one before it, or is computed elsewhere
  const bool is_overlapping = whole > 0 && segment.is_repeatable;
  const int64_t start = is_overlapping ? range.elements - tile : range.elements - rest;
  for (size_t at = 0; at < count; at++) {
    if (steps[at].place) steps[at].place += start;
    if (steps[at].code == stream) steps[at].code = store;
  }
  if (is_overlapping) tiles().run(steps, 1);
  else run_rest(segment, steps, rest);
}

// Computes the first `rest` elements of a tile, with copies of all places.
void Segments::run_rest(const Segment &segment, TileStep *steps, int64_t rest) const {
  const size_t count = segment.steps.size(), tile = size_t(tiles().elements);
  thread_local std::vector<float> copies;
  copies.assign(count * tile, 0);
  TileStep copied[most_steps];
  for (size_t at = 0; at < count; at++) {
    copied[at] = steps[at];
    if (!steps[at].place) continue;
    size_t first = 0;
    while (steps[first].place != steps[at].place) first++;
    copied[at].place = copies.data() + first * tile;
    if (first == at) std::copy_n(steps[at].place, rest, copied[at].place);
  }
  tiles().run(copied, 1);
  for (size_t at = 0; at < count; at++)
    if (segment.steps[at].access == Access::write) std::copy_n(copied[at].place, rest, steps[at].place);
}

} // namespace orchard
