// Operations of a SIMD-group or a quad-group on an NVIDIA GPU; lanes_resolve.h implements them for the software device.
//
// All lanes of the SIMD-group that have not ended must reach an operation together.
#ifndef MRT_GPU_LANES_H
#define MRT_GPU_LANES_H

#include "current.h"

namespace mrt {

// The value of lane `from`, in words of 32 bits.
template <typename T> MRT_FUNC T from_lane(T value, mrt_u32 from) {
  constexpr unsigned count = (sizeof(T) + 3) / 4;
  int words[count] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (unsigned i = 0; i < count; i++) words[i] = __nvvm_shfl_sync_idx_i32(all_lanes, words[i], int(from), 31);
  T result;
  __builtin_memcpy(&result, words, sizeof(T));
  return result;
}

template <typename T> MRT_FUNC T of_all_bits() {
  T result;
  __builtin_memset(&result, 0xff, sizeof(T));
  return result;
}

// If all lanes take part, a butterfly: each lane computes the same sum, in the same order. Otherwise the remaining
// lanes are combined one by one.
template <typename Operation, mrt_u32 width, typename T> MRT_FUNC T lane_reduction(T data, Meeting) {
  const mrt_u32 active = active_lanes();
  if (active == all_lanes) {
    const mrt_u32 lane = lane_index();
    for (mrt_u32 step = width / 2; step; step /= 2) {
      const T other = from_lane(data, lane ^ step);
      const bool is_lower = (lane & step) == 0;
      T first = is_lower ? data : other;
      combine<Operation>(first, is_lower ? other : data);
      data = first;
    }
    return data;
  }
  const mrt_u32 start = lane_index() & ~(width - 1);
  T total{};
  bool begun = false;
  for (mrt_u32 i = 0; i < width; i++) {
    const T other = from_lane(data, start + i);
    if (!(active >> (start + i) & 1)) continue;
    if (begun) combine<Operation>(total, other);
    else total = other;
    begun = true;
  }
  return total;
}

// Hillis and Steele's scan: five steps for 32 lanes. Lanes that have ended count as the identity.
template <typename Operation, bool inclusive, mrt_u32 width, typename T> MRT_FUNC T lane_prefix(T data, Meeting) {
  const mrt_u32 active = active_lanes(), lane = lane_index(), position = lane & (width - 1);
  const T identity = T(lane_element<T>(Operation::identity));
  for (mrt_u32 step = 1; step < width; step *= 2) {
    const mrt_u32 from = position < step ? lane : lane - step;
    T before = from_lane(data, from);
    if (!(active >> from & 1)) before = identity;
    if (position < step) continue;
    combine<Operation>(before, data);
    data = before;
  }
  if (inclusive) return data;
  const T before = from_lane(data, position ? lane - 1 : lane);
  return position == 0 || !(active >> (lane - 1) & 1) ? identity : before;
}

template <typename Rule, mrt_u32 width, typename T> MRT_FUNC T lane_permutation(Permuted<T> operand, Meeting) {
  const mrt_u32 lane = lane_index(), first = lane & ~(width - 1);
  const LaneSource source = Rule::of(lane - first, operand.parameter, width, operand.modulo);
  const mrt_u32 from = first + source.lane;
  T value = from_lane(operand.data, from);
  if constexpr (Rule::fills) {
    const T filling = from_lane(operand.filling, from);
    if (source.filling) value = filling;
  }
  return source.lane < width ? value : of_all_bits<T>();
}

template <mrt_u32 width, typename T> MRT_FUNC T lane_first(T data, Meeting) {
  const mrt_u32 first = lane_index() & ~(width - 1);
  return from_lane(data, first + mrt_u32(__builtin_ctz(active_lanes() >> first)));
}

template <mrt_u32 width> MRT_FUNC Vote lane_vote(bool expression, Meeting) {
  constexpr mrt_u32 all = width == 32 ? ~0u : (1u << (width & 31)) - 1;
  const mrt_u32 lane = lane_index(), first = lane & ~(width - 1);
  return {active_lanes() >> first & all, __nvvm_vote_ballot_sync(all_lanes, expression) >> first & all, lane - first};
}

} // namespace mrt

#endif
