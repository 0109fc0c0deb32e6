// Matrices (MSL 2.3, 6.8), stored as columns, each of which is a vector. Sizes and alignments follow from those of the
// columns (Table 2.4).
#ifndef MRT_MATRIX_H
#define MRT_MATRIX_H

#include "geometric.h"

namespace metal {

// Constructors from the diagonal, with zeros elsewhere; from one vector per column (not from scalars); from one scalar
// per element, column by column; and from another element type.
#define MRT_MATRIX_CONSTRUCTORS(SPACE)                                                                                 \
  constexpr MRT_METHOD explicit matrix(T diagonal) SPACE : columns{} {                                                 \
    for (int c = 0; c < Columns && c < Rows; ++c) (&columns[c].x)[c] = diagonal;                                       \
  }                                                                                                                    \
  template <int C = Columns, enable_if_t<C == 2, int> = 0>                                                             \
  constexpr MRT_METHOD matrix(column a, column b) SPACE : columns{a, b} {}                                             \
  template <int C = Columns, enable_if_t<C == 3, int> = 0>                                                             \
  constexpr MRT_METHOD matrix(column a, column b, column c) SPACE : columns{a, b, c} {}                                \
  template <int C = Columns, enable_if_t<C == 4, int> = 0>                                                             \
  constexpr MRT_METHOD matrix(column a, column b, column c, column d) SPACE : columns{a, b, c, d} {}                   \
  template <typename... S, enable_if_t<sizeof...(S) == Columns && (mrt::is_scalar_beside<S, T> && ...), int> = 0>      \
  matrix(S...) SPACE = delete;                                                                                         \
  template <typename... S,                                                                                             \
            enable_if_t<sizeof...(S) == Columns * Rows && (mrt::is_scalar_beside<S, T> && ...), int> = 0>              \
  MRT_METHOD matrix(S... s) SPACE {                                                                                    \
    const T elements[] = {T(s)...};                                                                                    \
    for (int i = 0; i < Columns * Rows; ++i) (&columns[i / Rows].x)[i % Rows] = elements[i];                           \
  }                                                                                                                    \
  template <typename U, enable_if_t<!__is_same(U, T), int> = 0>                                                        \
  MRT_METHOD explicit matrix(matrix<U, Columns, Rows> m) SPACE {                                                       \
    for (int c = 0; c < Columns; ++c) columns[c] = column(m[c]);                                                       \
  }                                                                                                                    \
  MRT_MATRIX_COPY(SPACE)
#ifdef MRT_STRICT
#define MRT_MATRIX_COPY(SPACE)                                                                                         \
  template <typename U, enable_if_t<__is_same(U, T), int> = 0>                                                         \
  MRT_METHOD matrix(const MRT_CONSTANT matrix<U, Columns, Rows> &m) SPACE {                                            \
    for (int c = 0; c < Columns; ++c) columns[c] = m.columns[c];                                                       \
  }
#else
#define MRT_MATRIX_COPY(SPACE)
#endif

template <typename T, int Columns, int Rows> struct matrix {
  typedef vec<T, Rows> column;
  typedef T value_type;
  column columns[Columns];

  matrix() = default;

  MRT_IN_EACH_SPACE(MRT_MATRIX_CONSTRUCTORS)

  MRT_METHOD column &operator[](size_t c) { return columns[c]; }
  MRT_METHOD const column &operator[](size_t c) const { return columns[c]; }

#ifdef MRT_STRICT
  template <typename U, enable_if_t<__is_same(U, T), int> = 0>
  MRT_METHOD matrix &operator=(const MRT_CONSTANT matrix<U, Columns, Rows> &m) {
    return *this = matrix(m);
  }
  MRT_METHOD const MRT_CONSTANT column &operator[](size_t c) const MRT_CONSTANT { return columns[c]; }
#endif
};

// ---------------------------------------------------------------- operators (MSL 3.2)
// clang-format off: it would split `##=`
#define MRT_MATRIX_ELEMENTWISE(OP)                                                                                     \
  template <typename T, int C, int R> MRT_FUNC matrix<T, C, R> operator OP(matrix<T, C, R> a, matrix<T, C, R> b) {     \
    for (int c = 0; c < C; ++c) a.columns[c] = a.columns[c] OP b.columns[c];                                           \
    return a;                                                                                                          \
  }                                                                                                                    \
  template <typename T, int C, int R>                                                                                  \
  MRT_FUNC matrix<T, C, R> &operator OP##=(matrix<T, C, R> &a, matrix<T, C, R> b) {                                    \
    return a = a OP b;                                                                                                 \
  }
// clang-format on
MRT_MATRIX_ELEMENTWISE(+)
MRT_MATRIX_ELEMENTWISE(-)

template <typename T, int C, int R> MRT_FUNC matrix<T, C, R> operator-(matrix<T, C, R> a) {
  for (int c = 0; c < C; ++c) a.columns[c] = -a.columns[c];
  return a;
}
template <typename T, int C, int R, typename S, mrt::if_scalar_beside<S, T> = 0>
MRT_FUNC matrix<T, C, R> operator*(matrix<T, C, R> a, S s) {
  for (int c = 0; c < C; ++c) a.columns[c] = a.columns[c] * T(s);
  return a;
}
template <typename T, int C, int R, typename S, mrt::if_scalar_beside<S, T> = 0>
MRT_FUNC matrix<T, C, R> operator*(S s, matrix<T, C, R> a) {
  return a * s;
}
template <typename T, int C, int R, typename S, mrt::if_scalar_beside<S, T> = 0>
MRT_FUNC matrix<T, C, R> &operator*=(matrix<T, C, R> &a, S s) {
  return a = a * s;
}
template <typename T, int C, int R, typename S, mrt::if_scalar_beside<S, T> = 0>
MRT_FUNC matrix<T, C, R> operator/(matrix<T, C, R> a, S s) {
  for (int c = 0; c < C; ++c) a.columns[c] = a.columns[c] / T(s);
  return a;
}
template <typename T, int C, int R, typename S, mrt::if_scalar_beside<S, T> = 0>
MRT_FUNC matrix<T, C, R> &operator/=(matrix<T, C, R> &a, S s) {
  return a = a / s;
}

// Matrix times column vector, row vector times matrix, matrix times matrix. Sums are added from the first term to the
// last.
template <typename T, int C, int R> MRT_FUNC vec<T, R> operator*(matrix<T, C, R> a, vec<T, C> v) {
  vec<T, R> sum = a.columns[0] * v[0];
  for (int c = 1; c < C; ++c) sum += a.columns[c] * v[c];
  return sum;
}
template <typename T, int C, int R> MRT_FUNC vec<T, C> operator*(vec<T, R> v, matrix<T, C, R> a) {
  vec<T, C> result;
  for (int c = 0; c < C; ++c) result[c] = dot(v, a.columns[c]);
  return result;
}
template <typename T, int C, int R> MRT_FUNC vec<T, R> operator*(matrix<T, C, R> a, packed_vec<T, C> v) {
  return a * mrt_unpacked(v);
}
template <typename T, int C, int R, int K> MRT_FUNC matrix<T, C, R> operator*(matrix<T, K, R> a, matrix<T, C, K> b) {
  matrix<T, C, R> product;
  for (int c = 0; c < C; ++c) product.columns[c] = a * b.columns[c];
  return product;
}
template <typename T, int N> MRT_FUNC matrix<T, N, N> &operator*=(matrix<T, N, N> &a, matrix<T, N, N> b) {
  return a = a * b;
}

template <typename T, int C, int R> MRT_FUNC bool operator==(matrix<T, C, R> a, matrix<T, C, R> b) {
  bool equal = true;
  for (int c = 0; c < C; ++c) equal = equal && all(a.columns[c] == b.columns[c]);
  return equal;
}
template <typename T, int C, int R> MRT_FUNC bool operator!=(matrix<T, C, R> a, matrix<T, C, R> b) { return !(a == b); }

// ---------------------------------------------------------------- functions (MSL 6.8)
template <typename T, int C, int R> MRT_FUNC matrix<T, R, C> transpose(matrix<T, C, R> a) {
  matrix<T, R, C> result;
  for (int c = 0; c < C; ++c)
    for (int r = 0; r < R; ++r) result.columns[r][c] = a.columns[c][r];
  return result;
}

template <typename T> MRT_FUNC T determinant(matrix<T, 2, 2> a) { return a[0].x * a[1].y - a[1].x * a[0].y; }
template <typename T> MRT_FUNC T determinant(matrix<T, 3, 3> a) { return dot(a[0], cross(a[1], a[2])); }
// Expanded along the first row: the minors are triple products of the other rows' columns.
template <typename T> MRT_FUNC T determinant(matrix<T, 4, 4> a) {
  const vec<T, 3> p = a[0].yzw, q = a[1].yzw, r = a[2].yzw, s = a[3].yzw;
  return a[0].x * dot(q, cross(r, s)) - a[1].x * dot(p, cross(r, s)) + a[2].x * dot(p, cross(q, s)) -
         a[3].x * dot(p, cross(q, r));
}

#define MRT_MATRIX_NAMES(T, C)                                                                                         \
  typedef matrix<T, C, 2> T##C##x2;                                                                                    \
  typedef matrix<T, C, 3> T##C##x3;                                                                                    \
  typedef matrix<T, C, 4> T##C##x4;                                                                                    \
  static_assert(sizeof(T##C##x2) == C * sizeof(T##2) && sizeof(T##C##x3) == C * sizeof(T##3), "MSL Table 2.4");
#define MRT_FOR_MATRICES(M) M(float, 2) M(float, 3) M(float, 4) M(half, 2) M(half, 3) M(half, 4)
MRT_FOR_MATRICES(MRT_MATRIX_NAMES)

} // namespace metal

#define MRT_MATRIX_GLOBAL_NAMES(T, C) using metal::T##C##x2, metal::T##C##x3, metal::T##C##x4;
MRT_FOR_MATRICES(MRT_MATRIX_GLOBAL_NAMES)

#endif
