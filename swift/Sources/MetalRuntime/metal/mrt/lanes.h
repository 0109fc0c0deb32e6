// The exchange of values between the lanes of a SIMD-group or a quad-group: the operations and index rules that simd.h
// and quad.h use.
//
// `width` is 32 for a SIMD-group and 4 for a quad-group; lanes of different quads never exchange values. The exchange
// itself is in lanes_resolve.h for the software device, and in gpu/lanes.h for an NVIDIA GPU.
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

// total = total OP value, component by component. The padding of a vector of three is combined too, but never read.
template <typename Operation, typename T> MRT_UNINSTRUMENTED void combine(T &total, const T &value) {
  typedef lane_element<T> E;
  E *into = reinterpret_cast<E *>(&total);
  const E *from = reinterpret_cast<const E *>(&value);
  for (unsigned i = 0; i < sizeof(T) / sizeof(E); ++i) into[i] = Operation::template of<E>(into[i], from[i]);
}

// ---------------------------------------------------------------- permutations
template <typename T> struct Permuted {
  T data, filling;
  ushort parameter; // lane, delta or mask
  ushort modulo;    // for fills: the length of the segments that are shifted separately
};

// The lane from which a lane reads, counted within its group. `filling` says whether it reads `Permuted::filling` of
// that lane instead of `data`.
struct LaneSource {
  mrt_u32 lane;
  bool filling;
};

// `is_uniform` names the parameter that must be the same in all lanes of a group.
struct ByLane {
  static constexpr bool fills = false;
  static constexpr const char *is_uniform = nullptr;
  static LaneSource of(mrt_u32, mrt_u32 lane, mrt_u32, mrt_u32) { return {lane, false}; }
};
struct Broadcast {
  static constexpr bool fills = false;
  static constexpr const char *is_uniform = "broadcast_lane_id";
  static LaneSource of(mrt_u32, mrt_u32 lane, mrt_u32, mrt_u32) { return {lane, false}; }
};
struct ByMask {
  static constexpr bool fills = false;
  static constexpr const char *is_uniform = "mask";
  static LaneSource of(mrt_u32 i, mrt_u32 mask, mrt_u32, mrt_u32) { return {i ^ mask, false}; }
};
// Nothing wraps around: the lanes at the end keep their data.
struct Up {
  static constexpr bool fills = false;
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32, mrt_u32) { return {i < delta ? i : i - delta, false}; }
};
struct Down {
  static constexpr bool fills = false;
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32 width, mrt_u32) {
    return {i + delta < width ? i + delta : i, false};
  }
};
struct RotateUp {
  static constexpr bool fills = false;
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32 width, mrt_u32) { return {(i - delta) & (width - 1), false}; }
};
struct RotateDown {
  static constexpr bool fills = false;
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32 width, mrt_u32) { return {(i + delta) & (width - 1), false}; }
};
// Values that are shifted out of a segment at one end are lost. At the other end, the lanes get the filling data of the
// lanes from which they would read if the shift wrapped around.
struct FillUp {
  static constexpr bool fills = true;
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32, mrt_u32 modulo) {
    const mrt_u32 position = i & (modulo - 1);
    return {(i - position) + ((position - delta) & (modulo - 1)), position < delta};
  }
};
struct FillDown {
  static constexpr bool fills = true;
  static constexpr const char *is_uniform = "delta";
  static LaneSource of(mrt_u32 i, mrt_u32 delta, mrt_u32, mrt_u32 modulo) {
    const mrt_u32 position = i & (modulo - 1);
    return {(i - position) + ((position + delta) & (modulo - 1)), position + delta >= modulo};
  }
};

// ---------------------------------------------------------------- votes
// The result of a vote for a lane's group: which lanes are active, and which of them voted true. Bit i is lane i of the
// group.
struct Vote {
  mrt_u32 active, yes, index;
};

} // namespace mrt

#ifdef MRT_GPU
#include "gpu/lanes.h"
#else
#include "lanes_resolve.h"
#endif
#endif
#endif
