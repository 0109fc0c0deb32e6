#include "check/views.h"

#include "check/shadow.h" // page_bytes

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace mrt::checker {
namespace {

// Address space without memory on both sides, so that an access with a wrong index is attributed to the right argument.
constexpr size_t margin = size_t(1) << 36;

bool is_buffer(const MrtParameter &parameter) { return parameter.kind == MRT_PARAMETER_BUFFER; }
bool is_const(const MrtParameter &parameter) { return parameter.is_const || parameter.space == MRT_SPACE_CONSTANT; }

View make_view(const Target &target, const MrtParameter &parameter, std::string writers) {
  View view;
  const uintptr_t first = target.begin / page_bytes * page_bytes; // preserves the alignment of the memory
  const size_t length = target.end - first;
  view.origin = first - margin;
  const size_t size = margin + length + margin;
  char *memory =
      static_cast<char *>(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  // Fails only if the address space is exhausted. Then reserving the arena, which happens first, would already have
  // failed.
  if (memory == MAP_FAILED || mprotect(memory + margin, length, PROT_READ | PROT_WRITE) != 0) abort();
  view.begin = uintptr_t(memory);
  view.end = view.begin + size;
  view.parameter = &parameter;
  view.writers = std::move(writers);
  return view;
}

} // namespace

void Views::begin_dispatch(const Dispatch &dispatch, Objects &objects) {
  end_dispatch();
  if (!dispatch.detect) return;
  const MrtParameter *first = dispatch.entry->parameters, *last = first + dispatch.entry->parameter_count;
  const auto target_of = [&](const MrtParameter &parameter) {
    const void *address = dispatch.request->buffers[parameter.index].address;
    return address ? objects.buffer(uintptr_t(address), 1, false) : nullptr;
  };
  for (const MrtParameter *own = first; own != last; own++) {
    // Coherent memory may change at any time, since other threadgroups write to it.
    if (!is_buffer(*own) || !is_const(*own) || own->is_coherent) continue;
    const Target *target = target_of(*own);
    std::string writers;
    for (const MrtParameter *other = first; target && other != last; other++)
      if (is_buffer(*other) && !is_const(*other) && other->index != own->index && target_of(*other) == target)
        writers += std::string(writers.empty() ? "'" : " or '") + other->name + "'";
    if (writers.empty()) continue;
    views_.push_back(make_view(*target, *own, std::move(writers)));
    void *&address = dispatch.addresses[own->index];
    address = reinterpret_cast<void *>(uintptr_t(address) - views_.back().origin + views_.back().begin);
  }
}

void Views::end_dispatch() {
  settle();
  for (const View &view : views_) munmap(reinterpret_cast<void *>(view.begin), view.end - view.begin);
  views_.clear();
}

void Views::fill(const View &view, uintptr_t address, size_t size) {
  memcpy(reinterpret_cast<void *>(address), reinterpret_cast<const void *>(view.original(address)), size);
}

void Views::settle() {
  for (const Written &each : written_)
    memcpy(reinterpret_cast<void *>(each.original), reinterpret_cast<const void *>(each.address), each.size);
  written_.clear();
}

} // namespace mrt::checker
