// The memory of one threadgroup: its static variables and its [[threadgroup(n)]] arguments.
#pragma once

#include "check/checker.h"
#include "execute/launch.h"

#include <vector>

namespace mrt {

// Each worker has one, and lays it out again for each dispatch. Poisoned gaps separate and surround the pieces; the
// pages before and after are unmapped.
class ThreadgroupMemory {
public:
  ThreadgroupMemory() = default;
  ~ThreadgroupMemory();
  ThreadgroupMemory(const ThreadgroupMemory &) = delete;
  ThreadgroupMemory &operator=(const ThreadgroupMemory &) = delete;

  bool lay_out(const Launch &launch); // false: out of memory
  void poison();                      // called before each threadgroup

  void *const *arguments() const { return arguments_.data(); }
  void *const *variables() const { return variables_.data(); }
  const std::vector<checker::Region> &regions() const { return regions_; }

private:
  bool reserve(size_t bytes);

  char *mapping_ = nullptr;
  size_t mapped_ = 0; // bytes between the unmapped ends
  size_t used_ = 0;
  std::vector<void *> arguments_, variables_;
  std::vector<std::string> names_;
  std::vector<checker::Region> regions_;
};

} // namespace mrt
