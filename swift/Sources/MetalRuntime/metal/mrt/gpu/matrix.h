// The product of two 8 x 8 matrices on an NVIDIA GPU. Tensor cores multiply two half matrices, or two bfloat matrices,
// directly, and matrices of different types in parts. Two float matrices are multiplied by fused multiply-adds.
//
// A matrix has one of three layouts. Apple's is the one that thread_elements() shows (simdgroup_matrix.h). The native
// layout is that of PTX's fragments of sums and left factors (PTX ISA, mma.m16n8k8): lane l has the elements
// (row, column) and (row, column + 1), where
//   row = l / 4        column = l % 4 * 2
// The transposed layout is the native one of the transposed matrix, and PTX's of right factors. Products and loads give
// the native layout, except that a load that transposes 16-bit elements gives the transposed layout. Only
// thread_elements() converts a matrix to Apple's. The layout is a constant to the compiler wherever a program does not
// call it.
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

template <typename T> constexpr bool is_tensor_core_element = __is_same(T, half) || __is_same(T, bfloat);

MRT_FUNC mrt_u32 transposed_word(mrt_u32 word) {
  mrt_u32 result;
  __asm__("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
  return result;
}
// Converts between the native and the transposed layout. Element (row, column) of one is element (column, row) of the
// other.
template <typename T> MRT_FUNC metal::vec<T, 64> transposed_pair(metal::vec<T, 64> pair) {
  if constexpr (sizeof pair == 4)
    return __builtin_bit_cast(metal::vec<T, 64>, transposed_word(__builtin_bit_cast(mrt_u32, pair)));
  else {
    const mrt_u32 lane = lane_index(), from = lane % 4 * 8 + lane / 8;
    const metal::vec<T, 64> first = from_lane(pair, from), second = from_lane(pair, from + 4);
    return {{first.own[lane / 4 & 1], second.own[lane / 4 & 1]}};
  }
}

enum MatrixLayout : mrt_u8 { apple_layout, native_layout, transposed_layout };

template <typename T> struct LaneElements {
  metal::vec<T, 64> pair;
  MatrixLayout layout;

  // The elements of a matrix that was not loaded.
  MRT_METHOD MatrixPosition position() const {
    return layout == native_layout ? native_position(lane_index()) : matrix_position(lane_index());
  }
  MRT_METHOD metal::vec<T, 64> native() const {
    const mrt_u32 lane = lane_index();
    if (layout == transposed_layout) return transposed_pair(pair);
    return layout == apple_layout ? from_lane(pair, (lane & 0b10001) | (lane >> 1 & 0b110) | (lane << 2 & 0b1000))
                                  : pair;
  }
  MRT_METHOD metal::vec<T, 64> transposed() const {
    return layout == transposed_layout ? pair : transposed_pair(native());
  }
  MRT_METHOD metal::vec<T, 64> apple() const {
    const mrt_u32 lane = lane_index();
    return layout == apple_layout ? pair
                                  : from_lane(native(), (lane & 0b10001) | (lane << 1 & 0b1100) | (lane >> 2 & 0b10));
  }
  MRT_METHOD metal::vec<T, 64> &make_apple() {
    pair = apple();
    layout = apple_layout;
    return pair;
  }
};
template <typename T> MRT_FUNC LaneElements<T> lane_elements(metal::vec<T, 64> pair, bool is_native = true) {
  return {pair, is_native ? native_layout : apple_layout};
}

// The two elements are read separately: a program may place them at any address, so they may not be aligned as one
// word.
#define MRT_PAIR_MEMORY(space)                                                                                         \
  template <typename T>                                                                                                \
  MRT_FUNC LaneElements<T> load_elements(const space T *source, ulong elements_per_row, metal::vec<ulong, 2> origin,   \
                                         bool transpose) {                                                             \
    const bool turns = transpose && is_tensor_core_element<T>;                                                         \
    if (turns) origin = metal::vec<ulong, 2>(origin.y, origin.x);                                                      \
    const MatrixAddress address =                                                                                      \
        matrix_address(native_position(lane_index()), elements_per_row, origin, transpose && !turns);                  \
    return {{{source[address.first], source[address.first + address.step]}},                                           \
            turns ? transposed_layout : native_layout};                                                                \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  MRT_FUNC void store_elements(LaneElements<T> elements, space T *destination, ulong elements_per_row,                 \
                               metal::vec<ulong, 2> origin, bool transpose) {                                          \
    const MatrixAddress address = matrix_address(native_position(lane_index()), elements_per_row, origin, transpose);  \
    const metal::vec<T, 64> pair = elements.native();                                                                  \
    destination[address.first] = pair.own[0];                                                                          \
    destination[address.first + address.step] = pair.own[1];                                                           \
  }
MRT_PAIR_MEMORY(MRT_DEVICE)
#ifdef MRT_SPACED
MRT_PAIR_MEMORY(MRT_THREADGROUP)
MRT_PAIR_MEMORY()
#endif
#undef MRT_PAIR_MEMORY

// The instruction multiplies 16 rows of a; the lower 8 are zero here.
#define MRT_MMA(type)                                                                                                  \
  __asm__("{\n\t.reg .f32 lower0, lower1;\n\t"                                                                         \
          "mma.sync.aligned.m16n8k8.row.col.f32." type "." type ".f32 {%0, %1, lower0, lower1}, {%2, %3}, {%4}, "      \
          "{%5, %6, %7, %7};\n\t}"                                                                                     \
          : "=f"(d.own[0]), "=f"(d.own[1])                                                                             \
          : "r"(a), "r"(0), "r"(b), "f"(c.own[0]), "f"(c.own[1]), "f"(0.0f))

// `right` has the transposed layout.
template <typename T>
MRT_FUNC metal::vec<float, 64> fragment_product(metal::vec<T, 64> left, metal::vec<T, 64> right,
                                                metal::vec<float, 64> c) {
  metal::vec<float, 64> d;
  const auto a = __builtin_bit_cast(mrt_u32, left), b = __builtin_bit_cast(mrt_u32, right);
  if constexpr (__is_same(T, half)) MRT_MMA("f16");
  else MRT_MMA("bf16");
  return d;
}
#undef MRT_MMA

MRT_FUNC float float_of_lane(float value, mrt_u32 from) {
  return __builtin_bit_cast(float, shuffle_bits(__builtin_bit_cast(mrt_u32, value), from));
}

// Sums in ascending order of k, like the software device. Both operands have the native layout.
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

// ---------------------------------------------------------------- factors of different types
// A float is the sum of three bfloats, and a half is the sum of two. Each part has the next 8 bits of the significand,
// and the number's sign. So tensor cores multiply them exactly, part by part. (Henry, Tang and Heinecke, "Leveraging
// the bfloat16 artificial intelligence datatype for higher-precision computations", 2019.)
template <typename T> constexpr int part_count = __is_same(T, float) ? 3 : __is_same(T, half) ? 2 : 1;

// A lane's two elements, as words of two bfloats.
template <int count> struct Parts {
  mrt_u32 words[count];
};

// How the parts that are zero of numbers that are not are stored. Zero times infinity would be NaN, so `replaced` parts
// are 2^-120 with the number's sign: large enough that half of it is a normal number.
enum class ZeroParts : mrt_u8 { kept, replaced };

MRT_FUNC mrt_u32 replaced_part(mrt_u32 part, mrt_u32 whole) {
  const bool is_zero = (part & 0x7fff0000) == 0 && (whole & 0x7fffffff) != 0;
  return is_zero ? (whole & 0x80000000) | 0x03800000 : part;
}

template <typename T> MRT_FUNC Parts<part_count<T>> parts_of(metal::vec<T, 64> pair, ZeroParts zeros) {
  constexpr int count = part_count<T>;
  if constexpr (count == 1) return {{__builtin_bit_cast(mrt_u32, pair)}};
  else {
    mrt_u32 parts[2][3];
    for (int i = 0; i < 2; i++) {
      const float value = float(pair.own[i]);
      const auto whole = __builtin_bit_cast(mrt_u32, value);
      const bool is_finite = (whole & 0x7fffffff) < 0x7f800000, is_nan = (whole & 0x7fffffff) > 0x7f800000;
      const mrt_u32 high = (whole & 0xffff0000) | (is_nan ? 0x400000 : 0);
      const float rest = is_finite ? value - __builtin_bit_cast(float, high) : 0;
      const mrt_u32 middle = __builtin_bit_cast(mrt_u32, rest) & 0xffff0000;
      const float last = rest - __builtin_bit_cast(float, middle);
      parts[i][0] = high;
      const mrt_u32 lowest = __builtin_bit_cast(mrt_u32, last);
      parts[i][1] = zeros == ZeroParts::kept ? middle : replaced_part(middle, whole);
      parts[i][2] = zeros == ZeroParts::kept ? lowest : replaced_part(lowest, whole);
    }
    Parts<count> result;
    for (int part = 0; part < count; part++) result.words[part] = parts[0][part] >> 16 | (parts[1][part] & 0xffff0000);
    return result;
  }
}

// Parts of a left factor in the native layout, and of a right factor in the transposed layout.
template <typename T> MRT_FUNC Parts<part_count<T>> left_parts(LaneElements<T> elements, ZeroParts zeros) {
  return parts_of(elements.native(), zeros);
}
template <typename T> MRT_FUNC Parts<part_count<T>> right_parts(LaneElements<T> elements, ZeroParts zeros) {
  if constexpr (is_tensor_core_element<T>) return parts_of(elements.transposed(), zeros);
  else if (elements.layout == transposed_layout) return parts_of(elements.pair, zeros);
  else {
    Parts<part_count<T>> parts = parts_of(elements.native(), zeros);
    for (mrt_u32 &word : parts.words) word = transposed_word(word);
    return parts;
  }
}

// Halves both bfloats of a word; this is exact for normal numbers.
MRT_FUNC mrt_u32 halved(mrt_u32 word) {
  const float first = __builtin_bit_cast(float, word << 16) * 0.5f,
              second = __builtin_bit_cast(float, word & 0xffff0000) * 0.5f;
  return __builtin_bit_cast(mrt_u32, first) >> 16 | (__builtin_bit_cast(mrt_u32, second) & 0xffff0000);
}

// Rows 0 to 7 of d, and rows 8 to 15.
struct TallSums {
  float upper[2], lower[2];
};

// d = (a0 a2; a1 a3) (b0; b1) + c, where each letter is an 8 x 8 matrix of bfloats, or of halves.
#define MRT_TALL_MMA(type)                                                                                             \
  __asm__("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
          "{%10, %11, %12, %13};"                                                                                      \
          : "=f"(d.upper[0]), "=f"(d.upper[1]), "=f"(d.lower[0]), "=f"(d.lower[1])                                     \
          : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(c.upper[0]), "f"(c.upper[1]), "f"(c.lower[0]),   \
            "f"(c.lower[1]))
template <typename T = bfloat>
MRT_FUNC TallSums tall_product(mrt_u32 a0, mrt_u32 a1, mrt_u32 a2, mrt_u32 a3, mrt_u32 b0, mrt_u32 b1, TallSums c) {
  TallSums d;
  if constexpr (__is_same(T, half)) MRT_TALL_MMA("f16");
  else MRT_TALL_MMA("bf16");
  return d;
}
#undef MRT_TALL_MMA

// The products of all parts, the smallest first. One instruction multiplies up to four pairs of parts: two of the left
// factor above each other, and two of either factor along k. A padding zero times infinity would be NaN, so parts are
// never multiplied by padding; instead, the second of three parts counts twice, halved.
template <int lefts, int rights> MRT_FUNC metal::vec<float, 64> parts_product(Parts<lefts> a, Parts<rights> b) {
  TallSums sums = {};
  if constexpr (lefts == 3) {
    const mrt_u32 middle = halved(a.words[1]);
    for (int i = rights - 1; i >= 0; i--)
      sums = tall_product(a.words[0], middle, a.words[2], middle, b.words[i], b.words[i], sums);
  } else {
    const mrt_u32 lower = lefts == 2 ? a.words[lefts - 1] : 0;
    if constexpr (rights % 2) sums = tall_product(a.words[0], lower, 0, 0, b.words[rights - 1], 0, sums);
    if constexpr (rights > 1) sums = tall_product(a.words[0], lower, a.words[0], lower, b.words[0], b.words[1], sums);
  }
  if constexpr (lefts == 1) return {{sums.upper[0], sums.upper[1]}};
  else return {{sums.upper[0] + sums.lower[0], sums.upper[1] + sums.lower[1]}};
}

template <typename T> MRT_FUNC metal::vec<float, 64> as_floats(metal::vec<T, 64> pair) {
  return {{float(pair.own[0]), float(pair.own[1])}};
}

template <typename T> MRT_FUNC bool is_finite_pair(metal::vec<T, 64> pair) {
  const metal::vec<float, 64> floats = as_floats(pair);
  return __builtin_fabsf(floats.own[0]) < __builtin_inff() && __builtin_fabsf(floats.own[1]) < __builtin_inff();
}

// If a factor is not finite, sums are computed again with replaced zeros. Only sums that are not finite are taken from
// there, so that all others are exact where they cancel.
MRT_FUNC void take_nonfinite(float (&sums)[2], const float (&others)[2]) {
  for (int i = 0; i < 2; i++)
    if (!(__builtin_fabsf(sums[i]) < __builtin_inff())) sums[i] = others[i];
}

// The product of matrices of different types. A separate instruction adds the sums to c, since it rounds to nearest and
// tensor cores do not.
template <typename A, typename B>
MRT_FUNC metal::vec<float, 64> mixed_product(LaneElements<A> a, LaneElements<B> b, metal::vec<float, 64> c) {
  const auto product = [&](ZeroParts zeros) { return parts_product(left_parts(a, zeros), right_parts(b, zeros)); };
  metal::vec<float, 64> sums = product(ZeroParts::kept);
  if (!__nvvm_vote_all_sync(all_lanes, is_finite_pair(a.pair) && is_finite_pair(b.pair)))
    take_nonfinite(sums.own, product(ZeroParts::replaced).own);
  return {{c.own[0] + sums.own[0], c.own[1] + sums.own[1]}};
}

// Accumulates in float32 and rounds once, to the type of the result.
template <typename D, typename A, typename B, typename C>
MRT_FUNC LaneElements<D> multiply_accumulate(LaneElements<A> a, LaneElements<B> b, LaneElements<C> c, const char *,
                                             Site) {
  const metal::vec<float, 64> sums = as_floats(c.native());
  metal::vec<float, 64> d;
  if constexpr (__is_same(A, B) && is_tensor_core_element<A>) d = fragment_product(a.native(), b.transposed(), sums);
  else if constexpr (__is_same(A, B)) d = fragment_product(a.native(), b.native(), sums);
  else d = mixed_product(a, b, sums);
  return lane_elements<D>({{D(d.own[0]), D(d.own[1])}});
}

// ---------------------------------------------------------------- for fragments.h
// Right factors have the transposed layout. One instruction loads two matrices of 16 bits, whose rows are at the
// addresses of the first 16 lanes; like any read of memory, it must stay between the barriers around it. The address of
// a lane's two floats is a multiple of their size if they are adjacent.
template <typename T>
MRT_FUNC void load_right_factors(LaneElements<T> &first, LaneElements<T> &second, const MRT_THREADGROUP T *source,
                                 const MRT_THREADGROUP T *next, ulong elements_per_row, bool transpose) {
  const mrt_u32 lane = lane_index();
  if constexpr (is_tensor_core_element<T>) {
    const T *row = (lane & 8 ? (const T *)next : (const T *)source) + lane % 8 * elements_per_row;
    const auto address = mrt_u32((__UINTPTR_TYPE__)(const MRT_SHARED T *)row);
    mrt_u32 words[2];
    if (transpose)
      __asm__ volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                       : "=r"(words[0]), "=r"(words[1])
                       : "r"(address)
                       : "memory");
    else
      __asm__ volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                       : "=r"(words[0]), "=r"(words[1])
                       : "r"(address)
                       : "memory");
    first = {__builtin_bit_cast(metal::vec<T, 64>, words[0]), transposed_layout};
    second = {__builtin_bit_cast(metal::vec<T, 64>, words[1]), transposed_layout};
  } else {
    struct alignas(2 * sizeof(T)) Pair {
      T own[2];
    };
    const MatrixPosition position = native_position(lane);
    const auto load = [&](const T *matrix) -> metal::vec<T, 64> {
      if (!transpose) // column `row` of the matrix
        return {{matrix[position.column * elements_per_row + position.row],
                 matrix[(position.column + 1) * elements_per_row + position.row]}};
      const Pair pair = *(const Pair *)(matrix + position.row * elements_per_row + position.column);
      return {{pair.own[0], pair.own[1]}};
    };
    first = {load((const T *)source), transposed_layout};
    second = {load((const T *)next), transposed_layout};
  }
}

template <typename T> MRT_FUNC mrt_u32 word_of(metal::vec<T, 64> pair) { return __builtin_bit_cast(mrt_u32, pair); }

// The product of floats in parts, for two left matrices above each other. With the parts h, m and l of a factor in
// descending order, four instructions add the products (l h + m m), (h l + l m), (m l + m h) and (h m + h h): all but
// l l, which is less than 2^-29 of the product.
MRT_FUNC TallSums tall_parts_product(LaneElements<float> above, LaneElements<float> below, LaneElements<float> by,
                                     ZeroParts zeros) {
  const Parts<3> p = left_parts(above, zeros), q = left_parts(below, zeros), r = right_parts(by, zeros);
  const auto add = [&](int first, int second, int by_first, int by_second, TallSums c) {
    return tall_product(p.words[first], q.words[first], p.words[second], q.words[second], r.words[by_first],
                        r.words[by_second], c);
  };
  return add(0, 0, 1, 0, add(1, 1, 2, 0, add(0, 2, 2, 1, add(2, 1, 0, 1, {}))));
}

// One instruction for half and bfloat. Floats are multiplied in parts, for the 8 columns of each pair of left matrices;
// as in mixed_product, an instruction that rounds to nearest adds their sum.
template <typename T>
MRT_FUNC void add_tall_product(LaneElements<float> &upper, LaneElements<float> &lower, LaneElements<T> a0,
                               LaneElements<T> a1, LaneElements<T> a2, LaneElements<T> a3, LaneElements<T> b0,
                               LaneElements<T> b1) {
  metal::vec<float, 64> high = upper.native(), low = lower.native();
  if constexpr (is_tensor_core_element<T>) {
    const TallSums sums = tall_product<T>(word_of(a0.native()), word_of(a1.native()), word_of(a2.native()),
                                          word_of(a3.native()), word_of(b0.transposed()), word_of(b1.transposed()),
                                          {{high.own[0], high.own[1]}, {low.own[0], low.own[1]}});
    high = {{sums.upper[0], sums.upper[1]}};
    low = {{sums.lower[0], sums.lower[1]}};
  } else {
    const LaneElements<T> left[2][2] = {{a0, a1}, {a2, a3}}, right[2] = {b0, b1};
    for (int step = 0; step < 2; step++) {
      const LaneElements<T> &above = left[step][0], &below = left[step][1], &by = right[step];
      TallSums sums = tall_parts_product(above, below, by, ZeroParts::kept);
      if (!__nvvm_vote_all_sync(all_lanes,
                                is_finite_pair(above.pair) && is_finite_pair(below.pair) && is_finite_pair(by.pair))) {
        const TallSums others = tall_parts_product(above, below, by, ZeroParts::replaced);
        take_nonfinite(sums.upper, others.upper);
        take_nonfinite(sums.lower, others.lower);
      }
      for (int i = 0; i < 2; i++) high.own[i] += sums.upper[i], low.own[i] += sums.lower[i];
    }
  }
  upper = lane_elements<float>(high);
  lower = lane_elements<float>(low);
}

} // namespace mrt

#endif
