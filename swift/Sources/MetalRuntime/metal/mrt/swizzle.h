// Swizzles (MSL 2.2): a.xy, a.bgra, a.wwww. All can be read, and those without a repeated component can be written.
// Each is a property without storage, with the functions mrt_xy and mrt_set_xy; `rgba` names use the functions of the
// `xyzw` names. The setter exists only if no component is repeated, so that writing a.xx is an error.
#ifndef MRT_SWIZZLE_H
#define MRT_SWIZZLE_H

#ifdef MRT_STRICT
// A method for objects in the constant address space is a separate overload.
#define MRT_SWIZZLE_READ(type, name, ...)                                                                              \
  constexpr MRT_METHOD type name() const { return type(__VA_ARGS__); }                                                 \
  constexpr MRT_METHOD type name() const MRT_CONSTANT { return type(__VA_ARGS__); }
#else
#define MRT_SWIZZLE_READ(type, name, ...)                                                                              \
  constexpr MRT_METHOD type name() const { return type(__VA_ARGS__); }
#endif
#define MRT_SWIZZLE_PROPERTY(type, name, function)                                                                     \
  __declspec(property(get = mrt_##function, put = mrt_set_##function)) type name;

#define MRT_SWIZZLE2(a, r, b, g)                                                                                       \
  MRT_SWIZZLE_READ(MRT_VEC2, mrt_##a##b, a, b)                                                                         \
  MRT_SWIZZLE_PROPERTY(MRT_VEC2, a##b, a##b)                                                                           \
  MRT_SWIZZLE_PROPERTY(MRT_VEC2, r##g, a##b)
#define MRT_SWIZZLE3(a, r, b, g, c, h)                                                                                 \
  MRT_SWIZZLE_READ(MRT_VEC3, mrt_##a##b##c, a, b, c)                                                                   \
  MRT_SWIZZLE_PROPERTY(MRT_VEC3, a##b##c, a##b##c)                                                                     \
  MRT_SWIZZLE_PROPERTY(MRT_VEC3, r##g##h, a##b##c)
#define MRT_SWIZZLE4(a, r, b, g, c, h, d, i)                                                                           \
  MRT_SWIZZLE_READ(MRT_VEC4, mrt_##a##b##c##d, a, b, c, d)                                                             \
  MRT_SWIZZLE_PROPERTY(MRT_VEC4, a##b##c##d, a##b##c##d)                                                               \
  MRT_SWIZZLE_PROPERTY(MRT_VEC4, r##g##h##i, a##b##c##d)

// clang-format off: it would treat a list of macros as one statement

// One level of nested loops over the components of a vector of 2, 3 or 4.
#define MRT_LEVEL1_2(M, ...) M(__VA_ARGS__, x, r) M(__VA_ARGS__, y, g)
#define MRT_LEVEL1_3(M, ...) MRT_LEVEL1_2(M, __VA_ARGS__) M(__VA_ARGS__, z, b)
#define MRT_LEVEL1_4(M, ...) MRT_LEVEL1_3(M, __VA_ARGS__) M(__VA_ARGS__, w, a)
#define MRT_LEVEL2_2(L, M, ...) L(M, __VA_ARGS__, x, r) L(M, __VA_ARGS__, y, g)
#define MRT_LEVEL2_3(L, M, ...) MRT_LEVEL2_2(L, M, __VA_ARGS__) L(M, __VA_ARGS__, z, b)
#define MRT_LEVEL2_4(L, M, ...) MRT_LEVEL2_3(L, M, __VA_ARGS__) L(M, __VA_ARGS__, w, a)
#define MRT_LEVEL3_2(K, L, M, ...) K(L, M, __VA_ARGS__, x, r) K(L, M, __VA_ARGS__, y, g)
#define MRT_LEVEL3_3(K, L, M, ...) MRT_LEVEL3_2(K, L, M, __VA_ARGS__) K(L, M, __VA_ARGS__, z, b)
#define MRT_LEVEL3_4(K, L, M, ...) MRT_LEVEL3_3(K, L, M, __VA_ARGS__) K(L, M, __VA_ARGS__, w, a)

#define MRT_FIRST2(L) L(MRT_SWIZZLE2, x, r) L(MRT_SWIZZLE2, y, g)
#define MRT_FIRST3(K, L) K(L, MRT_SWIZZLE3, x, r) K(L, MRT_SWIZZLE3, y, g)
#define MRT_FIRST4(J, K, L) J(K, L, MRT_SWIZZLE4, x, r) J(K, L, MRT_SWIZZLE4, y, g)

#define MRT_SWIZZLES_OF_2                                                                                              \
  MRT_FIRST2(MRT_LEVEL1_2)                                                                                             \
  MRT_FIRST3(MRT_LEVEL2_2, MRT_LEVEL1_2)                                                                               \
  MRT_FIRST4(MRT_LEVEL3_2, MRT_LEVEL2_2, MRT_LEVEL1_2)
#define MRT_SWIZZLES_OF_3                                                                                              \
  MRT_FIRST2(MRT_LEVEL1_3) MRT_LEVEL1_3(MRT_SWIZZLE2, z, b)                                                            \
  MRT_FIRST3(MRT_LEVEL2_3, MRT_LEVEL1_3) MRT_LEVEL2_3(MRT_LEVEL1_3, MRT_SWIZZLE3, z, b)                                \
  MRT_FIRST4(MRT_LEVEL3_3, MRT_LEVEL2_3, MRT_LEVEL1_3) MRT_LEVEL3_3(MRT_LEVEL2_3, MRT_LEVEL1_3, MRT_SWIZZLE4, z, b)
#define MRT_SWIZZLES_OF_4                                                                                              \
  MRT_FIRST2(MRT_LEVEL1_4) MRT_LEVEL1_4(MRT_SWIZZLE2, z, b) MRT_LEVEL1_4(MRT_SWIZZLE2, w, a)                           \
  MRT_FIRST3(MRT_LEVEL2_4, MRT_LEVEL1_4) MRT_LEVEL2_4(MRT_LEVEL1_4, MRT_SWIZZLE3, z, b)                                \
  MRT_LEVEL2_4(MRT_LEVEL1_4, MRT_SWIZZLE3, w, a)                                                                       \
  MRT_FIRST4(MRT_LEVEL3_4, MRT_LEVEL2_4, MRT_LEVEL1_4) MRT_LEVEL3_4(MRT_LEVEL2_4, MRT_LEVEL1_4, MRT_SWIZZLE4, z, b)    \
  MRT_LEVEL3_4(MRT_LEVEL2_4, MRT_LEVEL1_4, MRT_SWIZZLE4, w, a)

// ---------------------------------------------------------------- setters: the permutations
#define MRT_PUT2(a, b)                                                                                                 \
  constexpr MRT_METHOD void mrt_set_##a##b(MRT_VEC2 v) { a = v.x, b = v.y; }
#define MRT_PUT3(a, b, c)                                                                                              \
  constexpr MRT_METHOD void mrt_set_##a##b##c(MRT_VEC3 v) { a = v.x, b = v.y, c = v.z; }
#define MRT_PUT4(a, b, c, d)                                                                                           \
  constexpr MRT_METHOD void mrt_set_##a##b##c##d(MRT_VEC4 v) { a = v.x, b = v.y, c = v.z, d = v.w; }

#define MRT_PUT2_BOTH(a, b) MRT_PUT2(a, b) MRT_PUT2(b, a)
#define MRT_PUT3_ALL(a, b, c)                                                                                          \
  MRT_PUT3(a, b, c) MRT_PUT3(a, c, b) MRT_PUT3(b, a, c) MRT_PUT3(b, c, a) MRT_PUT3(c, a, b) MRT_PUT3(c, b, a)
#define MRT_PUT4_FROM(a, b, c, d)                                                                                      \
  MRT_PUT4(a, b, c, d) MRT_PUT4(a, b, d, c) MRT_PUT4(a, c, b, d)                                                       \
  MRT_PUT4(a, c, d, b) MRT_PUT4(a, d, b, c) MRT_PUT4(a, d, c, b)

#define MRT_PUTS_OF_2 MRT_PUT2_BOTH(x, y)
#define MRT_PUTS_OF_3                                                                                                  \
  MRT_PUTS_OF_2 MRT_PUT2_BOTH(x, z) MRT_PUT2_BOTH(y, z)                                                                \
  MRT_PUT3_ALL(x, y, z)
#define MRT_PUTS_OF_4                                                                                                  \
  MRT_PUTS_OF_3 MRT_PUT2_BOTH(x, w) MRT_PUT2_BOTH(y, w) MRT_PUT2_BOTH(z, w)                                            \
  MRT_PUT3_ALL(x, y, w) MRT_PUT3_ALL(x, z, w) MRT_PUT3_ALL(y, z, w)                                                    \
  MRT_PUT4_FROM(x, y, z, w) MRT_PUT4_FROM(y, x, z, w) MRT_PUT4_FROM(z, x, y, w) MRT_PUT4_FROM(w, x, y, z)

// ---------------------------------------------------------------- single components r, g, b, a
#define MRT_RGBA_READ(name, a)                                                                                         \
  MRT_SWIZZLE_READ(T, mrt_##a, a)                                                                                      \
  constexpr MRT_METHOD void mrt_set_##a(T v) { a = v; }                                                                \
  MRT_SWIZZLE_PROPERTY(T, name, a)
#define MRT_RGBA_OF_2 MRT_RGBA_READ(r, x) MRT_RGBA_READ(g, y)
#define MRT_RGBA_OF_3 MRT_RGBA_OF_2 MRT_RGBA_READ(b, z)
#define MRT_RGBA_OF_4 MRT_RGBA_OF_3 MRT_RGBA_READ(a, w)

// clang-format on

#endif
