// Depth textures (MSL 2.9), included at the end of texture.h: one float per pixel, which a sampler can compare with a
// reference.
#ifndef MRT_TEXTURE_DEPTH_H
#define MRT_TEXTURE_DEPTH_H

namespace mrt {

template <typename T, access a> struct DepthOf : TextureOf<T, a> {
  static_assert(__is_same(T, float), "a depth texture has components of float");
  static_assert(a == access::sample || a == access::read, "a depth texture can be sampled or read");

#ifdef MRT_STRICT
  MRT_METHOD T depth(metal::sampler, uint, float, float, float, int, int, uint, float) const {
    static_assert(a == access::sample, "only a texture of access::sample can be sampled");
    return 0;
  }
  MRT_METHOD T test(metal::sampler, uint, float, float, float, int, int, uint, float, float) const {
    static_assert(a == access::sample, "only a texture of access::sample can be sampled");
    return 0;
  }
  MRT_METHOD metal::vec<T, 4> tests(metal::sampler, uint, float, float, float, int, int, uint, float) const {
    static_assert(a == access::sample, "only a texture of access::sample can be sampled");
    return no_value<metal::vec<T, 4>>();
  }
#else
  MRT_METHOD T depth(metal::sampler sampler, uint dimensions, float x, float y, float z, int dx, int dy, uint slice,
                     float lod) const {
    return sample_texel(this->texture, sampler, {{x, y, z}, {dx, dy, 0}, dimensions, slice, lod}).f[0];
  }
  MRT_METHOD T test(metal::sampler sampler, uint dimensions, float x, float y, float z, int dx, int dy, uint slice,
                    float lod, float reference) const {
    return sample_texel(this->texture, sampler, {{x, y, z}, {dx, dy, 0}, dimensions, slice, lod, true, reference}).f[0];
  }
  MRT_METHOD metal::vec<T, 4> tests(metal::sampler sampler, uint dimensions, float x, float y, float z, int dx, int dy,
                                    uint slice, float reference) const {
    return this->color(
        gather_texels(this->texture, sampler, {{x, y, z}, {dx, dy, 0}, dimensions, slice, 0, true, reference}, 0));
  }
#endif
};

} // namespace mrt

// Calls M for each way to specify a texture's level: its parameter, and the level that it gives. Unlike for color
// textures, the level is a single number.
#define MRT_DEPTH_LEVELS(M)                                                                                            \
  M((), 0)                                                                                                             \
  M((, level lod), lod.lod)                                                                                            \
  M((, bias lod), lod.lod)                                                                                             \
  M((, min_lod_clamp lod), lod.lod > 0 ? lod.lod : 0)

#define MRT_DEPTH_READ(C, AT, SLICE)                                                                                   \
  MRT_METHOD T read(C at MRT_UNPACK AT, uint lod = 0 MRT_SITE) const {                                                 \
    return this->load(at.x, at.y, 0, SLICE, lod MRT_SITE_GIVEN).x;                                                     \
  }
#define MRT_DEPTH_2D(AT, SLICE, LEVEL, LOD)                                                                            \
  MRT_METHOD T sample(sampler s, Position at MRT_UNPACK AT MRT_UNPACK LEVEL, Offset offset = Offset(0)) const {        \
    return this->depth(s, 2, at.x, at.y, 0, offset.x, offset.y, SLICE, LOD);                                           \
  }                                                                                                                    \
  MRT_METHOD T sample_compare(sampler s, Position at MRT_UNPACK AT, float reference MRT_UNPACK LEVEL,                  \
                              Offset offset = Offset(0)) const {                                                       \
    return this->test(s, 2, at.x, at.y, 0, offset.x, offset.y, SLICE, LOD, reference);                                 \
  }
#define MRT_DEPTH_CUBE(AT, SLICE, LEVEL, LOD)                                                                          \
  MRT_METHOD T sample(sampler s, Direction at MRT_UNPACK AT MRT_UNPACK LEVEL) const {                                  \
    return this->depth(s, 6, at.x, at.y, at.z, 0, 0, SLICE, LOD);                                                      \
  }                                                                                                                    \
  MRT_METHOD T sample_compare(sampler s, Direction at MRT_UNPACK AT, float reference MRT_UNPACK LEVEL) const {         \
    return this->test(s, 6, at.x, at.y, at.z, 0, 0, SLICE, LOD, reference);                                            \
  }

#define MRT_DEPTH_MEMBERS                                                                                              \
  typedef vec<T, 4> Color;                                                                                             \
  typedef vec<float, 2> Position;                                                                                      \
  typedef vec<float, 3> Direction;                                                                                     \
  typedef vec<int, 2> Offset;                                                                                          \
  typedef vec<uint, 2> Wide;                                                                                           \
  typedef vec<ushort, 2> Narrow;                                                                                       \
  MRT_METHOD uint get_width(uint lod = 0) const { return this->width(lod); }                                           \
  MRT_METHOD uint get_height(uint lod = 0) const { return this->height(lod); }                                         \
  MRT_METHOD uint get_num_mip_levels() const { return this->levels(); }

namespace metal {

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct depth2d : mrt::DepthOf<T, a> {
  MRT_DEPTH_MEMBERS
  MRT_DEPTH_READ(Wide, (), 0)
  MRT_DEPTH_READ(Narrow, (), 0)
#define MRT_EACH(LEVEL, LOD) MRT_DEPTH_2D((), 0, LEVEL, LOD)
  MRT_DEPTH_LEVELS(MRT_EACH)
#undef MRT_EACH
  MRT_METHOD Color gather(sampler s, Position at, Offset offset = Offset(0), component = component::x) const {
    return this->four(s, 2, at.x, at.y, 0, offset.x, offset.y, 0, component::x);
  }
  MRT_METHOD Color gather_compare(sampler s, Position at, float reference, Offset offset = Offset(0)) const {
    return this->tests(s, 2, at.x, at.y, 0, offset.x, offset.y, 0, reference);
  }
};

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct depth2d_array : mrt::DepthOf<T, a> {
  MRT_DEPTH_MEMBERS
  MRT_DEPTH_READ(Wide, (, uint array), array)
  MRT_DEPTH_READ(Narrow, (, uint array), array)
#define MRT_EACH(LEVEL, LOD) MRT_DEPTH_2D((, uint array), array, LEVEL, LOD)
  MRT_DEPTH_LEVELS(MRT_EACH)
#undef MRT_EACH
  MRT_METHOD Color gather(sampler s, Position at, uint array, Offset offset = Offset(0),
                          component = component::x) const {
    return this->four(s, 2, at.x, at.y, 0, offset.x, offset.y, array, component::x);
  }
  MRT_METHOD Color gather_compare(sampler s, Position at, uint array, float reference,
                                  Offset offset = Offset(0)) const {
    return this->tests(s, 2, at.x, at.y, 0, offset.x, offset.y, array, reference);
  }
  MRT_METHOD uint get_array_size() const { return this->array_size(); }
};

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct depthcube : mrt::DepthOf<T, a> {
  MRT_DEPTH_MEMBERS
  MRT_DEPTH_READ(Wide, (, uint face), face)
  MRT_DEPTH_READ(Narrow, (, uint face), face)
#define MRT_EACH(LEVEL, LOD) MRT_DEPTH_CUBE((), 0, LEVEL, LOD)
  MRT_DEPTH_LEVELS(MRT_EACH)
#undef MRT_EACH
  MRT_METHOD Color gather(sampler s, Direction at, component = component::x) const {
    return this->four(s, 6, at.x, at.y, at.z, 0, 0, 0, component::x);
  }
  MRT_METHOD Color gather_compare(sampler s, Direction at, float reference) const {
    return this->tests(s, 6, at.x, at.y, at.z, 0, 0, 0, reference);
  }
};

template <typename T, access a = access::sample, memory_coherence = memory_coherence_threadgroup>
struct depthcube_array : mrt::DepthOf<T, a> {
  MRT_DEPTH_MEMBERS
  MRT_DEPTH_READ(Wide, (, uint face, uint array), 6 * array + face)
  MRT_DEPTH_READ(Narrow, (, uint face, uint array), 6 * array + face)
#define MRT_EACH(LEVEL, LOD) MRT_DEPTH_CUBE((, uint array), array, LEVEL, LOD)
  MRT_DEPTH_LEVELS(MRT_EACH)
#undef MRT_EACH
  MRT_METHOD Color gather(sampler s, Direction at, uint array, component = component::x) const {
    return this->four(s, 6, at.x, at.y, at.z, 0, 0, array, component::x);
  }
  MRT_METHOD Color gather_compare(sampler s, Direction at, uint array, float reference) const {
    return this->tests(s, 6, at.x, at.y, at.z, 0, 0, array, reference);
  }
  MRT_METHOD uint get_array_size() const { return this->array_size() / 6; }
};

} // namespace metal

#undef MRT_DEPTH_MEMBERS
#undef MRT_DEPTH_CUBE
#undef MRT_DEPTH_2D
#undef MRT_DEPTH_READ
#undef MRT_DEPTH_LEVELS
#endif
