// The objects that a dispatch may access: bound buffers, and the threadgroup's variables and arguments.
#pragma once

#include "check/checker.h"
#include "check/checker_report.h"
#include "support/memory.h"

#include <string>
#include <vector>

namespace mrt::checker {

// A whole buffer that is bound or used in this dispatch. It includes the addresses before the bound offset.
struct Target {
  uintptr_t begin = 0, end = 0;
  uintptr_t bound = 0;                     // the address that the kernel received
  const MrtParameter *parameter = nullptr; // the first parameter that it is bound to
  const MrtParameter *constant = nullptr;  // set if it is bound only to `constant` parameters
  bool coherent = false;                   // bound only to coherent(device) parameters
  std::string label;

  bool contains(uintptr_t address, uint64_t size) const {
    return address >= begin && size <= end - begin && address - begin <= end - begin - size;
  }
};

class Objects {
public:
  void begin_dispatch(const Dispatch &dispatch);
  void begin_group(const Region *regions, size_t count);

  // Returns the buffer or piece of threadgroup memory that contains all of these bytes; null if there is none. The last
  // results for reads and for writes are cached, since most kernels read from one object and write to another.
  const Target *buffer(uintptr_t address, uint64_t size, bool write) {
    const Target *last = last_buffers_[write];
    return last && last->contains(address, size) ? last : last_buffers_[write] = search_buffers(address, size);
  }
  const Region *region(uintptr_t address, uint64_t size, bool write) {
    const Region *last = last_regions_[write];
    return last && contains(*last, address, size) ? last : last_regions_[write] = search_regions(address, size);
  }
  const std::vector<Target> &buffers() const { return buffers_; }
  // Returns whether a memoryBarrier(resources:) has ordered this buffer within the epoch.
  bool is_ordered(uintptr_t address) const;
  // Returns whether the buffer is coherent across threadgroups.
  bool is_coherent(uintptr_t address) const;

  Object describe(uintptr_t address, Space space) const;
  // Return the nearest object to an address outside all objects, and describe where the address is.
  Object nearest_region(uintptr_t address, uint64_t size, std::string &why) const;
  Object nearest_buffer(uintptr_t address, uint64_t size, bool write, std::string &why) const;

private:
  static bool contains(const Region &region, uintptr_t address, uint64_t size) {
    const uint64_t offset = address - uintptr_t(region.address);
    return offset <= region.size && size <= region.size - offset;
  }
  const Target *search_buffers(uintptr_t address, uint64_t size) const;
  const Region *search_regions(uintptr_t address, uint64_t size) const;
  void add(const void *address, size_t length, const char *label, const MrtParameter *parameter);
  const MrtParameter *parameter(uint32_t kind, uint32_t index) const;
  Object object_of(const Target &target, uintptr_t address) const;
  Object object_of(const Region &region, uintptr_t address) const;
  static Object object_of(const Allocation &allocation, uintptr_t address);
  const Target *nearest_target(uintptr_t address, uint64_t size, bool write) const;
  bool holds_address_in(const Allocation &allocation) const;

  const mrt_dispatch *request_ = nullptr;
  const MrtEntry *entry_ = nullptr;
  std::vector<Target> buffers_;
  std::vector<Region> regions_;
  std::vector<Target> ordered_; // by memoryBarrier(resources:); only the addresses are set
  const Target *last_buffers_[2] = {};
  const Region *last_regions_[2] = {};
};

} // namespace mrt::checker
