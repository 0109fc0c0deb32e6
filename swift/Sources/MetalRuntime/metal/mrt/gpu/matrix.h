// The product of two 8 x 8 matrices on an NVIDIA GPU: tensor cores multiply half and bfloat, fused multiply-adds float.
//
// A matrix has one of two layouts. Apple's is the one that thread_elements() shows (simdgroup_matrix.h). The native
// layout is that of PTX's matrix fragments (PTX ISA, mma.m16n8k8): lane l has the elements (row, column) and
// (row, column + 1), where
//   row = l / 4        column = l % 4 * 2
// Loads and products make matrices of the native layout; only thread_elements() converts one to Apple's. The flag is
// a constant to the compiler wherever a program does not call it.
//
// With the lane's bits as l4 l3 l2 l1 l0, native rows are l4 l3 l2 and Apple's l4 l2 l1; native pairs of columns are
// l1 l0 and Apple's l3 l0. So a conversion rotates the bits 3, 2 and 1.
//
// Inline assembly that is not volatile lets the compiler reuse a fragment in several products.
#ifndef MRT_GPU_MATRIX_H
#define MRT_GPU_MATRIX_H

#include "lanes.h"

namespace mrt {

MRT_FUNC MatrixPosition native_position(mrt_u32 lane) { return {lane / 4, lane % 4 * 2}; }

MRT_FUNC mrt_u32 shuffle_bits(mrt_u32 word, mrt_u32 from) {
  mrt_u32 result;
  __asm__("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(result) : "r"(word), "r"(from));
  return result;
}

template <typename T> struct LaneElements {
  metal::vec<T, 64> pair;
  bool is_native;

  MRT_METHOD MatrixPosition position() const {
    return is_native ? native_position(lane_index()) : matrix_position(lane_index());
  }
  MRT_METHOD metal::vec<T, 64> native() const {
    const mrt_u32 lane = lane_index();
    return is_native ? pair : from_lane(pair, (lane & 0b10001) | (lane >> 1 & 0b110) | (lane << 2 & 0b1000));
  }
  MRT_METHOD metal::vec<T, 64> apple() const {
    const mrt_u32 lane = lane_index();
    return is_native ? from_lane(pair, (lane & 0b10001) | (lane << 1 & 0b1100) | (lane >> 2 & 0b10)) : pair;
  }
  MRT_METHOD metal::vec<T, 64> &make_apple() {
    pair = apple();
    is_native = false;
    return pair;
  }
};
template <typename T> MRT_FUNC LaneElements<T> lane_elements(metal::vec<T, 64> pair, bool is_native = true) {
  return {pair, is_native};
}

template <typename T> constexpr bool is_tensor_core_element = __is_same(T, half) || __is_same(T, bfloat);

template <typename T> MRT_FUNC mrt_u32 pair_bits(metal::vec<T, 64> pair) {
  static_assert(sizeof pair == 4, "two elements of 16 bits");
  mrt_u32 bits;
  __builtin_memcpy(&bits, &pair, 4);
  return bits;
}

MRT_FUNC mrt_u32 transposed_fragment(mrt_u32 fragment) {
  mrt_u32 result;
  __asm__("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(fragment));
  return result;
}

// The instruction multiplies 16 rows of a; the lower 8 are zero here.
#define MRT_MMA(type)                                                                                                  \
  __asm__("{\n\t.reg .f32 lower0, lower1;\n\t"                                                                         \
          "mma.sync.aligned.m16n8k8.row.col.f32." type "." type ".f32 {%0, %1, lower0, lower1}, {%2, %3}, {%4}, "      \
          "{%5, %6, %7, %7};\n\t}"                                                                                     \
          : "=f"(d.own[0]), "=f"(d.own[1])                                                                             \
          : "r"(a), "r"(0), "r"(b), "f"(c.own[0]), "f"(c.own[1]), "f"(0.0f))

template <typename T>
MRT_FUNC metal::vec<float, 64> fragment_product(metal::vec<T, 64> left, metal::vec<T, 64> right,
                                                metal::vec<float, 64> c) {
  metal::vec<float, 64> d;
  const mrt_u32 a = pair_bits(left), b = transposed_fragment(pair_bits(right));
  if constexpr (__is_same(T, half)) MRT_MMA("f16");
  else MRT_MMA("bf16");
  return d;
}
#undef MRT_MMA

MRT_FUNC float float_of_lane(float value, mrt_u32 from) {
  return __builtin_bit_cast(float, shuffle_bits(__builtin_bit_cast(mrt_u32, value), from));
}

// In ascending order of k, like the software device.
MRT_FUNC metal::vec<float, 64> fragment_product(metal::vec<float, 64> a, metal::vec<float, 64> b,
                                                metal::vec<float, 64> c) {
  const mrt_u32 lane = lane_index(), row = lane & ~3u, column = lane & 3;
  for (mrt_u32 k = 0; k < 8; k++) {
    const float left = float_of_lane(a.own[k & 1], row + k / 2);
    c.own[0] = __builtin_fmaf(left, float_of_lane(b.own[0], k * 4 + column), c.own[0]);
    c.own[1] = __builtin_fmaf(left, float_of_lane(b.own[1], k * 4 + column), c.own[1]);
  }
  return c;
}

template <typename T> MRT_FUNC metal::vec<float, 64> as_floats(metal::vec<T, 64> pair) {
  return {{float(pair.own[0]), float(pair.own[1])}};
}

// Accumulates in float32 and rounds once, to the type of the result.
template <typename D, typename A, typename B, typename C>
MRT_FUNC LaneElements<D> multiply_accumulate(LaneElements<A> a, LaneElements<B> b, LaneElements<C> c, const char *,
                                             Site) {
  const metal::vec<float, 64> sums = as_floats(c.native());
  metal::vec<float, 64> d;
  if constexpr (__is_same(A, B) && is_tensor_core_element<A>) d = fragment_product(a.native(), b.native(), sums);
  else d = fragment_product(as_floats(a.native()), as_floats(b.native()), sums);
  return lane_elements<D>({{D(d.own[0]), D(d.own[1])}});
}

} // namespace mrt

#endif
