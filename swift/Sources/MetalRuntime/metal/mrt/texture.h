// Textures of compute kernels (MSL 2.9 and 6.12): 1D, 2D, 3D, arrays of 1D and 2D, and texture buffers.
#ifndef MRT_TEXTURE_H
#define MRT_TEXTURE_H

#include "texel.h"
#include "vec.h"

namespace metal {

enum class access { sample = 0, read = 1, write = 2, read_write = 3 };
enum class component { x = 0, y = 1, z = 2, w = 3 };

// Which level of a texture is sampled. A compute kernel has no derivatives: without these it is the first.
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

} // namespace metal

namespace mrt {

using metal::access;

template <typename V> V no_value(); // of the strict mode, which needs types alone

// What every texture is: a pointer to the description of the one that is bound.
struct TextureBase {
#ifdef MRT_STRICT
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

template <typename T, access a> struct TextureOf : TextureBase {
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
  MRT_METHOD Color four(metal::sampler, float, float, int, int, uint, metal::component) const {
    static_assert(a == access::sample, "only a texture of access::sample can be sampled");
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
  MRT_METHOD Color four(metal::sampler sampler, float x, float y, int dx, int dy, uint slice,
                        metal::component component) const {
    return color(gather_texels(texture, sampler, {{x, y, 0}, {dx, dy, 0}, 2, slice, 0}, uint(component)));
  }
#endif
};

} // namespace mrt

#ifdef MRT_STRICT
#define MRT_SITE_GIVEN
#else
#define MRT_SITE_GIVEN , site
#endif

// read() and write() at a coordinate of type C, whose numbers are X, Y, Z; AT and SLICE: the array's index, if any.
#define MRT_TEXTURE_ACCESS(C, X, Y, Z, AT, SLICE)                                                                      \
  MRT_METHOD Color read(C at AT, uint lod = 0 MRT_SITE) const {                                                        \
    return this->load(X, Y, Z, SLICE, lod MRT_SITE_GIVEN);                                                             \
  }                                                                                                                    \
  MRT_METHOD void write(Color color, C at AT, uint lod = 0 MRT_SITE) const {                                           \
    this->store(color, X, Y, Z, SLICE, lod MRT_SITE_GIVEN);                                                            \
  }

// sample() with and without a level, with and without an offset.
#define MRT_TEXTURE_SAMPLE(DIMENSIONS, C, X, Y, Z, O, DX, DY, DZ, AT, SLICE)                                           \
  MRT_METHOD Color sample(sampler s, C at AT, O offset = O(0)) const {                                                 \
    return this->take(s, DIMENSIONS, X, Y, Z, DX, DY, DZ, SLICE, 0);                                                   \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, C at AT, level lod, O offset = O(0)) const {                                      \
    return this->take(s, DIMENSIONS, X, Y, Z, DX, DY, DZ, SLICE, lod.lod);                                             \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, C at AT, bias lod, O offset = O(0)) const {                                       \
    return this->take(s, DIMENSIONS, X, Y, Z, DX, DY, DZ, SLICE, lod.lod);                                             \
  }                                                                                                                    \
  MRT_METHOD Color sample(sampler s, C at AT, min_lod_clamp lod, O offset = O(0)) const {                              \
    return this->take(s, DIMENSIONS, X, Y, Z, DX, DY, DZ, SLICE, lod.lod > 0 ? lod.lod : 0);                           \
  }

#define MRT_COMMA ,
#define MRT_TEXTURE_MEMBERS                                                                                            \
  typedef vec<T, 4> Color;                                                                                             \
  MRT_METHOD uint get_width(uint lod = 0) const { return this->width(lod); }                                           \
  MRT_METHOD uint get_num_mip_levels() const { return this->levels(); }                                                \
  MRT_METHOD void fence() const {}

namespace metal {

template <typename T, access a = access::sample> struct texture1d : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  MRT_TEXTURE_ACCESS(uint, at, 0, 0, , 0)
  MRT_METHOD Color sample(sampler s, float at) const { return this->take(s, 1, at, 0, 0, 0, 0, 0, 0, 0); }
};

template <typename T, access a = access::sample> struct texture1d_array : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  MRT_TEXTURE_ACCESS(uint, at, 0, 0, MRT_COMMA uint array, array)
  MRT_METHOD Color sample(sampler s, float at, uint array) const {
    return this->take(s, 1, at, 0, 0, 0, 0, 0, array, 0);
  }
  MRT_METHOD uint get_array_size() const { return this->array_size(); }
};

template <typename T, access a = access::sample> struct texture2d : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  typedef vec<float, 2> Position;
  typedef vec<int, 2> Offset;
  typedef vec<uint, 2> Wide;
  typedef vec<ushort, 2> Narrow;
  MRT_TEXTURE_ACCESS(Wide, at.x, at.y, 0, , 0)
  MRT_TEXTURE_ACCESS(Narrow, at.x, at.y, 0, , 0)
  MRT_TEXTURE_SAMPLE(2, Position, at.x, at.y, 0, Offset, offset.x, offset.y, 0, , 0)
  MRT_METHOD Color gather(sampler s, Position at, Offset offset = Offset(0), component c = component::x) const {
    return this->four(s, at.x, at.y, offset.x, offset.y, 0, c);
  }
  MRT_METHOD uint get_height(uint lod = 0) const { return this->height(lod); }
};

template <typename T, access a = access::sample> struct texture2d_array : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  typedef vec<float, 2> Position;
  typedef vec<int, 2> Offset;
  typedef vec<uint, 2> Wide;
  typedef vec<ushort, 2> Narrow;
  MRT_TEXTURE_ACCESS(Wide, at.x, at.y, 0, MRT_COMMA uint array, array)
  MRT_TEXTURE_ACCESS(Narrow, at.x, at.y, 0, MRT_COMMA uint array, array)
  MRT_TEXTURE_SAMPLE(2, Position, at.x, at.y, 0, Offset, offset.x, offset.y, 0, MRT_COMMA uint array, array)
  MRT_METHOD Color gather(sampler s, Position at, uint array, Offset offset = Offset(0),
                          component c = component::x) const {
    return this->four(s, at.x, at.y, offset.x, offset.y, array, c);
  }
  MRT_METHOD uint get_height(uint lod = 0) const { return this->height(lod); }
  MRT_METHOD uint get_array_size() const { return this->array_size(); }
};

template <typename T, access a = access::sample> struct texture3d : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  typedef vec<float, 3> Position;
  typedef vec<int, 3> Offset;
  typedef vec<uint, 3> Wide;
  typedef vec<ushort, 3> Narrow;
  MRT_TEXTURE_ACCESS(Wide, at.x, at.y, at.z, , 0)
  MRT_TEXTURE_ACCESS(Narrow, at.x, at.y, at.z, , 0)
  MRT_TEXTURE_SAMPLE(3, Position, at.x, at.y, at.z, Offset, offset.x, offset.y, offset.z, , 0)
  MRT_METHOD uint get_height(uint lod = 0) const { return this->height(lod); }
  MRT_METHOD uint get_depth(uint lod = 0) const { return this->depth(lod); }
};

template <typename T, access a = access::read> struct texture_buffer : mrt::TextureOf<T, a> {
  MRT_TEXTURE_MEMBERS
  MRT_TEXTURE_ACCESS(uint, at, 0, 0, , 0)
};

#ifdef MRT_STRICT
template <typename Texture> MRT_FUNC bool is_null_texture(Texture) { return false; }
#else
template <typename Texture> MRT_FUNC bool is_null_texture(Texture texture) { return !texture.texture; }
#endif

} // namespace metal

#undef MRT_TEXTURE_MEMBERS
#undef MRT_TEXTURE_SAMPLE
#undef MRT_TEXTURE_ACCESS
#undef MRT_SITE_GIVEN
#undef MRT_COMMA

#endif
