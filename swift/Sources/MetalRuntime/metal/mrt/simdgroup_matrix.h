// simdgroup_matrix: an 8 x 8 matrix in the registers of a SIMD-group's 32 lanes (MSL 2.4 and 6.7).
//
// Requires Apple7 ("SIMD-scoped matrix multiply"); simdgroup_bfloat8x8 requires Metal 3.1. Every lane of the SIMD-group
// must take part.
//
// The layout is unspecified. The one below is that of Apple's GPUs, on which MLX, metal-flash-attention and tinygrad
// depend. With q = l / 4, lane l has the elements (row, column) and (row, column + 1), where
//   row = (q & 4) + (l / 2) % 4        column = (q & 2) * 2 + (l % 2) * 2
// A program that calls thread_elements() depends on the layout, which the checker reports as a note.
#ifndef MRT_SIMDGROUP_MATRIX_H
#define MRT_SIMDGROUP_MATRIX_H

#include "current.h"
#include "vec.h"

namespace mrt {

template <typename T>
constexpr MRT_CONSTANT bool is_matrix_element =
    // bool: only the type name, see below
    __is_same(T, float) || __is_same(T, half) || __is_same(T, bfloat) || __is_same(T, bool);
template <typename T, int Columns, int Rows>
using if_matrix = metal::enable_if_t<is_matrix_element<T> && Columns == 8 && Rows == 8>;

#ifndef MRT_STRICT

struct MatrixPosition {
  mrt_u32 row, column;
};
MRT_FUNC MatrixPosition matrix_position(mrt_u32 lane) {
  const mrt_u32 quad = lane / 4;
  return {(quad & 4) + lane / 2 % 4, (quad & 2) * 2 + lane % 2 * 2};
}

// The offset of the lane's first element in memory, in elements, and the distance to its second element. The origin is
// (column, row) of the requested matrix: for a transposed matrix, x counts rows of the memory.
struct MatrixAddress {
  ulong first, step;
};
MRT_FUNC MatrixAddress matrix_address(MatrixPosition position, ulong elements_per_row, metal::vec<ulong, 2> origin,
                                      bool transpose) {
  const ulong across = transpose ? elements_per_row : 1, down = transpose ? 1 : elements_per_row;
  return {(origin.x + position.column) * across + (origin.y + position.row) * down, across};
}

#endif
} // namespace mrt

#if defined(MRT_CHECKED) && !defined(MRT_STRICT)
#define MRT_NOTE_LAYOUT mrt::note_layout(site);
// Each lane accesses only its elements, so only the checker needs to know that all lanes arrived.
#define MRT_ALL_LANES(operation)                                                                                       \
  mrt::meet({MRT_COLLECTIVE_MATRIX, operation, site}, mrt::resolve_nothing, nullptr, nullptr, 0);
namespace mrt {
[[maybe_unused]] MRT_UNINSTRUMENTED static void resolve_nothing(MrtExchange *) {}
[[maybe_unused]] MRT_UNINSTRUMENTED static void note_layout(Site site) {
  runtime->layout_dependence(site.file, mrt_u32(site.line));
}
} // namespace mrt
#else
#define MRT_NOTE_LAYOUT
#define MRT_ALL_LANES(operation)
#endif

namespace metal {

// The result of thread_elements(): for Metal's compiler, all 64 elements of the matrix; a lane may access only its two
// elements.
template <typename T> struct alignas(2 * sizeof(T)) vec<T, 64> {
  T own[2];
  MRT_METHOD T &operator[](int i) { return own[i]; }
  MRT_METHOD T operator[](int i) const { return own[i]; }
};

// Metal's compiler has vectors of eight elements too, though MSL names at most four: MLX keeps a lane's part of a
// fragment of 16 x 16 in one (kernels/steel/gemm/nax.h).
template <typename T> struct alignas(8 * sizeof(T)) vec<T, 8> {
  T own[8];
  MRT_METHOD vec() = default;
  constexpr MRT_METHOD vec(T value) : own{value, value, value, value, value, value, value, value} {}
  constexpr MRT_METHOD T &operator[](int i) { return own[i]; }
  constexpr MRT_METHOD T operator[](int i) const { return own[i]; }
};

} // namespace metal

#ifdef MRT_GPU
#include "gpu/matrix.h"
#else
namespace mrt {
// The elements of one lane. On a GPU they may have another layout (gpu/matrix.h).
template <typename T> struct LaneElements {
  metal::vec<T, 64> pair;
#ifndef MRT_STRICT
  MRT_METHOD MatrixPosition position() const { return matrix_position(lane_index()); }
  MRT_METHOD metal::vec<T, 64> apple() const { return pair; }
  MRT_METHOD metal::vec<T, 64> &make_apple() { return pair; }
#endif
};
template <typename T> MRT_FUNC LaneElements<T> lane_elements(metal::vec<T, 64> pair, bool = true) { return {pair}; }
} // namespace mrt
#endif

#if !defined(MRT_GPU) && !defined(MRT_STRICT)
namespace mrt {

template <typename A, typename B, typename C> struct Factors {
  metal::vec<A, 64> a;
  metal::vec<B, 64> b;
  metal::vec<C, 64> c;
};

// The elements of all lanes as one matrix in float32; NaN where a lane is missing.
struct GatheredMatrix {
  float at[8][8];
  template <typename T> MRT_UNINSTRUMENTED void set(MatrixPosition position, const metal::vec<T, 64> &elements) {
    at[position.row][position.column] = float(elements.own[0]);
    at[position.row][position.column + 1] = float(elements.own[1]);
  }
};

// Accumulates in float32 and rounds once, to the type of the result.
template <typename D, typename A, typename B, typename C>
MRT_UNINSTRUMENTED void resolve_product(MrtExchange *exchange) {
  GatheredMatrix a, b, d;
  for (mrt_u32 lane = 0; lane < 32; ++lane) {
    Factors<A, B, C> factors = {{{A(__builtin_nanf("")), A(__builtin_nanf(""))}}, {}, {}};
    if (exchange->active >> lane & 1) factors = *static_cast<Factors<A, B, C> *>(exchange->input[lane]);
    a.set(matrix_position(lane), factors.a);
    b.set(matrix_position(lane), factors.b);
    d.set(matrix_position(lane), factors.c);
  }
  for (int row = 0; row < 8; ++row)
    for (int k = 0; k < 8; ++k)
      for (int column = 0; column < 8; ++column) d.at[row][column] += a.at[row][k] * b.at[k][column];
  for (mrt_u32 lane = 0; lane < 32; ++lane) {
    if (!(exchange->active >> lane & 1)) continue;
    const MatrixPosition position = matrix_position(lane);
    *static_cast<metal::vec<D, 64> *>(exchange->output[lane]) = {
        {D(d.at[position.row][position.column]), D(d.at[position.row][position.column + 1])}};
  }
  runtime->count_matrix(8 * 8 * 8);
}

template <typename D, typename A, typename B, typename C>
MRT_COOPERATIVE LaneElements<D> multiply_accumulate(LaneElements<A> a, LaneElements<B> b, LaneElements<C> c,
                                                    const char *operation, Site site) {
  return {exchange<metal::vec<D, 64>, resolve_product<D, A, B, C>>(Factors<A, B, C>{a.pair, b.pair, c.pair},
                                                                   {MRT_COLLECTIVE_MATRIX, operation, site})};
}

} // namespace mrt
#endif

namespace metal {

template <typename T, int Columns, int Rows = Columns, typename = mrt::if_matrix<T, Columns, Rows>>
struct simdgroup_matrix {
  typedef vec<T, 64> storage_type;

  // Uninitialized: poison.
  MRT_METHOD simdgroup_matrix() : elements(mrt::lane_elements<T>({{T(__builtin_nanf("")), T(__builtin_nanf(""))}})) {}
  // Has `value` on the diagonal, zero elsewhere.
  explicit MRT_METHOD simdgroup_matrix(T value)
      MRT_BODY(elements = mrt::lane_elements<T>({}); const mrt::MatrixPosition position = elements.position();
               for (mrt_u32 i = 0; i < 2; ++i) elements.pair.own[i] = position.row == position.column + i ? value
                                                                                                          : T(0);)

#ifdef MRT_STRICT // in a method of a class of the program, the object's address space is unknown
          MRT_THREAD storage_type &thread_elements();
  const MRT_THREAD storage_type &thread_elements() const;
#else
          MRT_METHOD storage_type &thread_elements(MRT_SITE_ONLY) {
    MRT_NOTE_LAYOUT return elements.make_apple();
  }
  MRT_METHOD storage_type thread_elements(MRT_SITE_ONLY) const { MRT_NOTE_LAYOUT return elements.apple(); }
#endif

#ifdef MRT_STRICT
  friend simdgroup_matrix operator*(simdgroup_matrix a, simdgroup_matrix b);
#else
  // An operator has no default arguments, so the conversion of its left operand captures the caller's line.
  struct LeftFactor {
    mrt::LaneElements<T> elements;
    mrt::Site site;
    MRT_METHOD LeftFactor(simdgroup_matrix a MRT_SITE) : elements(a.elements), site(site) {}
  };
  friend MRT_COOPERATIVE simdgroup_matrix operator*(LeftFactor a, simdgroup_matrix b) {
    simdgroup_matrix product;
    product.elements = mrt::multiply_accumulate<T>(a.elements, b.elements, mrt::lane_elements<float>({}),
                                                   "simdgroup_matrix operator*", a.site);
    return product;
  }
#endif

  mrt::LaneElements<T> elements;
};

// Metal has no matrix of bool. Programs nevertheless name the type, as a member of a fragment for masks, without
// creating one.
template <int Columns, int Rows> struct simdgroup_matrix<bool, Columns, Rows, void> {
  simdgroup_matrix() = delete;
  simdgroup_matrix(bool) = delete;
};

typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <typename T, int Columns, int Rows = Columns>
MRT_COOPERATIVE simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, Columns, Rows> filled;
  filled.elements = mrt::lane_elements<T>({{value, value}});
  return filled;
}

// ---------------------------------------------------------------- between memory and registers
#ifdef MRT_GPU
#define MRT_LOAD_MATRIX d.elements = mrt::load_elements<T>(source, elements_per_row, matrix_origin, transpose_matrix);
#define MRT_STORE_MATRIX                                                                                               \
  mrt::store_elements<T>(a.elements, destination, elements_per_row, matrix_origin, transpose_matrix);
#else
#define MRT_LOAD_MATRIX                                                                                                \
  d.elements = mrt::lane_elements<T>({});                                                                              \
  const mrt::MatrixAddress address =                                                                                   \
      mrt::matrix_address(d.elements.position(), elements_per_row, matrix_origin, transpose_matrix);                   \
  d.elements.pair.own[0] = source[address.first];                                                                      \
  d.elements.pair.own[1] = source[address.first + address.step];
#define MRT_STORE_MATRIX                                                                                               \
  const mrt::MatrixAddress address =                                                                                   \
      mrt::matrix_address(a.elements.position(), elements_per_row, matrix_origin, transpose_matrix);                   \
  destination[address.first] = a.elements.pair.own[0];                                                                 \
  destination[address.first + address.step] = a.elements.pair.own[1];
#endif

#define MRT_MATRIX_MEMORY(space)                                                                                       \
  template <typename T, int Columns, int Rows>                                                                         \
  MRT_COOPERATIVE void simdgroup_load(simdgroup_matrix<T, Columns, Rows> &d, const space T *source,                    \
                                      ulong elements_per_row = Columns, vec<ulong, 2> matrix_origin = 0,               \
                                      bool transpose_matrix = false MRT_SITE)                                          \
      MRT_BODY(MRT_ALL_LANES("simdgroup_load") MRT_LOAD_MATRIX) template <typename T, int Columns, int Rows>           \
      MRT_COOPERATIVE void simdgroup_store(simdgroup_matrix<T, Columns, Rows> a, space T *destination,                 \
                                           ulong elements_per_row = Columns, vec<ulong, 2> matrix_origin = 0,          \
                                           bool transpose_matrix = false MRT_SITE)                                     \
          MRT_BODY(MRT_ALL_LANES("simdgroup_store") MRT_STORE_MATRIX)

MRT_MATRIX_MEMORY(MRT_DEVICE)
#if defined(MRT_STRICT) || defined(MRT_SPACED)
MRT_MATRIX_MEMORY(MRT_THREADGROUP)
#endif
#ifdef MRT_SPACED // for members of a method's object, whose address space is unknown
MRT_MATRIX_MEMORY()
#endif

} // namespace metal

// ---------------------------------------------------------------- d = a b + c
namespace metal {

// The four element types are independent, as in Metal's compiler (the specification's table has only one type).
template <typename D, typename A, typename B, typename C, int K, int Rows, int Columns>
MRT_COOPERATIVE void simdgroup_multiply_accumulate(simdgroup_matrix<D, Columns, Rows> &d,
                                                   simdgroup_matrix<A, K, Rows> a, simdgroup_matrix<B, Columns, K> b,
                                                   simdgroup_matrix<C, Columns, Rows> c MRT_SITE)
    MRT_BODY(d.elements = mrt::multiply_accumulate<D>(a.elements, b.elements, c.elements,
                                                      "simdgroup_multiply_accumulate", site);)

        template <typename D, typename A, typename B, int K, int Rows, int Columns>
        MRT_COOPERATIVE void simdgroup_multiply(simdgroup_matrix<D, Columns, Rows> &d, simdgroup_matrix<A, K, Rows> a,
                                                simdgroup_matrix<B, Columns, K> b MRT_SITE)
            MRT_BODY(d.elements = mrt::multiply_accumulate<D>(a.elements, b.elements, mrt::lane_elements<float>({}),
                                                              "simdgroup_multiply", site);)

} // namespace metal

// The compiler's internal name, which metal-flash-attention calls; the last argument only determines the result's type.
template <typename D, typename A, typename B, typename C>
MRT_COOPERATIVE metal::vec<D, 64>
__metal_simdgroup_matrix_8x8_multiply_accumulate(metal::vec<A, 64> a, metal::vec<B, 64> b, metal::vec<C, 64> c,
                                                 metal::vec<D, 64> MRT_SITE)
    MRT_BODY(return mrt::multiply_accumulate<D>(mrt::lane_elements(a, false), mrt::lane_elements(b, false),
                                                mrt::lane_elements(c, false), "simdgroup_multiply_accumulate", site)
                 .apple();)

#include "fragments.h"
#endif
