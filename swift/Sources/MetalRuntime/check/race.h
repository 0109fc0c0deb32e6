// Which accesses are ordered (MSL 6.9): the moments of a run, and the happens-before relation between them.
//
// A moment is one thread between two barriers. Its number is (block << 6 | lane << 1), where a block is one SIMD-group
// between two barriers; blocks are numbered in ascending order during the whole run. Bit 0 says that an access was
// atomic. Threadgroups run one after the other, so "before the last barrier" and "before this dispatch" are comparisons
// of numbers; only two moments of the same interval need a lookup in the table of blocks.
#pragma once

#include "include/metal_runtime.h"
#include "metal/kernel_abi.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace mrt::checker {

typedef uint32_t Moment; // 0: never

constexpr Moment atomic_bit = 1;
constexpr Moment block_size = 64;
inline bool same_block(Moment a, Moment b) { return (a ^ b) < block_size; }
inline bool is_atomic(Moment moment) { return moment & atomic_bit; }

enum class Space { device, threadgroup };

// The reason why two accesses by different threads are not ordered.
enum class Gap {
  none,      // they are ordered
  group,     // threads of one threadgroup, without a barrier between them
  flag,      // there is a barrier between them, but its mem_flags do not include the address space
  groups,    // threadgroups of one dispatch
  coherence, // the same, with fences between them, which order only coherent memory
  dispatches // dispatches of one epoch
};

struct DispatchRecord {
  std::string kernel;
  uint64_t epoch = 0;
  uint64_t module_base = 0; // program counters are kept as their low 32 bits
};

// The thread of a moment.
struct Party {
  bool known = false; // false: too old for the table
  mrt_u32 group[3] = {}, thread[3] = {};
  mrt_u32 dispatch = 0; // index for Order::record
};

class Order {
public:
  void begin_dispatch(const DispatchRecord &record);
  void begin_group(const mrt_u32 position[3], const mrt_u32 size[3]);
  void threadgroup_barrier(mrt_u32 flags);
  void simdgroup_barrier(mrt_u32 simdgroup, mrt_u32 flags);
  // atomic_thread_fence for device memory (MSL 6.15.3): the accesses of this threadgroup before a release fence are
  // ordered before those of a later threadgroup after an acquire fence, in memory that is coherent between them.
  void device_fence(mrt_u32 simdgroup, bool releases, bool acquires);

  Moment moment(mrt_u32 thread) const { return moments_[thread]; }
  const Moment *moments() const { return moments_; }
  // Returns the gap between `then` and the moment `now` of the running threadgroup. A thread's accesses are ordered
  // among themselves.
  Gap gap(Moment then, Moment now, Space space) const {
    return then < epoch_start_ || (then >= group_start_ && then < fence(space)) ? Gap::none
                                                                                : find_gap(then, now, space);
  }
  Party party(Moment moment) const;
  const DispatchRecord *record(const Party &party) const;

  // Accesses at moments before this one are ordered before those of all running threads; in device memory, only the
  // accesses of this threadgroup are.
  Moment fence(Space space) const { return space == Space::device ? device_.fence : threadgroup_.fence; }
  Moment group_start() const { return group_start_; }
  Moment dispatch_start() const { return dispatch_start_; }
  Moment epoch_start() const { return epoch_start_; }
  // Returns whether a threadgroup of this dispatch has used a release fence: then an access of an earlier threadgroup
  // does not always conflict with a later one.
  bool has_fences() const { return has_fences_; }
  // Returns whether the numbers are nearly used up: then forget all stored moments and call `restart`.
  bool exhausted() const { return next_ > 0xf0000000u; }
  void restart();

private:
  struct Block {
    mrt_u32 group;
    uint16_t simdgroup, barriers;
  };
  struct Group {
    mrt_u32 position[3];
    mrt_u32 size[3];
    mrt_u32 dispatch;
    Moment published;
  };
  struct Fences {
    Moment fence = 0;
    std::vector<Moment> simdgroup;
  };

  void forget_old_epochs(uint64_t newest);
  Gap find_gap(Moment then, Moment now, Space space) const;
  Moment take_block(mrt_u32 simdgroup);
  void take_blocks();
  void renew(mrt_u32 simdgroup);
  bool published(Moment then) const;
  const Block *block(Moment moment) const;
  const DispatchRecord *record(mrt_u32 dispatch) const;
  const DispatchRecord *record_of(Moment moment) const;

  static constexpr size_t kept_blocks = 1u << 18, kept_groups = 1u << 16, kept_dispatches = 1u << 10;
  std::vector<Block> blocks_;
  std::vector<Group> groups_;
  std::vector<DispatchRecord> dispatches_;
  std::unordered_map<uint64_t, Moment> epochs_; // first moment of an epoch
  Moment next_ = block_size;
  mrt_u32 group_ = 0, dispatch_ = 0;
  Moment group_start_ = 0, dispatch_start_ = 0, epoch_start_ = 0;
  mrt_u32 thread_count_ = 0;
  uint16_t barriers_ = 0;
  bool fenced_ = false, has_fences_ = false;
  Fences device_, threadgroup_;
  Moment moments_[1024] = {};
};

} // namespace mrt::checker
