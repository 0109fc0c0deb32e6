// Converts a conflict to a finding: its threads, source position, object and severity.
#include "check/checker_state.h"

#include "compile/library.h"
#include "support/memory.h"
#include "support/settings.h"

#include <algorithm>
#include <cstring>

namespace mrt::checker {

namespace {

const char *race_kind(Gap gap, Space space) {
  if (gap == Gap::flag) return "barrier-missing-flag";
  if (gap == Gap::dispatches) return "dispatch-race";
  return space == Space::device ? "device-race" : "threadgroup-race";
}

Action action_of(Moment moment, bool write) {
  if (is_atomic(moment)) return write ? Action::atomic_write : Action::atomic_read;
  return write ? Action::write : Action::read;
}

// A floating-point format. Without the sign bit, NaNs are the bit patterns greater than infinity.
struct FloatFormat {
  uint32_t data_type; // of the scalar, as in MTLDataType; the vector types are the next three numbers
  size_t size;
  uint32_t magnitude, infinity;

  bool is_nan(uintptr_t address) const {
    uint32_t bits = 0;
    memcpy(&bits, reinterpret_cast<const void *>(address), size);
    return (bits & magnitude) > infinity;
  }
};

constexpr FloatFormat float_formats[] = {
    {3, 4, 0x7fffffff, 0x7f800000}, {16, 2, 0x7fff, 0x7c00}, {121, 2, 0x7fff, 0x7f80}};

const FloatFormat *float_format(uint32_t data_type) {
  for (const FloatFormat &format : float_formats)
    if (data_type >= format.data_type && data_type < format.data_type + 4) return &format;
  return nullptr;
}

} // namespace

Location Checker::location(Site site, Moment moment) const {
  const DispatchRecord *record = order.record(order.party(moment));
  return {site, is_atomic(moment), record ? record->module_base : image_.begin};
}

Finding &Checker::found(const char *kind, const void *identity, Site site, Moment now, Location other) {
  Finding &finding = report.find(kind, identity, {site, is_atomic(now), image_.begin}, other);
  if (finding.message.empty()) finding.party = order.party(now);
  return finding;
}

// ---------------------------------------------------------------- bounds, constants, initialization

bool Checker::in_bounds(const Tracked &memory, const Step &step) {
  if (memory.space == Space::threadgroup) {
    if (objects_.region(step.address, step.size, step.write)) return true;
    out_of_bounds(step, memory.space);
    return false;
  }
  const Target *target = objects_.buffer(step.address, step.size, step.write);
  if (!target) {
    out_of_bounds(step, memory.space);
    return false;
  }
  if (!step.write || !target->constant) return true;
  Finding &finding = found("constant-write", reinterpret_cast<const void *>(target->begin), step.site, step.now);
  if (finding.message.empty()) {
    finding.object = objects_.describe(step.address, memory.space);
    finding.message = constant_write_message(finding, target->constant->name);
  }
  return true;
}

void Checker::out_of_bounds(const Step &step, Space space) {
  std::string why;
  const Object object = space == Space::threadgroup ? objects_.nearest_region(step.address, step.size, why)
                                                    : objects_.nearest_buffer(step.address, step.size, step.write, why);
  Finding &finding = found("out-of-bounds", object.identity, step.site, step.now);
  if (!finding.message.empty()) return;
  finding.object = object;
  finding.message = bounds_message(finding, step.action(), step.size, why);
}

void Checker::check_initialized(Tracked &memory, const Step &step) {
  if (memory.shadow.written(step.address, step.size)) return;
  if (memory.space == Space::device) find_host_writes(memory, step);
  // If some of the bytes have been written, the others may be padding of a struct, and a copy takes over their state.
  if (memory.shadow.any_written(step.address, step.size)) return;
  report_uninitialized(memory, step);
}

void Checker::report_uninitialized(Tracked &memory, const Step &step) {
  const bool device = memory.space == Space::device;
  // As in clear_unwritten: whole words in which no byte was written.
  const uintptr_t begin = device ? step.address / 4 * 4 : step.address;
  const size_t size = device ? (step.address + step.size + 3) / 4 * 4 - begin : step.size;
  const Object object = objects_.describe(step.address, memory.space);
  if (!trials.is_here()) {
    Finding &finding = found("uninitialized-read", object.identity, step.site, step.now);
    if (finding.message.empty()) {
      finding.object = object;
      finding.message = uninitialized_message(finding, memory.space, step.size);
      trials.begin(finding, object.identity, step.site, objects_.buffers(), device);
    }
  }
  const uint16_t tried = trials.value_for(object.identity, step.site);
  if (tried) Trials::fill(memory.shadow, begin, size, uint8_t(tried));
  else if (device && poison_reads_as_zero()) clear_unwritten(memory.shadow, step.address, step.size);
}

void Checker::report_unwritten(const MrtArray &array, const Step &step) {
  if (!trials.is_here()) {
    Finding &finding = found("uninitialized-read", array.name, step.site, step.now);
    if (finding.message.empty()) {
      const int64_t offset = int64_t(step.address - uintptr_t(array.begin));
      const bool is_array = array.size > array.element_size;
      finding.object = {(is_array ? "array '" : "variable '") + std::string(array.name) + "'",
                        array.name,
                        offset,
                        array.size,
                        array.element_size,
                        array.name};
      finding.message = is_array ? unwritten_message(finding, step.size) : unset_message(finding);
      finding.is_told = !is_array && is_told_unset(dispatch_.request->function, array.name, finding.position.line);
      // `a[i] += x` has already read its value.
      if (!step.write && !finding.is_told) trials.begin(finding, array.name, step.site, objects_.buffers(), false);
    }
  }
  const uint16_t tried = trials.value_for(array.name, step.site);
  const uintptr_t end = std::min<uintptr_t>(step.address + step.size, uintptr_t(array.begin) + array.size);
  if (tried) memset(reinterpret_cast<void *>(step.address), uint8_t(tried), end - step.address);
}

// Returns whether this dispatch has written a NaN to a buffer of floating-point numbers.
bool Checker::has_nan_result() {
  const auto written_here = [&](uintptr_t address) {
    const PageSlot slot = *arena_.shadow.slot(address);
    return slot && slot.cell(address).writer >= order.dispatch_start();
  };
  for (const Target &target : objects_.buffers()) {
    const FloatFormat *format = target.parameter ? float_format(target.parameter->data_type) : nullptr;
    if (!format || target.constant || !arena_.shadow.contains(target.begin)) continue;
    for (uintptr_t at = target.begin; at + format->size <= target.end; at += format->size)
      if (format->is_nan(at) && written_here(at)) return true;
  }
  return false;
}

// The CPU writes shared memory without a notification: bytes that no longer have the poison pattern have been written.
// They are checked in units of 4 bytes, since a single written byte may equal the poison.
void Checker::find_host_writes(Tracked &memory, const Step &step) {
  constexpr uintptr_t unit = 4;
  const uintptr_t end = step.address + step.size;
  for (uintptr_t at = step.address; at < end;) {
    const uintptr_t start = at / unit * unit, stop = std::min(start + unit, end);
    if (!memory.shadow.written(at, stop - at) && !is_poison(reinterpret_cast<const void *>(start), unit))
      memory.shadow.set_written(at, stop - at, true);
    at = stop;
  }
}

// The kernel or the host is about to read these bytes, so they are set to what a new buffer contains: zeros, or the
// setting `poison`.
void Checker::clear_unwritten(ShadowRange &shadow, uintptr_t address, size_t length) {
  constexpr uintptr_t unit = 4;
  for (uintptr_t at = address / unit * unit; at < address + length; at += unit)
    if (!shadow.any_written(at, unit) && is_poison(reinterpret_cast<const void *>(at), unit))
      memset(reinterpret_cast<void *>(at), 0, unit);
}

void memory_settled(void *address, size_t length) {
  ShadowRange &arena = the_checker().arena();
  if (arena.contains(uintptr_t(address))) the_checker().clear_unwritten(arena, uintptr_t(address), length);
}

// ---------------------------------------------------------------- races

void Checker::race(Tracked &memory, const Step &step, uintptr_t address, Moment other, Site other_site,
                   bool other_writes, Gap gap) {
  const Object object = objects_.describe(address, memory.space);
  Finding &finding =
      found(race_kind(gap, memory.space), object.identity, step.site, step.now, location(other_site, other));
  const Action other_action = action_of(other, other_writes);
  // If several threads write the same value, this is harmless on all known hardware, although MSL does not guarantee
  // it: it is reported as a note.
  const bool may_be_equal = step.action() == Action::write && other_action == Action::write;
  if (finding.message.empty()) {
    finding.object = object;
    finding.other = order.party(other);
    finding.values_compared = may_be_equal;
    finding.severity = may_be_equal ? "note" : "error";
    finding.message =
        race_message(finding, gap, memory.space, step.action(), other_action, step.address + step.size - address);
  }
  if (!finding.values_compared) return;
  PendingValue value = {address, size_t(1) << memory.shadow.slot(address)->shift(), 0, &finding};
  memcpy(&value.before, reinterpret_cast<const void *>(address), value.size);
  pending_.push_back(value);
  refresh();
}

// The write has already happened: the checker is called before each access, and this is a later call.
void Checker::resolve_values() {
  if (is_settled()) return;
  views_.settle();
  for (const PendingValue &value : pending_) {
    if (memcmp(reinterpret_cast<const void *>(value.address), &value.before, value.size) == 0) continue;
    value.finding->severity = "error";
    value.finding->values_compared = false;
  }
  pending_.clear();
  refresh();
}

// ---------------------------------------------------------------- arguments that share memory

// Reports a read through a const argument of bytes that this dispatch wrote through another argument. If nothing orders
// the two accesses, they are reported as a race.
void Checker::check_alias(const View &view, const Step &step, uintptr_t frame) {
  Tracked *memory = arena_.shadow.contains(step.address) ? &arena_ : find(step, frame);
  if (!memory) return;
  for (uintptr_t at = step.address, next; at < step.address + step.size; at = next) {
    const PageSlot slot = *memory->shadow.slot(at);
    next = slot ? ((at >> slot.shift()) + 1) << slot.shift() : (at / page_bytes + 1) * page_bytes;
    const Cell *cell = slot ? &slot.cell(at) : nullptr;
    if (!cell || cell->writer < order.dispatch_start()) continue;
    if (conflict(*memory, cell->writer, step.now, at) != Gap::none) continue;
    const Object object = objects_.describe(at, memory->space);
    Finding &finding =
        found("const-alias", object.identity, step.site, step.now, location(cell->writer_site, cell->writer));
    if (!finding.message.empty()) return;
    finding.object = object;
    finding.other = order.party(cell->writer);
    finding.message = alias_message(finding, *view.parameter, view.writers, step.address + step.size - at);
    return;
  }
}

// ---------------------------------------------------------------- reports of checks that the compiler inserts

void Checker::misaligned(uintptr_t address, mrt_u32 alignment, const char *type, Site site, Moment now) {
  Finding &finding = found("misaligned", nullptr, site, now);
  if (!finding.message.empty()) return;
  address = views_.original(address);
  const bool threadgroup = threadgroup_.shadow.contains(address);
  if (threadgroup || objects_.buffer(address, 1, false))
    finding.object = objects_.describe(address, threadgroup ? Space::threadgroup : Space::device);
  finding.message = misaligned_message(finding, type, alignment);
}

void Checker::subscript(mrt_u64 index, const char *type, Site site, Moment now) {
  Finding &finding = found("out-of-bounds", nullptr, site, now);
  if (finding.message.empty()) finding.message = subscript_message(finding, index, type);
}

void Checker::absent_argument(Site site, Moment now) {
  Finding &finding = found("absent-argument", nullptr, site, now);
  finding.severity = "note";
  if (finding.message.empty()) finding.message = absent_argument_message(finding);
}

void Checker::layout_dependence(const char *file, mrt_u32 line, Moment now) {
  Finding &finding = found("layout-dependence", nullptr, report.atomic_site(file, line), now | atomic_bit);
  finding.severity = "note";
  if (finding.message.empty()) finding.message = layout_message(finding);
}

namespace {

// Indexed by mrt::TensorProblem.
struct TensorFinding {
  const char *kind, *severity;
};
constexpr TensorFinding tensor_findings[] = {{"out-of-bounds", "error"},     {"out-of-bounds", "error"},
                                             {"tensor-shape", "error"},      {"uninitialized-read", "error"},
                                             {"uninitialized-read", "note"}, {"nonuniform-matrix", "error"},
                                             {"out-of-bounds", "error"}};

} // namespace

void Checker::tensor_problem(mrt_u32 problem, long one, long other, const char *file, mrt_u32 line, Moment now) {
  const TensorFinding &what = tensor_findings[problem];
  Finding &finding = found(what.kind, &what, report.atomic_site(file, line), now | atomic_bit);
  finding.severity = what.severity;
  if (finding.message.empty()) finding.message = tensor_message(finding, problem, one, other);
}

} // namespace mrt::checker
