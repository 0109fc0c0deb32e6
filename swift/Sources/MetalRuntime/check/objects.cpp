#include "check/objects.h"

#include "support/memory.h"

#include <algorithm>
#include <cstring>

namespace mrt::checker {
namespace {

uint64_t distance(uintptr_t begin, uintptr_t end, uintptr_t address, uint64_t size) {
  if (address + size > end) return address >= end ? address - end : 0;
  return address < begin ? begin - address : 0;
}

// "at byte 64 of buffer 'x' (64 bytes long), 0 bytes past its end"
std::string beyond(const Object &object, uint64_t size) {
  const int64_t past = object.offset + int64_t(size) - int64_t(object.length);
  std::string text = "at byte " + std::to_string(object.offset) + " of " + object.name + ", which is " +
                     std::to_string(object.length) + " bytes long: ";
  if (object.offset < 0)
    return text + std::to_string(-object.offset) + " bytes before its start; check the index that is subtracted from";
  return text + "up to " + std::to_string(past) + " bytes past its end; compare the index with the number of elements";
}

std::string freed(const Object &object) {
  return "of " + object.name + ", which has been freed; keep it until the command buffer has completed";
}

} // namespace

void Objects::begin_dispatch(const Dispatch &dispatch) {
  request_ = dispatch.request;
  entry_ = dispatch.entry;
  buffers_.clear();
  last_buffers_[0] = last_buffers_[1] = nullptr;
  for (uint32_t index = 0; index < MRT_MAX_BUFFERS; index++) {
    const mrt_bound_buffer &bound = request_->buffers[index];
    if (bound.address) add(bound.address, bound.length, bound.label, parameter(MRT_PARAMETER_BUFFER, index));
  }
  for (size_t i = 0; i < request_->used_resource_count; i++) add(request_->used_resources[i], 0, nullptr, nullptr);
  ordered_.clear();
  for (size_t i = 0; i < request_->ordered_resource_count; i++) {
    const Allocation *allocation = find_allocation(request_->ordered_resources[i]);
    if (!allocation) continue;
    ordered_.emplace_back();
    ordered_.back().begin = allocation->address;
    ordered_.back().end = allocation->address + allocation->length;
  }
}

void Objects::add(const void *address, size_t length, const char *label, const MrtParameter *parameter) {
  Target target;
  target.begin = target.bound = uintptr_t(address);
  target.end = target.begin + length;
  target.parameter = parameter;
  const bool constant = parameter && parameter->space == MRT_SPACE_CONSTANT;
  target.constant = constant ? parameter : nullptr;
  target.coherent = parameter && parameter->is_coherent;
  if (const Allocation *allocation = find_allocation(address)) {
    target.begin = allocation->address;
    const uintptr_t end = allocation->address + allocation->length;
    // The buffer of a pool may be longer than the part that is in use.
    target.end = allocation->wrapped ? std::max(target.end, end) : end;
    target.label = allocation_label(allocation);
  }
  if (label) target.label = label;
  for (Target &known : buffers_) {
    if (known.begin != target.begin) continue;
    known.end = std::max(known.end, target.end);
    if (!constant && parameter) known.constant = nullptr;
    if (parameter) known.coherent &= target.coherent;
    return;
  }
  buffers_.push_back(target);
}

void Objects::begin_group(const Region *regions, size_t count) {
  regions_.assign(regions, regions + count);
  last_regions_[0] = last_regions_[1] = nullptr;
}

const MrtParameter *Objects::parameter(uint32_t kind, uint32_t index) const {
  for (uint32_t i = 0; i < entry_->parameter_count; i++)
    if (entry_->parameters[i].kind == kind && entry_->parameters[i].index == index) return &entry_->parameters[i];
  return nullptr;
}

const Target *Objects::search_buffers(uintptr_t address, uint64_t size) const {
  for (const Target &target : buffers_)
    if (target.contains(address, size)) return &target;
  return nullptr;
}

const Region *Objects::search_regions(uintptr_t address, uint64_t size) const {
  for (const Region &region : regions_)
    if (contains(region, address, size)) return &region;
  return nullptr;
}

bool Objects::is_ordered(uintptr_t address) const {
  for (const Target &target : ordered_)
    if (target.contains(address, 1)) return true;
  return false;
}

bool Objects::is_coherent(uintptr_t address) const {
  const Target *target = search_buffers(address, 1);
  return target && target->coherent;
}

// Returns whether a label says more than the parameter's name: the label "buffer" does not.
static bool is_telling(const std::string &label) {
  return !label.empty() && label != "buffer" && !is_label_of_inline_bytes(label);
}

Object Objects::object_of(const Target &target, uintptr_t address) const {
  Object object;
  object.label = !is_telling(target.label) && target.parameter ? target.parameter->name : target.label;
  object.name = object.label.empty() ? "a buffer without a label" : "buffer '" + object.label + "'";
  object.offset = int64_t(address - target.begin);
  object.length = target.end - target.begin;
  // Elements are counted from the start of the buffer, as the offset is.
  if (target.parameter && (target.bound - target.begin) % std::max(1u, target.parameter->element_size) == 0)
    object.element_size = target.parameter->element_size;
  object.identity = reinterpret_cast<const void *>(target.begin);
  return object;
}

Object Objects::object_of(const Region &region, uintptr_t address) const {
  Object object;
  object.label = object.name = std::string("threadgroup variable '") + region.name + "'";
  object.offset = int64_t(address - uintptr_t(region.address));
  object.length = region.size;
  for (uint32_t i = 0; i < entry_->parameter_count; i++) {
    const MrtParameter &parameter = entry_->parameters[i];
    if (parameter.kind == MRT_PARAMETER_THREADGROUP && strcmp(parameter.name, region.name) == 0)
      object.element_size = parameter.element_size;
  }
  object.identity = region.name;
  return object;
}

Object Objects::object_of(const Allocation &allocation, uintptr_t address) {
  Object object;
  object.label = allocation_label(&allocation);
  object.name = object.label.empty() ? "a buffer without a label" : "buffer '" + object.label + "'";
  object.offset = int64_t(address - allocation.address);
  object.length = allocation.length;
  object.identity = reinterpret_cast<const void *>(allocation.address);
  return object;
}

Object Objects::describe(uintptr_t address, Space space) const {
  std::string unused;
  if (space == Space::threadgroup) return nearest_region(address, 1, unused);
  for (const Target &target : buffers_)
    if (target.contains(address, 1)) return object_of(target, address);
  return {};
}

Object Objects::nearest_region(uintptr_t address, uint64_t size, std::string &why) const {
  Object object;
  uint64_t least = UINT64_MAX;
  for (const Region &region : regions_) {
    const uintptr_t begin = uintptr_t(region.address);
    const uint64_t away = distance(begin, begin + region.size, address, size);
    if (away >= least) continue;
    least = away;
    object = object_of(region, address);
  }
  why =
      regions_.empty() ? "of threadgroup memory, of which the dispatch has none; set its length" : beyond(object, size);
  return object;
}

Object Objects::nearest_buffer(uintptr_t address, uint64_t size, bool write, std::string &why) const {
  size_t away = 0;
  const void *pointer = reinterpret_cast<const void *>(address);
  const Allocation *allocation = find_allocation(pointer);
  // the address may be in the guard range of another allocation
  if (!allocation || !allocation->contains(address, 1)) allocation = nearest_allocation(pointer, &away);
  for (const Target &target : buffers_) {
    if (allocation ? target.begin != allocation->address || away > page_bytes
                   : distance(target.begin, target.end, address, size) > page_bytes)
      continue;
    const Object object = object_of(target, address);
    why = allocation && allocation->freed ? freed(object) : beyond(object, size);
    return object;
  }
  if (address >= page_bytes && allocation && allocation->contains(address, 1) && holds_address_in(*allocation)) {
    const Object object = object_of(*allocation, address);
    why = allocation->freed ? freed(object)
                            : "at byte " + std::to_string(object.offset) + " of " + object.name +
                                  ", which this dispatch does not bind; bind it, or call useResource";
    return object;
  }
  if (const Target *target = address >= page_bytes ? nearest_target(address, size, write) : nullptr) {
    const Object object = object_of(*target, address);
    why = beyond(object, size);
    return object;
  }
  why = "at an address that lies in no buffer; " +
        std::string(address < page_bytes ? "bind a buffer to each argument that the kernel uses"
                                         : "check the pointer's arithmetic");
  return {};
}

// A wrong index leads to an address within 32 bits of elements from an argument. The nearest argument is the most
// likely one, whatever is in between. A reference has no index, and a pointer to const is not written through.
const Target *Objects::nearest_target(uintptr_t address, uint64_t size, bool write) const {
  constexpr uint64_t farthest = uint64_t(1) << 36;
  const Target *nearest = nullptr;
  uint64_t least = farthest;
  for (const Target &target : buffers_) {
    const MrtParameter *parameter = target.parameter;
    if (parameter && (parameter->is_reference || (write && parameter->is_const))) continue;
    const uint64_t away = distance(target.begin, target.end, address, size);
    if (away >= least) continue;
    least = away;
    nearest = &target;
  }
  return nearest;
}

// A kernel can access memory that is not one of its arguments through an address stored in an argument.
bool Objects::holds_address_in(const Allocation &allocation) const {
  constexpr size_t most_bytes = 1 << 20;
  for (const Target &target : buffers_) {
    const uintptr_t end = std::min(target.end, target.begin + most_bytes);
    for (uintptr_t at = (target.begin + 7) / 8 * 8; at + 8 <= end; at += 8) {
      uint64_t held;
      memcpy(&held, reinterpret_cast<const void *>(at), sizeof held);
      if (allocation.contains(held, 1)) return true;
    }
  }
  return false;
}

} // namespace mrt::checker
