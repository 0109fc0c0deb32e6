#include "check/race.h"

#include <algorithm>
#include <iterator>

namespace mrt::checker {

void Order::begin_dispatch(const DispatchRecord &record) {
  blocks_.resize(kept_blocks);
  groups_.resize(kept_groups);
  dispatches_.resize(kept_dispatches);
  dispatches_[++dispatch_ % kept_dispatches] = record;
  dispatch_start_ = group_start_ = next_;
  has_fences_ = false;
  forget_old_epochs(record.epoch);
  epoch_start_ = epochs_.emplace(record.epoch, next_).first->second;
}

// An encoder may stay open while others begin and end. An epoch older than all remembered dispatches contains no
// dispatch that could race.
void Order::forget_old_epochs(uint64_t newest) {
  if (epochs_.size() <= 2 * kept_dispatches) return;
  for (auto epoch = epochs_.begin(); epoch != epochs_.end();)
    epoch = epoch->first + kept_dispatches < newest ? epochs_.erase(epoch) : std::next(epoch);
}

void Order::restart() {
  next_ = group_start_ = dispatch_start_ = epoch_start_ = block_size;
  epochs_.clear();
  std::fill(blocks_.begin(), blocks_.end(), Block{});
}

void Order::begin_group(const mrt_u32 position[3], const mrt_u32 size[3]) {
  Group &group = groups_[++group_ % kept_groups];
  std::copy(position, position + 3, group.position);
  std::copy(size, size + 3, group.size);
  group.dispatch = dispatch_;
  group.published = 0;
  thread_count_ = size[0] * size[1] * size[2];
  barriers_ = 0;
  fenced_ = false;
  group_start_ = device_.fence = threadgroup_.fence = next_;
  device_.simdgroup.assign((thread_count_ + 31) / 32, 0);
  threadgroup_.simdgroup.assign((thread_count_ + 31) / 32, 0);
  take_blocks();
}

Moment Order::take_block(mrt_u32 simdgroup) {
  const Moment first = next_;
  next_ += block_size;
  blocks_[first / block_size % kept_blocks] = {group_, uint16_t(simdgroup), barriers_};
  return first;
}

void Order::take_blocks() {
  for (mrt_u32 thread = 0, first = 0; thread < thread_count_; thread++) {
    if (thread % 32 == 0) first = take_block(thread / 32);
    moments_[thread] = first + (thread % 32) * 2;
  }
}

void Order::threadgroup_barrier(mrt_u32 flags) {
  barriers_++;
  if (flags & MRT_MEM_DEVICE) device_.fence = next_;
  if (flags & MRT_MEM_THREADGROUP) threadgroup_.fence = next_;
  take_blocks();
}

void Order::simdgroup_barrier(mrt_u32 simdgroup, mrt_u32 flags) {
  if (flags & MRT_MEM_DEVICE) device_.simdgroup[simdgroup] = next_;
  if (flags & MRT_MEM_THREADGROUP) threadgroup_.simdgroup[simdgroup] = next_;
  renew(simdgroup);
}

void Order::device_fence(mrt_u32 simdgroup, bool releases, bool acquires) {
  if (releases) groups_[group_ % kept_groups].published = next_;
  fenced_ |= acquires;
  has_fences_ |= releases;
  renew(simdgroup);
}

bool Order::published(Moment then) const {
  const Block *found = fenced_ ? block(then) : nullptr;
  return found && group_ - found->group < kept_groups && then < groups_[found->group % kept_groups].published;
}

void Order::renew(mrt_u32 simdgroup) {
  const Moment first = take_block(simdgroup);
  for (mrt_u32 lane = 0; lane < 32 && simdgroup * 32 + lane < thread_count_; lane++)
    moments_[simdgroup * 32 + lane] = first + lane * 2;
}

const Order::Block *Order::block(Moment moment) const {
  if (moment + kept_blocks / 2 * block_size < next_) return nullptr;
  return &blocks_[moment / block_size % kept_blocks];
}

Gap Order::find_gap(Moment then, Moment now, Space space) const {
  if (then < group_start_) {
    if (space == Space::threadgroup) return Gap::none;
    if (then >= dispatch_start_) return published(then) ? Gap::coherence : Gap::groups;
    // Dispatches of other epochs may come between dispatches of this one.
    const DispatchRecord *earlier = record_of(then);
    return earlier && earlier->epoch == dispatches_[dispatch_ % kept_dispatches].epoch ? Gap::dispatches : Gap::none;
  }
  const Fences &fences = space == Space::device ? device_ : threadgroup_;
  const bool same_lane = ((then ^ now) & (block_size - 2)) == 0;
  if (same_block(then, now)) return same_lane ? Gap::none : Gap::group;
  const Block &a = *block(then), &b = *block(now);
  if (a.simdgroup == b.simdgroup && (same_lane || then < fences.simdgroup[a.simdgroup])) return Gap::none;
  return a.barriers != b.barriers ? Gap::flag : Gap::group;
}

Party Order::party(Moment moment) const {
  Party party;
  const Block *found = block(moment);
  if (!found || group_ - found->group >= kept_groups) return party;
  const Group &group = groups_[found->group % kept_groups];
  const mrt_u32 thread = found->simdgroup * 32u + moment % block_size / 2;
  party.known = true;
  party.dispatch = group.dispatch;
  std::copy(group.position, group.position + 3, party.group);
  party.thread[0] = thread % group.size[0];
  party.thread[1] = thread / group.size[0] % group.size[1];
  party.thread[2] = thread / group.size[0] / group.size[1];
  return party;
}

const DispatchRecord *Order::record(mrt_u32 dispatch) const {
  return dispatch_ - dispatch < kept_dispatches ? &dispatches_[dispatch % kept_dispatches] : nullptr;
}

const DispatchRecord *Order::record(const Party &party) const { return party.known ? record(party.dispatch) : nullptr; }

const DispatchRecord *Order::record_of(Moment moment) const {
  const Block *found = block(moment);
  if (!found || group_ - found->group >= kept_groups) return nullptr;
  return record(groups_[found->group % kept_groups].dispatch);
}

} // namespace mrt::checker
