// Textures of compute kernels (MSL 2.9 and 6.12): 1D, 2D, 3D, cubes, arrays of all but 3D, and texture buffers. Depth
// textures are in texture_depth.h.
#ifndef MRT_TEXTURE_H
#define MRT_TEXTURE_H

#include "math.h"
#include "texel.h"
#include "vec.h"

namespace metal {

enum class access { sample = 0, read = 1, write = 2, read_write = 3 };
enum class component { x = 0, y = 1, z = 2, w = 3 };

enum memory_coherence { memory_coherence_threadgroup = 0, memory_coherence_device = 1 };

// The level of a texture to sample. A compute kernel has no derivatives, so without these arguments it is the first
// level.
struct level {
  float lod;
  constexpr MRT_METHOD explicit level(float lod) : lod(lod) {}
};
struct bias {
  float lod;
  constexpr MRT_METHOD explicit bias(float lod) : lod(lod) {}
};
struct min_lod_clamp {
  float lod;
  constexpr MRT_METHOD explicit min_lod_clamp(float lod) : lod(lod) {}
};
struct gradient2d {
  float2 dPdx, dPdy;
  constexpr MRT_METHOD gradient2d(float2 dPdx, float2 dPdy) : dPdx(dPdx), dPdy(dPdy) {}
};
struct gradient3d {
  float3 dPdx, dPdy;
  constexpr MRT_METHOD gradient3d(float3 dPdx, float3 dPdy) : dPdx(dPdx), dPdy(dPdy) {}
};
struct gradientcube {
  float3 dPdx, dPdy;
  constexpr MRT_METHOD gradientcube(float3 dPdx, float3 dPdy) : dPdx(dPdx), dPdy(dPdy) {}
};

} // namespace metal

namespace mrt {

using metal::access;

template <typename V> V no_value(); // for strict mode, which needs only types

// The level at which the longer of two steps, given in pixels of level 0, is as long as a pixel (MSL 2.10).
template <int N> MRT_FUNC float level_of(metal::vec<float, N> dx, metal::vec<float, N> dy, metal::vec<float, N> size) {
  float x = 0, y = 0;
  for (int i = 0; i < N; i++) {
    x += dx[i] * size[i] * (dx[i] * size[i]);
    y += dy[i] * size[i] * (dy[i] * size[i]);
  }
  return 0.5f * metal::log2(x > y ? x : y);
}

// The base of all textures: a pointer to the description of the bound texture.
struct TextureBase {
#ifdef MRT_STRICT
  ulong texture; // for the size
  MRT_METHOD uint width(uint) const { return 0; }
  MRT_METHOD uint height(uint) const { return 0; }
  MRT_METHOD uint depth(uint) const { return 0; }
  MRT_METHOD uint array_size() const { return 0; }
  MRT_METHOD uint levels() const { return 0; }
#else
  const MrtTexture *texture = nullptr;
  MRT_METHOD uint width(uint level) const { return level < levels() ? texture->levels[level].width : 0; }
  MRT_METHOD uint height(uint level) const { return level < levels() ? texture->levels[level].height : 0; }
  MRT_METHOD uint depth(uint level) const { return level < levels() ? texture->levels[level].depth : 0; }
  MRT_METHOD uint array_size() const { return texture ? texture->array_length : 0; }
  MRT_METHOD uint levels() const { return texture ? texture->level_count : 0; }
#endif
};

template <typename T> constexpr MRT_CONSTANT bool is_texel_float = __is_same(T, float) || __is_same(T, half);
template <typename T>
constexpr MRT_CONSTANT bool is_texel = is_texel_float<T> || __is_same(T, int) || __is_same(T, uint) ||
                                       __is_same(T, short) || __is_same(T, ushort) || __is_same(T, ulong);

template <typename T, access a> struct TextureOf : TextureBase {
  static_assert(is_texel<T>, "a texture has components of half, float, short, ushort, int or uint");
  typedef T component_type;
  typedef metal::vec<T, 4> Color;
  static constexpr MRT_CONSTANT access allowed = a;

#ifdef MRT_STRICT
  MRT_METHOD Color load(uint, uint, uint, uint, uint) const {
    static_assert(a != access::write, "a texture of access::write can not be read");
    return no_value<Color>();
  }
  MRT_METHOD void store(Color, uint, uint, uint, uint, uint) const {
    static_assert(a == access::write || a == access::read_write, "this texture can not be written: see its access");
  }
  MRT_METHOD Color take(metal::sampler, uint, float, float, float, int, int, int, uint, float) const {
    static_assert(a == access::sample, "only a texture of access::sample can be sampled");
    return no_value<Color>();
  }
  MRT_METHOD Color four(metal::sampler, uint, float, float, float, int, int, uint, metal::component) const {
    static_assert(a == access::sample, "only a texture of access::sample can be sampled");
    return no_value<Color>();
  }
  MRT_METHOD Color update(uint, uint, uint, uint, uint) const {
    static_assert(__is_same(T, int) || __is_same(T, uint), "only textures of int and uint have atomic operations");
    static_assert(a == access::read_write, "atomic operations take a texture of access::read_write");
    return no_value<Color>();
  }
#else
  static MRT_METHOD Color color(const Texel &texel) {
    if constexpr (is_texel_float<T>) return Color(T(texel.f[0]), T(texel.f[1]), T(texel.f[2]), T(texel.f[3]));
    else return Color(T(texel.u[0]), T(texel.u[1]), T(texel.u[2]), T(texel.u[3]));
  }
  MRT_METHOD Color load(uint x, uint y, uint z, uint slice, uint level, Site site) const {
    return color(read_texel(texture, {x, y, z, slice, level}, site));
  }
  MRT_METHOD void store(Color value, uint x, uint y, uint z, uint slice, uint level, Site site) const {
    Texel texel;
    for (uint i = 0; i < 4; i++) {
      if constexpr (is_texel_float<T>) texel.f[i] = float(value[i]);
      else texel.u[i] = uint(value[i]);
    }
    write_texel(texture, {x, y, z, slice, level}, texel, site);
  }
  MRT_METHOD Color take(metal::sampler sampler, uint dimensions, float x, float y, float z, int dx, int dy, int dz,
                        uint slice, float lod) const {
    return color(sample_texel(texture, sampler, {{x, y, z}, {dx, dy, dz}, dimensions, slice, lod}));
  }
  MRT_METHOD Color four(metal::sampler sampler, uint dimensions, float x, float y, float z, int dx, int dy, uint slice,
                        metal::component component) const {
    return color(gather_texels(texture, sampler, {{x, y, z}, {dx, dy, 0}, dimensions, slice, 0}, uint(component)));
  }
  template <typename Operation>
  MRT_METHOD Color update(TexelPosition at, T operand, uint write, Operation operation, Site site) const {
    const auto next = [&](uint seen) { return uint(operation(T(seen), operand)); };
    return Color(T(update_texel(texture, at, write, site, next)));
  }
  MRT_METHOD bool compare(TexelPosition at, Color *expected, T desired, Site site) const {
    const T wanted = expected->x;
    const T seen = T(update_texel(texture, at, 2, site, [&](uint old) { return T(old) == wanted ? desired : old; }));
    *expected = Color(seen);
    return seen == wanted;
  }
#endif
};

} // namespace mrt

#ifdef MRT_STRICT
#define MRT_SITE_GIVEN
#else
#define MRT_SITE_GIVEN , site
#endif

// read() and write() at a coordinate of type C with components X, Y, Z. AT and SLICE are the array's index, if any.
#define MRT_TEXTURE_ACCESS(C, X, Y, Z, AT, SLICE)                                                                      \
  MRT_METHOD Color read(C at MRT_UNPACK AT, uint lod = 0 MRT_SITE) const {                                             \
    return this->load(X, Y, Z, SLICE, lod MRT_SITE_GIVEN);                                                             \
  }                                                                                                                    \
  MRT_METHOD void write(Color color, C at MRT_UNPACK AT, uint lod = 0 MRT_SITE) const {                                \
    this->store(color, X, Y, Z, SLICE, lod MRT_SITE_GIVEN);                                                            \
  }

// The atomic functions at such a coordinate (from Metal 3.1 on).
#ifdef MRT_STRICT
#define MRT_TEXTURE_UPDATE(NAME, C, X, Y, Z, AT, SLICE, WRITE, ...)                                                    \
  MRT_METHOD Color atomic_##NAME(C at MRT_UNPACK AT, Color) const { return this->update(X, Y, Z, SLICE, WRITE); }
#define MRT_TEXTURE_LOAD(C, X, Y, Z, AT, SLICE)                                                                        \
  MRT_METHOD Color atomic_load(C at MRT_UNPACK AT) const { return this->update(X, Y, Z, SLICE, 0); }
#define MRT_TEXTURE_STORE(C, X, Y, Z, AT, SLICE)                                                                       \
  MRT_METHOD void atomic_store(Color, C at MRT_UNPACK AT) const { this->update(X, Y, Z, SLICE, 1); }
#define MRT_TEXTURE_COMPARE(C, X, Y, Z, AT, SLICE)                                                                     \
  MRT_METHOD bool atomic_compare_exchange_weak(C at MRT_UNPACK AT, MRT_THREAD Color *, Color) const {                  \
    this->update(X, Y, Z, SLICE, 2);                                                                                   \
    return false;                                                                                                      \
  }
#else
#define MRT_TEXTURE_UPDATE(NAME, C, X, Y, Z, AT, SLICE, WRITE, ...)                                                    \
  MRT_METHOD Color atomic_##NAME(C at MRT_UNPACK AT, Color operand MRT_SITE) const {                                   \
    return this->update(                                                                                               \
        mrt::TexelPosition{X, Y, Z, SLICE, 0}, operand.x, WRITE, [](T seen, T value) { return T(__VA_ARGS__); },       \
        site);                                                                                                         \
  }
#define MRT_TEXTURE_LOAD(C, X, Y, Z, AT, SLICE)                                                                        \
  MRT_METHOD Color atomic_load(C at MRT_UNPACK AT MRT_SITE) const {                                                    \
    return this->update(mrt::TexelPosition{X, Y, Z, SLICE, 0}, T(0), 0, [](T seen, T) { return seen; }, site);         \
  }
#define MRT_TEXTURE_STORE(C, X, Y, Z, AT, SLICE)                                                                       \
  MRT_METHOD void atomic_store(Color value, C at MRT_UNPACK AT MRT_SITE) const {                                       \
    this->update(mrt::TexelPosition{X, Y, Z, SLICE, 0}, value.x, 1, [](T, T value) { return value; }, site);           \
  }
#define MRT_TEXTURE_COMPARE(C, X, Y, Z, AT, SLICE)                                                                     \
  MRT_METHOD bool atomic_compare_exchange_weak(C at MRT_UNPACK AT, Color *expected, Color desired MRT_SITE) const {    \
    return this->compare(mrt::TexelPosition{X, Y, Z, SLICE, 0}, expected, desired.x, site);                            \
  }
#endif
// clang-format off
#define MRT_TEXTURE_ATOMICS(C, X, Y, Z, AT, SLICE)                                                                     \
  MRT_TEXTURE_LOAD(C, X, Y, Z, AT, SLICE)                                                                              \
  MRT_TEXTURE_STORE(C, X, Y, Z, AT, SLICE)                                                                             \
  MRT_TEXTURE_COMPARE(C, X, Y, Z, AT, SLICE)                                                                           \
  MRT_TEXTURE_UPDATE(exchange, C, X, Y, Z, AT, SLICE, 2, value)                                                        \
  MRT_TEXTURE_UPDATE(fetch_add, C, X, Y, Z, AT, SLICE, 2, uint(seen) + uint(value))                                    \
  MRT_TEXTURE_UPDATE(fetch_sub, C, X, Y, Z, AT, SLICE, 2, uint(seen) - uint(value))                                    \
  MRT_TEXTURE_UPDATE(fetch_and, C, X, Y, Z, AT, SLICE, 2, uint(seen) & uint(value))                                    \
  MRT_TEXTURE_UPDATE(fetch_or, C, X, Y, Z, AT, SLICE, 2, uint(seen) | uint(value))                                     \
  MRT_TEXTURE_UPDATE(fetch_xor, C, X, Y, Z, AT, SLICE, 2, uint(seen) ^ uint(value))                                    \
  MRT_TEXTURE_UPDATE(fetch_min, C, X, Y, Z, AT, SLICE, 2, seen < value ? seen : value)                                 \
  MRT_TEXTURE_UPDATE(fetch_max, C, X, Y, Z, AT, SLICE, 2, seen > value ? seen : value)
// clang-format on

// sample() with and without a level, with and without an offset.
#define MRT_TEXTURE_SAMPLE(DIMENSIONS, C, X, Y, Z, O, DX, DY, DZ, AT, SLICE)                                           \
  MRT_METHOD Color sample(sampler s, C at MRT_UNPACK AT, O offset = O(0)) const {                                      \
    return this->take(s, DIMENSIONS, X, Y, Z, DX, DY, DZ, SLICE, 0);                                                   \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, C at MRT_UNPACK AT, level lod, O offset = O(0)) const {                           \
    return this->take(s, DIMENSIONS, X, Y, Z, DX, DY, DZ, SLICE, lod.lod);                                             \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, C at MRT_UNPACK AT, bias lod, O offset = O(0)) const {                            \
    return this->take(s, DIMENSIONS, X, Y, Z, DX, DY, DZ, SLICE, lod.lod);                                             \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, C at MRT_UNPACK AT, min_lod_clamp lod, O offset = O(0)) const {                   \
    return this->take(s, DIMENSIONS, X, Y, Z, DX, DY, DZ, SLICE, lod.lod > 0 ? lod.lod : 0);                           \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, C at MRT_UNPACK AT, MRT_GRADIENT_##DIMENSIONS lod, O offset = O(0)) const {       \
    return this->take(s, DIMENSIONS, X, Y, Z, DX, DY, DZ, SLICE, mrt::level_of(lod.dPdx, lod.dPdy, this->extent()));   \
  }
#define MRT_GRADIENT_2 gradient2d
#define MRT_GRADIENT_3 gradient3d

#define MRT_UNPACK(...) __VA_ARGS__
#define MRT_TEXTURE_MEMBERS                                                                                            \
  typedef vec<T, 4> Color;                                                                                             \
  MRT_METHOD uint get_width(uint lod = 0) const { return this->width(lod); }                                           \
  MRT_METHOD uint get_num_mip_levels() const { return this->levels(); }                                                \
  MRT_METHOD void fence() const {                                                                                      \
    static_assert(a == access::read_write, "only a texture of access::read_write has a fence");                        \
  }

namespace metal {

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct texture1d : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  MRT_TEXTURE_ACCESS(uint, at, 0, 0, (), 0)
  MRT_TEXTURE_ACCESS(ushort, at, 0, 0, (), 0)
  MRT_TEXTURE_ATOMICS(uint, at, 0, 0, (), 0)
  MRT_METHOD Color sample(sampler s, float at) const { return this->take(s, 1, at, 0, 0, 0, 0, 0, 0, 0); }
};

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct texture1d_array : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  MRT_TEXTURE_ACCESS(uint, at, 0, 0, (, uint array), array)
  MRT_TEXTURE_ACCESS(ushort, at, 0, 0, (, uint array), array)
  MRT_TEXTURE_ATOMICS(uint, at, 0, 0, (, uint array), array)
  MRT_METHOD Color sample(sampler s, float at, uint array) const {
    return this->take(s, 1, at, 0, 0, 0, 0, 0, array, 0);
  }
  MRT_METHOD uint get_array_size() const { return this->array_size(); }
};

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct texture2d : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  typedef vec<float, 2> Position;
  typedef vec<int, 2> Offset;
  typedef vec<uint, 2> Wide;
  typedef vec<ushort, 2> Narrow;
  MRT_TEXTURE_ACCESS(Wide, at.x, at.y, 0, (), 0)
  MRT_TEXTURE_ACCESS(Narrow, at.x, at.y, 0, (), 0)
  MRT_TEXTURE_ATOMICS(Wide, at.x, at.y, 0, (), 0)
  MRT_METHOD Position extent() const { return Position(this->width(0), this->height(0)); }
  MRT_TEXTURE_SAMPLE(2, Position, at.x, at.y, 0, Offset, offset.x, offset.y, 0, (), 0)
  MRT_METHOD Color gather(sampler s, Position at, Offset offset = Offset(0), component c = component::x) const {
    return this->four(s, 2, at.x, at.y, 0, offset.x, offset.y, 0, c);
  }
  MRT_METHOD uint get_height(uint lod = 0) const { return this->height(lod); }
};

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct texture2d_array : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  typedef vec<float, 2> Position;
  typedef vec<int, 2> Offset;
  typedef vec<uint, 2> Wide;
  typedef vec<ushort, 2> Narrow;
  MRT_TEXTURE_ACCESS(Wide, at.x, at.y, 0, (, uint array), array)
  MRT_TEXTURE_ACCESS(Narrow, at.x, at.y, 0, (, uint array), array)
  MRT_TEXTURE_ATOMICS(Wide, at.x, at.y, 0, (, uint array), array)
  MRT_METHOD Position extent() const { return Position(this->width(0), this->height(0)); }
  MRT_TEXTURE_SAMPLE(2, Position, at.x, at.y, 0, Offset, offset.x, offset.y, 0, (, uint array), array)
  MRT_METHOD Color gather(sampler s, Position at, uint array, Offset offset = Offset(0),
                          component c = component::x) const {
    return this->four(s, 2, at.x, at.y, 0, offset.x, offset.y, array, c);
  }
  MRT_METHOD uint get_height(uint lod = 0) const { return this->height(lod); }
  MRT_METHOD uint get_array_size() const { return this->array_size(); }
};

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct texture3d : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  typedef vec<float, 3> Position;
  typedef vec<int, 3> Offset;
  typedef vec<uint, 3> Wide;
  typedef vec<ushort, 3> Narrow;
  MRT_TEXTURE_ACCESS(Wide, at.x, at.y, at.z, (), 0)
  MRT_TEXTURE_ACCESS(Narrow, at.x, at.y, at.z, (), 0)
  MRT_TEXTURE_ATOMICS(Wide, at.x, at.y, at.z, (), 0)
  MRT_TEXTURE_SAMPLE(3, Position, at.x, at.y, at.z, Offset, offset.x, offset.y, offset.z, (), 0)
  MRT_METHOD Position extent() const { return Position(this->width(0), this->height(0), this->depth(0)); }
  MRT_METHOD uint get_height(uint lod = 0) const { return this->height(lod); }
  MRT_METHOD uint get_depth(uint lod = 0) const { return this->depth(lod); }
};

// sample() in a direction. AT and SLICE are as above.
#define MRT_CUBE_SAMPLE(AT, SLICE)                                                                                     \
  MRT_METHOD Color sample(sampler s, vec<float, 3> at MRT_UNPACK AT) const {                                           \
    return this->take(s, 6, at.x, at.y, at.z, 0, 0, 0, SLICE, 0);                                                      \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, vec<float, 3> at MRT_UNPACK AT, level lod) const {                                \
    return this->take(s, 6, at.x, at.y, at.z, 0, 0, 0, SLICE, lod.lod);                                                \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, vec<float, 3> at MRT_UNPACK AT, bias lod) const {                                 \
    return this->take(s, 6, at.x, at.y, at.z, 0, 0, 0, SLICE, lod.lod);                                                \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, vec<float, 3> at MRT_UNPACK AT, min_lod_clamp lod) const {                        \
    return this->take(s, 6, at.x, at.y, at.z, 0, 0, 0, SLICE, lod.lod > 0 ? lod.lod : 0);                              \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, vec<float, 3> at MRT_UNPACK AT, gradientcube lod) const {                         \
    const vec<float, 3> half_width(0.5f * float(this->width(0)));                                                      \
    return this->take(s, 6, at.x, at.y, at.z, 0, 0, 0, SLICE, mrt::level_of(lod.dPdx, lod.dPdy, half_width));          \
  }                                                                                                                    \
  MRT_METHOD Color gather(sampler s, vec<float, 3> at MRT_UNPACK AT, component c = component::x) const {               \
    return this->four(s, 6, at.x, at.y, at.z, 0, 0, SLICE, c);                                                         \
  }

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct texturecube : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  typedef vec<uint, 2> Wide;
  typedef vec<ushort, 2> Narrow;
  MRT_TEXTURE_ACCESS(Wide, at.x, at.y, 0, (, uint face), face)
  MRT_TEXTURE_ACCESS(Narrow, at.x, at.y, 0, (, uint face), face)
  MRT_TEXTURE_ATOMICS(Wide, at.x, at.y, 0, (, uint face), face)
  MRT_CUBE_SAMPLE((), 0)
  MRT_METHOD uint get_height(uint lod = 0) const { return this->height(lod); }
};

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct texturecube_array : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  typedef vec<uint, 2> Wide;
  typedef vec<ushort, 2> Narrow;
  MRT_TEXTURE_ACCESS(Wide, at.x, at.y, 0, (, uint face, uint array), 6 * array + face)
  MRT_TEXTURE_ACCESS(Narrow, at.x, at.y, 0, (, uint face, uint array), 6 * array + face)
  MRT_TEXTURE_ATOMICS(Wide, at.x, at.y, 0, (, uint face, uint array), 6 * array + face)
  MRT_CUBE_SAMPLE((, uint array), array)
  MRT_METHOD uint get_height(uint lod = 0) const { return this->height(lod); }
  MRT_METHOD uint get_array_size() const { return this->array_size() / 6; }
};

template <typename T, access a = access::read, memory_coherence = memory_coherence_threadgroup>
struct texture_buffer : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  MRT_TEXTURE_ACCESS(uint, at, 0, 0, (), 0)
  MRT_TEXTURE_ATOMICS(uint, at, 0, 0, (), 0)
};

#ifdef MRT_STRICT
template <typename Texture> MRT_FUNC bool is_null_texture(Texture) { return false; }
#else
template <typename Texture> MRT_FUNC bool is_null_texture(Texture texture) { return !texture.texture; }
#endif

} // namespace metal

#include "texture_depth.h"

#undef MRT_TEXTURE_MEMBERS
#undef MRT_TEXTURE_ATOMICS
#undef MRT_TEXTURE_UPDATE
#undef MRT_TEXTURE_LOAD
#undef MRT_TEXTURE_STORE
#undef MRT_TEXTURE_COMPARE
#undef MRT_CUBE_SAMPLE
#undef MRT_GRADIENT_2
#undef MRT_GRADIENT_3
#undef MRT_TEXTURE_SAMPLE
#undef MRT_TEXTURE_ACCESS
#undef MRT_SITE_GIVEN
#undef MRT_UNPACK

#endif
