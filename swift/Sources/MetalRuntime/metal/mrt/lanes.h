// How the lanes of a SIMD-group or a quad-group exchange values: the operations and index rules that simd.h and quad.h
// use.
//
// Each `resolve_…` function runs once for all active lanes. `width` is 32 for a SIMD-group and 4 for a quad-group;
// lanes of different quads never exchange values.
#ifndef MRT_LANES_H
#define MRT_LANES_H

#include "current.h"
#include "traits.h"

namespace mrt {

// ---------------------------------------------------------------- types: scalars of at most 32 bits except bool and
// bfloat, and vectors of them (MSL 6.9.2; Apple's compiler rejects 64-bit integers and bfloat here).
template <typename T> struct LaneType {
  typedef T element;
};
template <typename T, int N> struct LaneType<metal::vec<T, N>> {
  typedef T element;
};
template <typename T> using lane_element = typename LaneType<T>::element;

// 0 not supported, 1 floating-point, 2 integer.
template <typename E> struct LaneElement {
  static constexpr MRT_CONSTANT int kind = 0;
};
#define MRT_LANE_ELEMENT(E, K)                                                                                         \
  template <> struct LaneElement<E> {                                                                                  \
    static constexpr MRT_CONSTANT int kind = K;                                                                        \
  };
MRT_LANE_ELEMENT(float, 1)
MRT_LANE_ELEMENT(half, 1)
MRT_LANE_ELEMENT(char, 2)
MRT_LANE_ELEMENT(signed char, 2)
MRT_LANE_ELEMENT(uchar, 2)
MRT_LANE_ELEMENT(short, 2)
MRT_LANE_ELEMENT(ushort, 2)
MRT_LANE_ELEMENT(int, 2)
MRT_LANE_ELEMENT(uint, 2)
#undef MRT_LANE_ELEMENT

template <typename T> constexpr MRT_CONSTANT bool is_lane_number = LaneElement<lane_element<T>>::kind != 0;
template <typename T> constexpr MRT_CONSTANT bool is_lane_integer = LaneElement<lane_element<T>>::kind == 2;
template <typename T> using if_lane_number = metal::enable_if_t<is_lane_number<T>, int>;
template <typename T> using if_lane_integer = metal::enable_if_t<is_lane_integer<T>, int>;

} // namespace mrt

namespace metal {
// Apple's internal name for these types, which some programs use to choose between a SIMD-group function and a loop.
template <typename T, typename = void> struct __is_valid_simdgroup_type : bool_constant<mrt::is_lane_number<T>> {};
} // namespace metal

#ifndef MRT_STRICT

namespace mrt {

// ---------------------------------------------------------------- reductions
// Integers wrap around; a half is rounded at each step. min and max ignore NaN if there is a number, like MSL's min and
// max.
struct Sum {
  template <typename E> static E of(E a, E b) { return E(a + b); }
  static constexpr int identity = 0;
};
struct Product {
  template <typename E> static E of(E a, E b) { return E(a * b); }
  static constexpr int identity = 1;
};
struct Minimum {
  template <typename E> static E of(E a, E b) { return b < a || a != a ? b : a; }
};
struct Maximum {
  template <typename E> static E of(E a, E b) { return a < b || a != a ? b : a; }
};
struct And {
  template <typename E> static E of(E a, E b) { return E(a & b); }
};
struct Or {
  template <typename E> static E of(E a, E b) { return E(a | b); }
};
struct Xor {
  template <typename E> static E of(E a, E b) { return E(a ^ b); }
};

template <typename T> T &operand(MrtExchange *exchange, mrt_u32 lane) {
  return *static_cast<T *>(exchange->input[lane]);
}
template <typename T> T &result(MrtExchange *exchange, mrt_u32 lane) {
  return *static_cast<T *>(exchange->output[lane]);
}
inline bool is_active(const MrtExchange *exchange, mrt_u32 lane) { return lane < 32 && (exchange->active >> lane & 1); }

// total = total OP value, component by component. The padding of a vector of three is combined too, but never read.
template <typename Operation, typename T> MRT_UNINSTRUMENTED void combine(T &total, const T &value) {
  typedef lane_element<T> E;
  E *into = reinterpret_cast<E *>(&total);
  const E *from = reinterpret_cast<const E *>(&value);
  for (unsigned i = 0; i < sizeof(T) / sizeof(E); ++i) into[i] = Operation::template of<E>(into[i], from[i]);
}

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

// ---------------------------------------------------------------- permutations
template <typename T> struct Permuted {
  T data, filling;
  ushort parameter; // lane, delta or mask
  ushort modulo;    // for fills: the length of the segments that are shifted separately
};

// The lane, within its group, from which a lane reads. `filling` says that it reads that lane's filling data.
struct LaneSource {
  mrt_u32 lane;
  bool filling;
};

// `is_uniform` names the parameter that must be the same in all lanes of a group.
struct ByLane {
  static constexpr const char *is_uniform = nullptr;
  static LaneSource of(mrt_u32, mrt_u32 lane, mrt_u32, mrt_u32) { return {lane, false}; }
};
struct Broadcast {
  static constexpr const char *is_uniform = "broadcast_lane_id";
  static LaneSource of(mrt_u32, mrt_u32 lane, mrt_u32, mrt_u32) { return {lane, false}; }
};
struct ByMask {
  static constexpr const char *is_uniform = "mask";
  static LaneSource of(mrt_u32 i, mrt_u32 mask, mrt_u32, mrt_u32) { return {i ^ mask, false}; }
};
// Nothing wraps around: the lanes at the end keep their data.
struct Up {
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32, mrt_u32) { return {i < delta ? i : i - delta, false}; }
};
struct Down {
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32 width, mrt_u32) {
    return {i + delta < width ? i + delta : i, false};
  }
};
struct RotateUp {
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32 width, mrt_u32) { return {(i - delta) & (width - 1), false}; }
};
struct RotateDown {
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32 width, mrt_u32) { return {(i + delta) & (width - 1), false}; }
};
// Values that are shifted out of a segment at one end are lost. At the other end, the lanes get the filling data of the
// lanes from which they would read if the shift wrapped around.
struct FillUp {
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32, mrt_u32 modulo) {
    const mrt_u32 position = i & (modulo - 1);
    return {(i - position) + ((position - delta) & (modulo - 1)), position < delta};
  }
};
struct FillDown {
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32, mrt_u32 modulo) {
    const mrt_u32 position = i & (modulo - 1);
    return {(i - position) + ((position + delta) & (modulo - 1)), position + delta >= modulo};
  }
};

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

// Reading from a lane that is not active gives all bits set: a NaN, or a conspicuous integer.
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

// ---------------------------------------------------------------- votes
// The result of a vote for a lane's group: which lanes are active, and which of them voted true. Bit i is lane i of the
// group.
struct Vote {
  mrt_u32 active, yes, index;
};

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

} // namespace mrt
#endif
#endif
