// Handles each access: a fast path for accesses that do not change the shadow state, and a slow path that updates it
// and detects errors.
#include "check/checker_state.h"
#include "support/memory.h"

#include <algorithm>

// The fast paths are inlined into the callbacks of every load and store.
#define MRT_INLINE __attribute__((always_inline)) inline

namespace mrt::checker {
namespace {

// The stack of a fiber is smaller than this: an address less than this above the frame is on the thread's stack.
constexpr size_t stack_reach = size_t(1) << 20;

} // namespace

// A GPU reads `constant` memory through a separate cache, and loads data that all threads share only once, so it does
// not count as device traffic.
MRT_INLINE bool Checker::is_constant(uintptr_t address) const {
  for (const Extent &range : constants_)
    if (range.contains(address)) return true;
  return false;
}

MRT_INLINE void Checker::count(Tracked &memory, const Step &step) {
  const bool constant = memory.space == Space::device && is_constant(step.address);
  (constant ? memory.traffic.constant_bytes_read : memory.traffic.bytes_read) += step.read ? step.size : 0;
  memory.traffic.bytes_written += step.write ? step.size : 0;
  if (memory.space == Space::device) memory.lines.mark(step.address, step.size, step.read, step.write);
}

// ---------------------------------------------------------------- the fast paths

MRT_INLINE bool Checker::settled_read(const Tracked &memory, const Cell &cell, Moment now) const {
  if (cell.writer == now || cell.reader == now) return true;
  if (is_atomic(cell.reader | cell.other_reader)) return false;
  if (cell.reader - memory.settled < memory.settled_span) return cell.writer < memory.settled;
  return cell.other_reader >= memory.fence &&
         (!same_block(cell.other_reader, cell.reader) || same_block(cell.reader, now));
}

// Returns true if the cell already records all that this access would add.
MRT_INLINE bool Checker::is_known(const Tracked &memory, const Cell &cell, bool write, Moment now) const {
  return write ? cell.writer == now && cell.reader < memory.past : settled_read(memory, cell, now);
}

// The cells of an access; null if their page has no cells yet, or if one of them covers other bytes too.
struct CellRange {
  Cell *begin = nullptr, *end = nullptr;
};

MRT_INLINE CellRange cells_of(const Tracked &memory, uintptr_t address, uint64_t size) {
  const PageSlot slot = *memory.shadow.slot(address);
  const uintptr_t offset = address % page_bytes;
  if (!slot || offset + size > page_bytes || ((offset | size) & ((1u << slot.shift()) - 1))) return {};
  return {slot.cells() + (offset >> slot.shift()), slot.cells() + ((offset + size) >> slot.shift())};
}

// If this is the first access by any thread in a long time, and is within an object that the kernel may access, records
// it and returns true.
MRT_INLINE bool Checker::is_first(const Tracked &memory, Cell &cell, const Step &step) {
  if (cell.writer >= memory.past || cell.reader >= memory.past || cell.other_reader >= memory.past) return false;
  if (memory.space == Space::threadgroup) {
    if (!objects_.region(step.address, step.size, step.write)) return false;
  } else {
    const Target *target = objects_.buffer(step.address, step.size, step.write);
    if (!target || (step.write && target->constant)) return false;
  }
  (step.write ? cell.writer : cell.reader) = step.now;
  (step.write ? cell.writer_site : cell.reader_site) = step.site;
  return true;
}

// Returns whether an access changes nothing, as is true of most. This calls no function, so it saves few registers.
MRT_INLINE bool Checker::is_recorded(uintptr_t address, uint64_t size, bool write, Moment now) const {
  const Tracked *memory = &threadgroup_;
  if (!threadgroup_.shadow.contains(address)) {
    memory = &arena_;
    if (!arena_.shadow.contains(address)) return false;
  }
  if (!is_quick_) return false;
  const CellRange cells = cells_of(*memory, address, size);
  for (const Cell *cell = cells.begin; cell < cells.end; cell++)
    if (!is_known(*memory, *cell, write, now)) return false;
  return cells.begin;
}

// Returns false if a cell needs the slow path.
MRT_INLINE bool Checker::record_first(Tracked &memory, const Step &step) {
  const CellRange cells = cells_of(memory, step.address, step.size);
  if (!cells.begin) return false;
  memory.shadow.slot(step.address)->page()->touched = step.now;
  for (Cell *cell = cells.begin; cell < cells.end; cell++)
    if (!is_known(memory, *cell, step.write, step.now) && !is_first(memory, *cell, step)) return false;
  return true;
}

MRT_INLINE Tracked *Checker::update(Tracked &memory, const Step &step) {
  if (dispatch_.counters) count(memory, step);
  if (!dispatch_.detect) return &memory;
  if (!is_settled() || !record_first(memory, step)) {
    slow(memory, step);
    return &memory;
  }
  if (step.read && !memory.shadow.written(step.address, step.size)) check_initialized(memory, step);
  if (step.write) memory.shadow.set_written(step.address, step.size, true);
  return &memory;
}

Tracked *Checker::access(const Step &step, uintptr_t frame) {
  if (threadgroup_.shadow.contains(step.address)) return update(threadgroup_, step);
  return arena_.shadow.contains(step.address) ? update(arena_, step) : access_elsewhere(step, frame);
}

// Handles memory that is neither threadgroup memory nor in the arena.
MRT_INLINE Tracked *Checker::access_elsewhere(const Step &step, uintptr_t frame) {
  if (step.address - frame < stack_reach) {
    if (dispatch_.detect) access_array(step);
    return nullptr;
  }
  if (View *view = views_.find(step.address)) return access_view(*view, step, frame);
  Tracked *memory = find(step, frame);
  return memory ? update(*memory, step) : nullptr;
}

bool Checker::is_private(uintptr_t address, uintptr_t frame) const {
  return address - frame < stack_reach || image_.contains(address) || locals_.contains(address) ||
         runtime_.contains(address);
}

// Returns the wrapped buffer that contains the address. Reports an address that the kernel may not access.
Tracked *Checker::find(const Step &step, uintptr_t frame) {
  if (is_private(step.address, frame)) return nullptr;
  for (auto &memory : wrapped_)
    if (memory->shadow.contains(step.address)) return memory.get();
  if (!dispatch_.detect) return nullptr;
  if (step.read && is_absent_argument(step.address)) absent_argument(step.site, step.now);
  else out_of_bounds(step, Space::device);
  return nullptr;
}

// Handles the thread's stack, on which some arrays are guarded (metal/mrt/arrays.h). If only some of a read's bytes
// were written, the others may be padding.
void Checker::access_array(const Step &step) {
  const MrtThread *thread = running_thread();
  for (const MrtArray *array = thread ? thread->arrays : nullptr; array; array = array->outer) {
    const uintptr_t first = step.address - uintptr_t(array->begin);
    if (first >= array->size) continue;
    const uintptr_t last = std::min<uintptr_t>(first + step.size, array->size);
    bool any = false;
    for (uintptr_t at = first, next; at < last; at = next) {
      next = std::min(last, (at / 8 + 1) * 8);
      const mrt_u8 mask = mrt_u8(((1u << (next - at)) - 1) << at % 8);
      any |= array->written[at / 8] & mask;
      if (step.write) array->written[at / 8] |= mask;
    }
    if (step.read && !any) report_unwritten(*array, step);
    return;
  }
}

// The bytes are copied to the view after the checks, because the checks set bytes that were never written to zero.
Tracked *Checker::access_view(View &view, const Step &step, uintptr_t frame) {
  resolve_values();
  Step original = step;
  original.address = view.original(step.address);
  const bool is_inside = objects_.buffer(original.address, step.size, step.write);
  if (is_inside && step.read && !view.is_written) check_alias(view, original, frame);
  Tracked *memory = access(original, frame);
  if (is_inside) Views::fill(view, step.address, step.size);
  if (is_inside && step.write) {
    views_.will_write(view, step.address, step.size);
    refresh();
  }
  view.is_written |= step.write;
  return memory;
}

void Checker::copy(uintptr_t destination, uintptr_t source, uint64_t size, Site site, Moment now, uintptr_t frame) {
  const Tracked *from = access({source, size, true, false, site, now}, frame);
  Tracked *to = access({destination, size, false, true, site, now}, frame);
  source = views_.original(source);
  destination = views_.original(destination);
  if (!from || !to || !dispatch_.detect || from->shadow.written(source, size)) return;
  for (uint64_t i = 0; i < size; i++) {
    if (from->shadow.written(source + i, 1)) continue;
    to->shadow.set_written(destination + i, 1, false);
    // The fast path assumes that a thread's write initialized the bytes.
    if (const PageSlot slot = *to->shadow.slot(destination + i)) slot.cell(destination + i).writer = 0;
  }
}

// ---------------------------------------------------------------- the slow path

__attribute__((noinline)) void Checker::slow(Tracked &memory, const Step &step) {
  resolve_values();
  if (!in_bounds(memory, step)) return;
  touch_cells(memory, step);
  if (step.read) check_initialized(memory, step);
  if (step.write) memory.shadow.set_written(step.address, step.size, true);
}

void Checker::touch_cells(Tracked &memory, const Step &step) {
  for (uintptr_t at = step.address, end = at + step.size; at < end;) {
    const uintptr_t stop = std::min<uintptr_t>(end, (at / page_bytes + 1) * page_bytes);
    const uint32_t shift = uint32_t(std::min(2, __builtin_ctzll(at | stop | 4)));
    PageSlot *slot = memory.shadow.slot(at);
    ShadowPage *page = slot->page();
    if (!page) page = pool_.create(slot, shift);
    else if (page->shift > shift) page = pool_.refine(page, shift);
    page->touched = step.now;
    for (const uintptr_t unit = uintptr_t(1) << page->shift; at < stop; at += unit) {
      Cell &cell = page->cells[at % page_bytes >> page->shift];
      if (step.write) write_cell(memory, cell, step, at);
      else read_cell(memory, cell, step, at);
    }
  }
}

// Returns which ordering is missing between two accesses to this address. A barrier over single buffers, or coherent
// memory, can replace it.
Gap Checker::gap(const Tracked &memory, Moment then, Moment now, uintptr_t address) const {
  const Gap gap = order.gap(then, now, memory.space);
  const bool closed = (gap == Gap::dispatches && objects_.is_ordered(address)) ||
                      (gap == Gap::coherence && objects_.is_coherent(address));
  return closed ? Gap::none : gap;
}

Gap Checker::conflict(const Tracked &memory, Moment then, Moment now, uintptr_t address) const {
  return !then || (is_atomic(then) && is_atomic(now)) ? Gap::none : gap(memory, then, now, address);
}

void Checker::read_cell(Tracked &memory, Cell &cell, const Step &step, uintptr_t address) {
  const Gap found = conflict(memory, cell.writer, step.now, address);
  if (found != Gap::none) race(memory, step, address, cell.writer, cell.writer_site, true, found);
  if (cell.reader && cell.reader == (step.now & ~atomic_bit)) return; // a plain read has more conflicts than an atomic
  const auto passed = [&](Moment reader) { return !reader || gap(memory, reader, step.now, address) == Gap::none; };
  if (passed(cell.reader)) {
    cell.reader = step.now;
    cell.reader_site = step.site;
  } else if (passed(cell.other_reader) ||
             (same_block(cell.reader, cell.other_reader) && !same_block(cell.reader, step.now))) {
    cell.other_reader = step.now;
    cell.other_site = step.site;
  }
}

void Checker::write_cell(Tracked &memory, Cell &cell, const Step &step, uintptr_t address) {
  Gap gap;
  if ((gap = conflict(memory, cell.writer, step.now, address)) != Gap::none)
    race(memory, step, address, cell.writer, cell.writer_site, true, gap);
  else if ((gap = conflict(memory, cell.reader, step.now, address)) != Gap::none)
    race(memory, step, address, cell.reader, cell.reader_site, false, gap);
  else if ((gap = conflict(memory, cell.other_reader, step.now, address)) != Gap::none)
    race(memory, step, address, cell.other_reader, cell.other_site, false, gap);
  // If one thread made a plain and an atomic access, keeps the plain one, since it also races with atomic operations of
  // other threads.
  const Moment plain = step.now & ~atomic_bit;
  if (cell.writer != plain || !is_atomic(step.now)) {
    cell.writer = step.now;
    cell.writer_site = step.site;
  }
  if (cell.reader != plain || !is_atomic(step.now)) cell.reader = 0;
  cell.other_reader = 0;
}

// ---------------------------------------------------------------- entries

namespace {

inline Site site(const void *program_counter) { return Site(uintptr_t(program_counter)); }
inline uintptr_t frame() { return uintptr_t(__builtin_frame_address(0)); }

__attribute__((noinline)) void record(const void *address, mrt_u64 size, mrt_u32 write, const void *program_counter) {
  const Step step = {uintptr_t(address), size, write != 1, write != 0, site(program_counter), running_moment};
  Checker::existing().access(step, frame());
}

} // namespace

void access(const void *address, mrt_u64 size, mrt_u32 write, const void *program_counter) {
  const Moment now = running_moment;
  if (now && !Checker::existing().is_recorded(uintptr_t(address), size, write, now))
    record(address, size, write, program_counter);
}

void copy(const void *destination, const void *source, mrt_u64 size, const void *program_counter) {
  const Moment now = running_moment;
  if (now && size)
    the_checker().copy(uintptr_t(destination), uintptr_t(source), size, site(program_counter), now, frame());
}

void atomic_access(const void *address, mrt_u32 size, mrt_u32 write, const char *file, mrt_u32 line) {
  const Site site = the_checker().report.atomic_site(file, line);
  const Moment now = running_moment | atomic_bit;
  the_checker().access({uintptr_t(address), size, write != 1, write != 0, site, now}, frame());
}

} // namespace mrt::checker
