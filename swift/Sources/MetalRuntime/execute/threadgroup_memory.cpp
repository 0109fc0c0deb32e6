#include "execute/threadgroup_memory.h"

#include "support/memory.h"
#include "support/settings.h"

#include <algorithm>
#include <sys/mman.h>

namespace mrt {
namespace {

constexpr size_t gap_bytes = 256;
constexpr size_t end_bytes = 64 << 10; // unmapped memory before and after
constexpr size_t least_alignment = 16;

struct Piece {
  size_t offset, size;
  void **pointer;
};

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

} // namespace

ThreadgroupMemory::~ThreadgroupMemory() {
  if (mapping_) munmap(mapping_ - end_bytes, mapped_ + 2 * end_bytes);
}

bool ThreadgroupMemory::lay_out(const Launch &launch) {
  const MrtModule &module = *launch.code->module;
  arguments_.assign(MRT_MAX_THREADGROUP_ARGUMENTS, nullptr);
  variables_.assign(module.variable_count, nullptr);
  names_.clear();
  std::vector<Piece> pieces;
  size_t end = gap_bytes;
  auto add = [&](size_t size, size_t alignment, void **pointer, std::string name) {
    size_t offset = round_up(end, std::max(alignment, least_alignment));
    names_.push_back(std::move(name));
    pieces.push_back({offset, size, pointer});
    end = offset + size + gap_bytes;
  };
  for (mrt_u32 position : launch.code->variables) {
    const MrtVariable &variable = *module.variables[position];
    add(variable.size, variable.alignment, &variables_[position], variable.name);
  }
  for (mrt_u32 i = 0; i < launch.code->entry->parameter_count; i++) {
    const MrtParameter &parameter = launch.code->entry->parameters[i];
    if (parameter.kind != MRT_PARAMETER_THREADGROUP || parameter.index >= MRT_MAX_THREADGROUP_ARGUMENTS) continue;
    if (size_t length = launch.request->threadgroup_lengths[parameter.index])
      add(length, parameter.element_alignment, &arguments_[parameter.index], parameter.name);
  }
  used_ = end;
  if (!reserve(end)) return false;
  regions_.clear();
  for (size_t i = 0; i < pieces.size(); i++) {
    *pieces[i].pointer = mapping_ + pieces[i].offset;
    regions_.push_back({mapping_ + pieces[i].offset, pieces[i].size, names_[i].c_str()});
  }
  return true;
}

void ThreadgroupMemory::poison() {
  if (!regions_.empty() && poisons_threadgroup_memory()) mrt::poison(mapping_, used_);
}

bool ThreadgroupMemory::reserve(size_t bytes) {
  if (bytes <= mapped_) return true;
  size_t capacity = round_up(std::max(bytes, size_t(64) << 10), 4096 * 16);
  void *whole = mmap(nullptr, capacity + 2 * end_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) return false;
  char *inner = static_cast<char *>(whole) + end_bytes;
  if (mprotect(inner, capacity, PROT_READ | PROT_WRITE) != 0) {
    munmap(whole, capacity + 2 * end_bytes);
    return false;
  }
  if (mapping_) munmap(mapping_ - end_bytes, mapped_ + 2 * end_bytes);
  mapping_ = inner;
  mapped_ = capacity;
  return true;
}

} // namespace mrt
