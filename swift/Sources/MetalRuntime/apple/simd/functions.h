// The functions of <simd/simd.h>, overloaded in C as in C++: `simd_dot(a, b)`.
#ifndef ORCHARD_SIMD_FUNCTIONS_H
#define ORCHARD_SIMD_FUNCTIONS_H

// Calls M(vector, element, count, comparison) for the vectors of a type. A comparison is -1 where it holds, else 0.
#define ORCHARD_SIMD_EACH(M, name, scalar, mask)                                                                       \
  M(simd_##name##2, scalar, 2, simd_##mask##2)                                                                         \
  M(simd_##name##3, scalar, 3, simd_##mask##3)                                                                         \
  M(simd_##name##4, scalar, 4, simd_##mask##4)
#define ORCHARD_SIMD_EACH_FLOAT(M) ORCHARD_SIMD_EACH(M, float, float, int) ORCHARD_SIMD_EACH(M, double, double, long)
#define ORCHARD_SIMD_EACH_SIGNED(M)                                                                                    \
  ORCHARD_SIMD_EACH(M, char, signed char, char)                                                                        \
  ORCHARD_SIMD_EACH(M, short, short, short)                                                                            \
  ORCHARD_SIMD_EACH(M, int, int, int)                                                                                  \
  ORCHARD_SIMD_EACH(M, long, long, long)
#define ORCHARD_SIMD_EACH_UNSIGNED(M)                                                                                  \
  ORCHARD_SIMD_EACH(M, uchar, unsigned char, char)                                                                     \
  ORCHARD_SIMD_EACH(M, ushort, unsigned short, short)                                                                  \
  ORCHARD_SIMD_EACH(M, uint, unsigned int, int)                                                                        \
  ORCHARD_SIMD_EACH(M, ulong, unsigned long, long)

// ---------------------------------------------------------------- elements

#define ORCHARD_SIMD_ORDERED(vector, scalar, count, mask)                                                              \
  ORCHARD_SIMD_FUNCTION vector simd_select(vector a, vector b, mask m) { return m ? b : a; }                           \
  ORCHARD_SIMD_FUNCTION vector simd_min(vector a, vector b) { return __builtin_elementwise_min(a, b); }                \
  ORCHARD_SIMD_FUNCTION vector simd_max(vector a, vector b) { return __builtin_elementwise_max(a, b); }                \
  ORCHARD_SIMD_FUNCTION vector simd_clamp(vector v, vector low, vector high) {                                         \
    return simd_min(simd_max(v, low), high);                                                                           \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION scalar simd_reduce_min(vector v) { return __builtin_reduce_min(v); }                           \
  ORCHARD_SIMD_FUNCTION scalar simd_reduce_max(vector v) { return __builtin_reduce_max(v); }                           \
  ORCHARD_SIMD_FUNCTION scalar simd_reduce_add(vector v) {                                                             \
    scalar sum = v[0];                                                                                                 \
    for (int i = 1; i < count; i++) sum += v[i];                                                                       \
    return sum;                                                                                                        \
  }
ORCHARD_SIMD_EACH_SIGNED(ORCHARD_SIMD_ORDERED)
ORCHARD_SIMD_EACH_UNSIGNED(ORCHARD_SIMD_ORDERED)
ORCHARD_SIMD_EACH_FLOAT(ORCHARD_SIMD_ORDERED)

#define ORCHARD_SIMD_ABSOLUTE(vector, scalar, count, mask)                                                             \
  ORCHARD_SIMD_FUNCTION vector simd_abs(vector v) { return __builtin_elementwise_abs(v); }
ORCHARD_SIMD_EACH_SIGNED(ORCHARD_SIMD_ABSOLUTE)
ORCHARD_SIMD_EACH_FLOAT(ORCHARD_SIMD_ABSOLUTE)

#define ORCHARD_SIMD_TESTS(vector, scalar, count, mask)                                                                \
  ORCHARD_SIMD_FUNCTION bool simd_any(vector v) { return simd_reduce_min(v) < 0; }                                     \
  ORCHARD_SIMD_FUNCTION bool simd_all(vector v) { return simd_reduce_max(v) < 0; }
ORCHARD_SIMD_EACH_SIGNED(ORCHARD_SIMD_TESTS)

// Calls a function of the C library for each element. C's function keeps its name for numbers.
#define ORCHARD_SIMD_CALL1(vector, count, name)                                                                        \
  ORCHARD_SIMD_FUNCTION vector name(vector v) {                                                                        \
    for (int i = 0; i < count; i++) v[i] = __builtin_##name(v[i]);                                                     \
    return v;                                                                                                          \
  }
#define ORCHARD_SIMD_CALL2(vector, count, name)                                                                        \
  ORCHARD_SIMD_FUNCTION vector name(vector a, vector b) {                                                              \
    for (int i = 0; i < count; i++) a[i] = __builtin_##name(a[i], b[i]);                                               \
    return a;                                                                                                          \
  }
#define ORCHARD_SIMD_LIBRARY(vector, scalar, count, mask)                                                              \
  ORCHARD_SIMD_CALL1(vector, count, fabs)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, floor)                                                                             \
  ORCHARD_SIMD_CALL1(vector, count, ceil)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, trunc)                                                                             \
  ORCHARD_SIMD_CALL1(vector, count, round)                                                                             \
  ORCHARD_SIMD_CALL1(vector, count, rint)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, sqrt)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, cbrt)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, exp)                                                                               \
  ORCHARD_SIMD_CALL1(vector, count, exp2)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, expm1)                                                                             \
  ORCHARD_SIMD_CALL1(vector, count, log)                                                                               \
  ORCHARD_SIMD_CALL1(vector, count, log2)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, log10)                                                                             \
  ORCHARD_SIMD_CALL1(vector, count, log1p)                                                                             \
  ORCHARD_SIMD_CALL1(vector, count, sin)                                                                               \
  ORCHARD_SIMD_CALL1(vector, count, cos)                                                                               \
  ORCHARD_SIMD_CALL1(vector, count, tan)                                                                               \
  ORCHARD_SIMD_CALL1(vector, count, asin)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, acos)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, atan)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, sinh)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, cosh)                                                                              \
  ORCHARD_SIMD_CALL1(vector, count, tanh)                                                                              \
  ORCHARD_SIMD_CALL2(vector, count, fmin)                                                                              \
  ORCHARD_SIMD_CALL2(vector, count, fmax)                                                                              \
  ORCHARD_SIMD_CALL2(vector, count, fmod)                                                                              \
  ORCHARD_SIMD_CALL2(vector, count, pow)                                                                               \
  ORCHARD_SIMD_CALL2(vector, count, atan2)                                                                             \
  ORCHARD_SIMD_CALL2(vector, count, copysign)
ORCHARD_SIMD_EACH_FLOAT(ORCHARD_SIMD_LIBRARY)

// Functions of numbers and vectors.
#define ORCHARD_SIMD_COMMON(type)                                                                                      \
  ORCHARD_SIMD_FUNCTION type simd_mix(type x, type y, type t) { return x + t * (y - x); }                              \
  ORCHARD_SIMD_FUNCTION type simd_recip(type x) { return 1 / x; }                                                      \
  ORCHARD_SIMD_FUNCTION type simd_fast_recip(type x) { return 1 / x; }                                                 \
  ORCHARD_SIMD_FUNCTION type simd_precise_recip(type x) { return 1 / x; }                                              \
  ORCHARD_SIMD_FUNCTION type simd_rsqrt(type x) { return 1 / sqrt(x); }                                                \
  ORCHARD_SIMD_FUNCTION type simd_fast_rsqrt(type x) { return 1 / sqrt(x); }                                           \
  ORCHARD_SIMD_FUNCTION type simd_precise_rsqrt(type x) { return 1 / sqrt(x); }
#define ORCHARD_SIMD_COMMON_VECTORS(vector, scalar, count, mask)                                                       \
  ORCHARD_SIMD_COMMON(vector)                                                                                          \
  ORCHARD_SIMD_FUNCTION vector simd_mix(vector x, vector y, scalar t) { return x + t * (y - x); }                      \
  ORCHARD_SIMD_FUNCTION vector simd_sign(vector v) {                                                                   \
    const vector one = 1, zero = 0;                                                                                    \
    return v > 0 ? one : v < 0 ? -one : zero;                                                                          \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION vector simd_saturate(vector v) {                                                               \
    const vector one = 1, zero = 0;                                                                                    \
    return simd_clamp(v, zero, one);                                                                                   \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION vector simd_step(vector edge, vector v) {                                                      \
    const vector one = 1, zero = 0;                                                                                    \
    return v < edge ? zero : one;                                                                                      \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION vector simd_smoothstep(vector low, vector high, vector v) {                                    \
    const vector t = simd_saturate((v - low) / (high - low));                                                          \
    return t * t * (3 - 2 * t);                                                                                        \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION vector simd_fract(vector v) { return v - floor(v); }
ORCHARD_SIMD_COMMON(float)
ORCHARD_SIMD_COMMON(double)
ORCHARD_SIMD_EACH_FLOAT(ORCHARD_SIMD_COMMON_VECTORS)
ORCHARD_SIMD_FUNCTION float simd_min(float a, float b) { return fminf(a, b); }
ORCHARD_SIMD_FUNCTION float simd_max(float a, float b) { return fmaxf(a, b); }
ORCHARD_SIMD_FUNCTION float simd_clamp(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
ORCHARD_SIMD_FUNCTION double simd_min(double a, double b) { return fmin(a, b); }
ORCHARD_SIMD_FUNCTION double simd_max(double a, double b) { return fmax(a, b); }
ORCHARD_SIMD_FUNCTION double simd_clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }

// ---------------------------------------------------------------- geometry

#define ORCHARD_SIMD_GEOMETRY(vector, scalar, count, mask)                                                             \
  ORCHARD_SIMD_FUNCTION scalar simd_dot(vector a, vector b) { return simd_reduce_add(a * b); }                         \
  ORCHARD_SIMD_FUNCTION scalar simd_length_squared(vector v) { return simd_dot(v, v); }                                \
  ORCHARD_SIMD_FUNCTION scalar simd_length(vector v) { return (scalar)sqrt(simd_dot(v, v)); }                          \
  ORCHARD_SIMD_FUNCTION scalar simd_fast_length(vector v) { return simd_length(v); }                                   \
  ORCHARD_SIMD_FUNCTION scalar simd_precise_length(vector v) { return simd_length(v); }                                \
  ORCHARD_SIMD_FUNCTION scalar simd_norm_one(vector v) { return simd_reduce_add(simd_abs(v)); }                        \
  ORCHARD_SIMD_FUNCTION scalar simd_norm_inf(vector v) { return simd_reduce_max(simd_abs(v)); }                        \
  ORCHARD_SIMD_FUNCTION scalar simd_distance_squared(vector a, vector b) { return simd_length_squared(a - b); }        \
  ORCHARD_SIMD_FUNCTION scalar simd_distance(vector a, vector b) { return simd_length(a - b); }                        \
  ORCHARD_SIMD_FUNCTION scalar simd_fast_distance(vector a, vector b) { return simd_length(a - b); }                   \
  ORCHARD_SIMD_FUNCTION scalar simd_precise_distance(vector a, vector b) { return simd_length(a - b); }                \
  ORCHARD_SIMD_FUNCTION vector simd_normalize(vector v) { return v / simd_length(v); }                                 \
  ORCHARD_SIMD_FUNCTION vector simd_fast_normalize(vector v) { return simd_normalize(v); }                             \
  ORCHARD_SIMD_FUNCTION vector simd_precise_normalize(vector v) { return simd_normalize(v); }                          \
  ORCHARD_SIMD_FUNCTION vector simd_project(vector a, vector b) { return simd_dot(a, b) / simd_dot(b, b) * b; }        \
  ORCHARD_SIMD_FUNCTION vector simd_reflect(vector v, vector normal) { return v - 2 * simd_dot(v, normal) * normal; }  \
  ORCHARD_SIMD_FUNCTION vector simd_refract(vector v, vector normal, scalar ratio) {                                   \
    const scalar cosine = simd_dot(v, normal), root = 1 - ratio * ratio * (1 - cosine * cosine);                       \
    const vector zero = 0;                                                                                             \
    return root < 0 ? zero : ratio * v - (ratio * cosine + (scalar)sqrt(root)) * normal;                               \
  }
ORCHARD_SIMD_EACH_FLOAT(ORCHARD_SIMD_GEOMETRY)

#define ORCHARD_SIMD_CROSS(name)                                                                                       \
  ORCHARD_SIMD_FUNCTION simd_##name##3 simd_cross(simd_##name##3 a, simd_##name##3 b) {                                \
    return a.yzx * b.zxy - a.zxy * b.yzx;                                                                              \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##3 simd_cross(simd_##name##2 a, simd_##name##2 b) {                                \
    return (simd_##name##3){0, 0, a.x * b.y - a.y * b.x};                                                              \
  }
ORCHARD_SIMD_CROSS(float)
ORCHARD_SIMD_CROSS(double)

// ---------------------------------------------------------------- matrices

// A matrix of `columns_` columns and `rows` rows.
#define ORCHARD_SIMD_LINEAR(name, scalar, columns_, rows)                                                              \
  ORCHARD_SIMD_FUNCTION simd_##name##rows simd_mul(simd_##name##columns_##x##rows m, simd_##name##columns_ v) {        \
    simd_##name##rows sum = m.columns[0] * v[0];                                                                       \
    for (int i = 1; i < columns_; i++) sum += m.columns[i] * v[i];                                                     \
    return sum;                                                                                                        \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##columns_ simd_mul(simd_##name##rows v, simd_##name##columns_##x##rows m) {        \
    simd_##name##columns_ result = 0;                                                                                  \
    for (int i = 0; i < columns_; i++) result[i] = simd_dot(v, m.columns[i]);                                          \
    return result;                                                                                                     \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##columns_##x##rows simd_mul(scalar a, simd_##name##columns_##x##rows m) {          \
    for (int i = 0; i < columns_; i++) m.columns[i] *= a;                                                              \
    return m;                                                                                                          \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##columns_##x##rows simd_add(simd_##name##columns_##x##rows a,                      \
                                                                simd_##name##columns_##x##rows b) {                    \
    for (int i = 0; i < columns_; i++) a.columns[i] += b.columns[i];                                                   \
    return a;                                                                                                          \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##columns_##x##rows simd_sub(simd_##name##columns_##x##rows a,                      \
                                                                simd_##name##columns_##x##rows b) {                    \
    for (int i = 0; i < columns_; i++) a.columns[i] -= b.columns[i];                                                   \
    return a;                                                                                                          \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##rows##x##columns_ simd_transpose(simd_##name##columns_##x##rows m) {              \
    simd_##name##rows##x##columns_ result;                                                                             \
    for (int i = 0; i < rows; i++)                                                                                     \
      for (int k = 0; k < columns_; k++) result.columns[i][k] = m.columns[k][i];                                       \
    return result;                                                                                                     \
  }
// The product of a matrix of `inner` columns and one of `inner` rows.
#define ORCHARD_SIMD_PRODUCT(name, inner, rows, columns_)                                                              \
  ORCHARD_SIMD_FUNCTION simd_##name##columns_##x##rows simd_mul(simd_##name##inner##x##rows a,                         \
                                                                simd_##name##columns_##x##inner b) {                   \
    simd_##name##columns_##x##rows product;                                                                            \
    for (int i = 0; i < columns_; i++) product.columns[i] = simd_mul(a, b.columns[i]);                                 \
    return product;                                                                                                    \
  }
#define ORCHARD_SIMD_PRODUCTS(name, inner, rows)                                                                       \
  ORCHARD_SIMD_PRODUCT(name, inner, rows, 2)                                                                           \
  ORCHARD_SIMD_PRODUCT(name, inner, rows, 3)                                                                           \
  ORCHARD_SIMD_PRODUCT(name, inner, rows, 4)
// The inverse by elimination, with the largest pivot of each column. That of a singular matrix has NaN or infinities.
#define ORCHARD_SIMD_SQUARE(name, scalar, count)                                                                       \
  ORCHARD_SIMD_FUNCTION simd_##name##count##x##count simd_diagonal_matrix(simd_##name##count d) {                      \
    simd_##name##count##x##count m = {0};                                                                              \
    for (int i = 0; i < count; i++) m.columns[i][i] = d[i];                                                            \
    return m;                                                                                                          \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION scalar orchard_simd_eliminate(simd_##name##count##x##count m,                                  \
                                                      simd_##name##count##x##count *inverse) {                         \
    const simd_##name##count ones = 1;                                                                                 \
    simd_##name##count##x##count other = simd_diagonal_matrix(ones);                                                   \
    scalar determinant = 1;                                                                                            \
    for (int i = 0; i < count; i++) {                                                                                  \
      int pivot = i;                                                                                                   \
      for (int k = i + 1; k < count; k++)                                                                              \
        if (fabs(m.columns[k][i]) > fabs(m.columns[pivot][i])) pivot = k;                                              \
      const simd_##name##count column = m.columns[pivot], unit = other.columns[pivot];                                 \
      if (pivot != i) determinant = -determinant;                                                                      \
      m.columns[pivot] = m.columns[i], other.columns[pivot] = other.columns[i];                                        \
      determinant *= column[i];                                                                                        \
      m.columns[i] = column / column[i], other.columns[i] = unit / column[i];                                          \
      for (int k = 0; k < count; k++) {                                                                                \
        const scalar factor = m.columns[k][i];                                                                         \
        if (k == i) continue;                                                                                          \
        m.columns[k] -= factor * m.columns[i], other.columns[k] -= factor * other.columns[i];                          \
      }                                                                                                                \
    }                                                                                                                  \
    *inverse = other;                                                                                                  \
    return determinant;                                                                                                \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##count##x##count simd_inverse(simd_##name##count##x##count m) {                    \
    simd_##name##count##x##count inverse;                                                                              \
    orchard_simd_eliminate(m, &inverse);                                                                               \
    return inverse;                                                                                                    \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION scalar simd_determinant(simd_##name##count##x##count m) {                                      \
    simd_##name##count##x##count inverse;                                                                              \
    const scalar determinant = orchard_simd_eliminate(m, &inverse);                                                    \
    return determinant == determinant ? determinant : 0;                                                               \
  }
#define ORCHARD_SIMD_COLUMNS(name, rows)                                                                               \
  ORCHARD_SIMD_FUNCTION simd_##name##2x##rows simd_matrix(simd_##name##rows a, simd_##name##rows b) {                  \
    return (simd_##name##2x##rows){{a, b}};                                                                            \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##3x##rows simd_matrix(simd_##name##rows a, simd_##name##rows b,                    \
                                                          simd_##name##rows c) {                                       \
    return (simd_##name##3x##rows){{a, b, c}};                                                                         \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4x##rows simd_matrix(simd_##name##rows a, simd_##name##rows b,                    \
                                                          simd_##name##rows c, simd_##name##rows d) {                  \
    return (simd_##name##4x##rows){{a, b, c, d}};                                                                      \
  }
#define ORCHARD_SIMD_ALGEBRA(name, scalar)                                                                             \
  ORCHARD_SIMD_LINEAR(name, scalar, 2, 2)                                                                              \
  ORCHARD_SIMD_LINEAR(name, scalar, 2, 3)                                                                              \
  ORCHARD_SIMD_LINEAR(name, scalar, 2, 4)                                                                              \
  ORCHARD_SIMD_LINEAR(name, scalar, 3, 2)                                                                              \
  ORCHARD_SIMD_LINEAR(name, scalar, 3, 3)                                                                              \
  ORCHARD_SIMD_LINEAR(name, scalar, 3, 4)                                                                              \
  ORCHARD_SIMD_LINEAR(name, scalar, 4, 2)                                                                              \
  ORCHARD_SIMD_LINEAR(name, scalar, 4, 3)                                                                              \
  ORCHARD_SIMD_LINEAR(name, scalar, 4, 4)                                                                              \
  ORCHARD_SIMD_PRODUCTS(name, 2, 2)                                                                                    \
  ORCHARD_SIMD_PRODUCTS(name, 2, 3)                                                                                    \
  ORCHARD_SIMD_PRODUCTS(name, 2, 4)                                                                                    \
  ORCHARD_SIMD_PRODUCTS(name, 3, 2)                                                                                    \
  ORCHARD_SIMD_PRODUCTS(name, 3, 3)                                                                                    \
  ORCHARD_SIMD_PRODUCTS(name, 3, 4)                                                                                    \
  ORCHARD_SIMD_PRODUCTS(name, 4, 2)                                                                                    \
  ORCHARD_SIMD_PRODUCTS(name, 4, 3)                                                                                    \
  ORCHARD_SIMD_PRODUCTS(name, 4, 4)                                                                                    \
  ORCHARD_SIMD_COLUMNS(name, 2)                                                                                        \
  ORCHARD_SIMD_COLUMNS(name, 3)                                                                                        \
  ORCHARD_SIMD_COLUMNS(name, 4)                                                                                        \
  ORCHARD_SIMD_SQUARE(name, scalar, 2)                                                                                 \
  ORCHARD_SIMD_SQUARE(name, scalar, 3)                                                                                 \
  ORCHARD_SIMD_SQUARE(name, scalar, 4)
ORCHARD_SIMD_ALGEBRA(float, float)
ORCHARD_SIMD_ALGEBRA(double, double)

#ifdef __cplusplus
// `simd::dot(a, b)`.
namespace simd {
#define ORCHARD_SIMD_NAME(name)                                                                                        \
  template <typename... T> inline auto name(T... values) -> decltype(::simd_##name(values...)) {                       \
    return ::simd_##name(values...);                                                                                   \
  }
ORCHARD_SIMD_NAME(select)
ORCHARD_SIMD_NAME(min)
ORCHARD_SIMD_NAME(max)
ORCHARD_SIMD_NAME(clamp)
ORCHARD_SIMD_NAME(reduce_min)
ORCHARD_SIMD_NAME(reduce_max)
ORCHARD_SIMD_NAME(reduce_add)
ORCHARD_SIMD_NAME(abs)
ORCHARD_SIMD_NAME(any)
ORCHARD_SIMD_NAME(all)
ORCHARD_SIMD_NAME(mix)
ORCHARD_SIMD_NAME(recip)
ORCHARD_SIMD_NAME(rsqrt)
ORCHARD_SIMD_NAME(sign)
ORCHARD_SIMD_NAME(saturate)
ORCHARD_SIMD_NAME(step)
ORCHARD_SIMD_NAME(smoothstep)
ORCHARD_SIMD_NAME(fract)
ORCHARD_SIMD_NAME(dot)
ORCHARD_SIMD_NAME(length_squared)
ORCHARD_SIMD_NAME(length)
ORCHARD_SIMD_NAME(norm_one)
ORCHARD_SIMD_NAME(norm_inf)
ORCHARD_SIMD_NAME(distance_squared)
ORCHARD_SIMD_NAME(distance)
ORCHARD_SIMD_NAME(normalize)
ORCHARD_SIMD_NAME(project)
ORCHARD_SIMD_NAME(reflect)
ORCHARD_SIMD_NAME(refract)
ORCHARD_SIMD_NAME(cross)
ORCHARD_SIMD_NAME(transpose)
ORCHARD_SIMD_NAME(inverse)
ORCHARD_SIMD_NAME(determinant)
} // namespace simd
#endif

#endif
