// The exchange of values between the lanes of a SIMD-group or a quad-group on the software device. Each `resolve_…`
// function runs once for all active lanes.
#ifndef MRT_LANES_RESOLVE_H
#define MRT_LANES_RESOLVE_H

#include "lanes.h"

namespace mrt {

template <typename T> T &operand(MrtExchange *exchange, mrt_u32 lane) {
  return *static_cast<T *>(exchange->input[lane]);
}
template <typename T> T &result(MrtExchange *exchange, mrt_u32 lane) {
  return *static_cast<T *>(exchange->output[lane]);
}
inline bool is_active(const MrtExchange *exchange, mrt_u32 lane) { return lane < 32 && (exchange->active >> lane & 1); }

// Combines the operands of each group in the exchange's (seeded) order: the order of a reduction is unspecified.
template <typename Operation, mrt_u32 width, typename T>
MRT_UNINSTRUMENTED void resolve_reduction(MrtExchange *exchange) {
  for (mrt_u32 first = 0; first < 32; first += width) {
    T total{};
    bool begun = false;
    for (mrt_u32 i = 0; i < exchange->active_count; ++i) {
      const mrt_u32 lane = exchange->order[i];
      if (lane - first >= width) continue;
      if (begun) combine<Operation>(total, operand<T>(exchange, lane));
      else total = operand<T>(exchange, lane);
      begun = true;
    }
    for (mrt_u32 lane = first; lane < first + width; ++lane)
      if (is_active(exchange, lane)) result<T>(exchange, lane) = total;
  }
}

// Lane i gets x0 OP … OP xi (inclusive), or identity OP x0 OP … OP x(i-1) (exclusive), over the active lanes up to it.
template <typename Operation, bool inclusive, mrt_u32 width, typename T>
MRT_UNINSTRUMENTED void resolve_prefix(MrtExchange *exchange) {
  for (mrt_u32 first = 0; first < 32; first += width) {
    T total = T(lane_element<T>(Operation::identity));
    for (mrt_u32 lane = first; lane < first + width; ++lane) {
      if (!is_active(exchange, lane)) continue;
      if (!inclusive) result<T>(exchange, lane) = total;
      combine<Operation>(total, operand<T>(exchange, lane));
      if (inclusive) result<T>(exchange, lane) = total;
    }
  }
}

// Reports, once per group, a parameter that differs between the active lanes of the group.
template <typename T>
MRT_UNINSTRUMENTED void require_uniform(MrtExchange *exchange, mrt_u32 width, const char *parameter) {
  for (mrt_u32 first = 0; first < 32; first += width) {
    const Permuted<T> *lowest = nullptr;
    for (mrt_u32 lane = first; lane < first + width; ++lane) {
      if (!is_active(exchange, lane)) continue;
      const Permuted<T> &own = operand<Permuted<T>>(exchange, lane);
      if (!lowest) lowest = &own;
      const bool agrees = own.parameter == lowest->parameter;
      if (agrees && own.modulo == lowest->modulo) continue;
      exchange->nonuniform(exchange, agrees ? "modulo" : parameter);
      break;
    }
  }
}

// Reading from an inactive lane gives a value with all bits set: NaN, or a conspicuous integer.
template <typename Rule, mrt_u32 width, typename T> MRT_UNINSTRUMENTED void resolve_permutation(MrtExchange *exchange) {
  if (Rule::is_uniform) require_uniform<T>(exchange, width, Rule::is_uniform);
  for (mrt_u32 lane = 0; lane < 32; ++lane) {
    if (!is_active(exchange, lane)) continue;
    const Permuted<T> &own = operand<Permuted<T>>(exchange, lane);
    const mrt_u32 first = lane & ~(width - 1);
    const LaneSource source = Rule::of(lane - first, own.parameter, width, own.modulo);
    const mrt_u32 from = first + source.lane;
    if (source.lane < width && is_active(exchange, from)) {
      const Permuted<T> &other = operand<Permuted<T>>(exchange, from);
      result<T>(exchange, lane) = source.filling ? other.filling : other.data;
    } else {
      exchange->inactive_lane(exchange, lane, from);
      __builtin_memset(static_cast<void *>(&result<T>(exchange, lane)), 0xff, sizeof(T));
    }
  }
}

template <mrt_u32 width, typename T> MRT_UNINSTRUMENTED void resolve_first(MrtExchange *exchange) {
  for (mrt_u32 first = 0; first < 32; first += width) {
    const T *lowest = nullptr;
    for (mrt_u32 lane = first; lane < first + width; ++lane) {
      if (!is_active(exchange, lane)) continue;
      if (!lowest) lowest = &operand<T>(exchange, lane);
      result<T>(exchange, lane) = *lowest;
    }
  }
}

template <mrt_u32 width> MRT_UNINSTRUMENTED void resolve_vote(MrtExchange *exchange) {
  constexpr mrt_u32 all = width == 32 ? ~0u : (1u << (width & 31)) - 1;
  mrt_u32 yes = 0;
  for (mrt_u32 lane = 0; lane < 32; ++lane)
    if (is_active(exchange, lane) && operand<bool>(exchange, lane)) yes |= 1u << lane;
  for (mrt_u32 lane = 0; lane < 32; ++lane) {
    const mrt_u32 first = lane & ~(width - 1);
    if (is_active(exchange, lane))
      result<Vote>(exchange, lane) = {exchange->active >> first & all, yes >> first & all, lane - first};
  }
}

// ---------------------------------------------------------------- what one lane calls
template <typename Operation, mrt_u32 width, typename T> MRT_FUNC T lane_reduction(T data, Meeting meeting) {
  return exchange<T, resolve_reduction<Operation, width, T>>(data, meeting);
}
template <typename Operation, bool inclusive, mrt_u32 width, typename T>
MRT_FUNC T lane_prefix(T data, Meeting meeting) {
  return exchange<T, resolve_prefix<Operation, inclusive, width, T>>(data, meeting);
}
template <typename Rule, mrt_u32 width, typename T> MRT_FUNC T lane_permutation(Permuted<T> operand, Meeting meeting) {
  return exchange<T, resolve_permutation<Rule, width, T>>(operand, meeting);
}
template <mrt_u32 width, typename T> MRT_FUNC T lane_first(T data, Meeting meeting) {
  return exchange<T, resolve_first<width, T>>(data, meeting);
}
template <mrt_u32 width> MRT_FUNC Vote lane_vote(bool expression, Meeting meeting) {
  return exchange<Vote, resolve_vote<width>>(expression, meeting);
}

} // namespace mrt

#endif
