// A single pixel of a texture in memory: reading, sampling, writing. These functions are not inlined, and each reports
// the bytes that it accesses to the checker, with the caller's line.
#ifndef MRT_TEXEL_H
#define MRT_TEXEL_H

#include "current.h"
#include "pack.h"
#include "sampler.h"

#ifndef MRT_STRICT
namespace mrt {

// Four components: floats, or integers as they are stored.
union Texel {
  float f[4];
  uint u[4];
};

struct TexelPosition {
  uint x, y, z, slice, level;
};

#define MRT_TEXEL [[maybe_unused]] MRT_UNINSTRUMENTED static __attribute__((noinline))
#define MRT_TEXEL_PART [[maybe_unused]] MRT_UNINSTRUMENTED static inline

MRT_TEXEL_PART void touch([[maybe_unused]] const void *pixel, [[maybe_unused]] uint bytes,
                          [[maybe_unused]] mrt_u32 write, [[maybe_unused]] const void *caller) {
#ifdef MRT_CHECKED
  runtime->access(pixel, bytes, write, caller);
#endif
}

// Returns the address of a pixel; null outside the texture, where a read gives 0 and a write has no effect.
MRT_TEXEL_PART uchar *pixel_at(const MrtTexture *texture, TexelPosition at) {
  if (!texture || at.level >= texture->level_count || at.slice >= texture->array_length) return nullptr;
  const MrtLevel &level = texture->levels[at.level];
  if (at.x >= level.width || at.y >= level.height || at.z >= level.depth) return nullptr;
  return (uchar *)texture->address + texture->slice_bytes * at.slice + level.offset + level.image_bytes * at.z +
         level.row_bytes * at.y + mrt_u64(texture->component_bytes) * texture->channels * at.x;
}

template <typename I> MRT_TEXEL_PART I raw(const uchar *memory) {
  I value;
  __builtin_memcpy(&value, memory, sizeof value);
  return value;
}

// MSL 8.7: an unsigned normalized value is divided by its maximum; a signed one is clamped to at least -1.
MRT_TEXEL_PART void load_component(const MrtTexture *texture, const uchar *memory, Texel &texel, uint to) {
  const uint bytes = texture->component_bytes;
  const uint bits = bytes == 1 ? *memory : bytes == 2 ? raw<ushort>(memory) : raw<uint>(memory);
  const int number = bytes == 1 ? int(int8_t(bits)) : bytes == 2 ? int(short(bits)) : int(bits);
  switch (texture->kind) {
  case MRT_UNORM: texel.f[to] = float(bits) / (bytes == 1 ? 255.0f : 65535.0f); break;
  case MRT_SNORM: {
    const float value = float(number) / (bytes == 1 ? 127.0f : 32767.0f);
    texel.f[to] = value < -1 ? -1 : value;
    break;
  }
  case MRT_UINT: texel.u[to] = bits; break;
  case MRT_SINT: texel.u[to] = uint(number); break;
  default: texel.f[to] = bytes == 2 ? float(raw<half>(memory)) : raw<float>(memory);
  }
}

// Rounds to the nearest, ties to even; NaN becomes 0.
MRT_TEXEL_PART int normalised(float value, float low, float largest) {
  if (value != value) return 0;
  return int(__builtin_rintf((value < low ? low : value > 1 ? 1 : value) * largest));
}

MRT_TEXEL_PART void store_component(const MrtTexture *texture, uchar *memory, const Texel &texel, uint from) {
  const uint bytes = texture->component_bytes;
  const float value = texel.f[from];
  uint bits = texel.u[from];
  const int number = int(bits), most = bytes == 1 ? 127 : 32767;
  switch (texture->kind) {
  case MRT_UNORM: bits = uint(normalised(value, 0, bytes == 1 ? 255.0f : 65535.0f)); break;
  case MRT_SNORM: bits = uint(normalised(value, -1, bytes == 1 ? 127.0f : 32767.0f)); break;
  case MRT_UINT:
    if (bytes < 4 && bits > (1u << 8 * bytes) - 1) bits = (1u << 8 * bytes) - 1;
    break;
  case MRT_SINT:
    if (bytes < 4) bits = uint(number > most ? most : number < -most - 1 ? -most - 1 : number);
    break;
  default:
    if (bytes == 2) bits = __builtin_bit_cast(ushort, half(value));
  }
  __builtin_memcpy(memory, &bits, bytes); // little-endian
}

// Returns which component of a pixel is stored at a position in memory.
MRT_TEXEL_PART uint component_at(const MrtTexture *texture, uint position) {
  if (texture->flags & MRT_FORMAT_ALPHA) return 3;
  return texture->flags & MRT_FORMAT_BGRA && position < 3 ? 2 - position : position;
}

MRT_TEXEL_PART Texel load(const MrtTexture *texture, const uchar *pixel, const void *caller) {
  const bool integers = texture->kind == MRT_UINT || texture->kind == MRT_SINT;
  Texel texel = {};
  if (integers) texel.u[3] = 1;
  else texel.f[3] = 1;
  touch(pixel, texture->component_bytes * texture->channels, 0, caller);
  for (uint i = 0; i < texture->channels; i++)
    load_component(texture, pixel + i * texture->component_bytes, texel, component_at(texture, i));
  if (texture->flags & MRT_FORMAT_SRGB)
    for (uint i = 0; i < 3; i++) texel.f[i] = from_srgb(texel.f[i]);
  return texel;
}

MRT_TEXEL_PART void outside([[maybe_unused]] const MrtTexture *texture, [[maybe_unused]] TexelPosition at,
                            [[maybe_unused]] mrt_u32 write, [[maybe_unused]] Site site) {
#ifdef MRT_CHECKED
  const mrt_u32 position[5] = {at.x, at.y, at.z, at.slice, at.level};
  if (texture) runtime->texture_bounds(texture, position, write, site.file, mrt_u32(site.line));
#endif
}

MRT_TEXEL Texel read_texel(const MrtTexture *texture, TexelPosition at, Site site) {
  const uchar *pixel = pixel_at(texture, at);
  if (pixel) return load(texture, pixel, __builtin_return_address(0));
  outside(texture, at, 0, site);
  return {};
}

MRT_TEXEL void write_texel(const MrtTexture *texture, TexelPosition at, Texel texel, Site site) {
  uchar *pixel = pixel_at(texture, at);
  if (!pixel) return outside(texture, at, 1, site);
  if (texture->flags & MRT_FORMAT_SRGB)
    for (uint i = 0; i < 3; i++) texel.f[i] = to_srgb(texel.f[i]);
  touch(pixel, texture->component_bytes * texture->channels, 1, __builtin_return_address(0));
  for (uint i = 0; i < texture->channels; i++)
    store_component(texture, pixel + i * texture->component_bytes, texel, component_at(texture, i));
}

// ---------------------------------------------------------------- sampling (MSL 2.10)

// Returns the index of a pixel along an axis; -1 for the border.
MRT_TEXEL_PART int addressed(int i, int size, uint mode) {
  const int period = 2 * size;
  switch (mode) {
  case MRT_REPEAT: return ((i % size) + size) % size;
  case MRT_MIRRORED_REPEAT: i = ((i % period) + period) % period; return i < size ? i : period - 1 - i;
  case MRT_MIRROR_CLAMP_TO_EDGE: i = i < 0 ? -1 - i : i; [[fallthrough]];
  case MRT_CLAMP_TO_EDGE: return i < 0 ? 0 : i < size ? i : size - 1;
  default: return i < 0 || i >= size ? -1 : i;
  }
}

MRT_TEXEL_PART Texel border(const MrtTexture *texture, uint settings) {
  Texel texel = {};
  const uint colour = settings >> 14 & 3;
  const bool to_zero = ((settings >> 1 & 7) == MRT_CLAMP_TO_ZERO);
  const bool has_alpha = texture->channels == 4 || texture->flags & MRT_FORMAT_ALPHA;
  if (!has_alpha || (!to_zero && colour)) texel.f[3] = 1;
  if (!to_zero && colour == 2) texel.f[0] = texel.f[1] = texel.f[2] = 1;
  return texel;
}

struct SamplePosition {
  float at[3]; // as passed by the program
  int offset[3];
  uint dimensions, slice;
  float lod;
  bool compares = false;
  float reference = 0;
};

// Replaces a pixel of a depth texture by 1 or 0: the result of the sampler's comparison with the reference.
MRT_TEXEL_PART Texel compared(Texel texel, uint settings, const SamplePosition &position) {
  if (!position.compares) return texel;
  const float a = position.reference, b = texel.f[0];
  bool passes = false;
  switch (metal::compare_func(settings >> 16 & 15)) {
  case metal::compare_func::less: passes = a < b; break;
  case metal::compare_func::less_equal: passes = a <= b; break;
  case metal::compare_func::greater: passes = a > b; break;
  case metal::compare_func::greater_equal: passes = a >= b; break;
  case metal::compare_func::equal: passes = a == b; break;
  case metal::compare_func::not_equal: passes = a != b; break;
  case metal::compare_func::always: passes = true; break;
  default: break;
  }
  texel.f[0] = passes;
  return texel;
}

// Two adjacent pixels along an axis, and the weight of the second.
struct Neighbours {
  int first, second;
  float weight;
};

MRT_TEXEL_PART Neighbours neighbours(float at, int offset, int size, uint mode, bool pixels, bool linear) {
  const float u = pixels ? at : at * float(size);
  const float low = __builtin_floorf(linear ? u - 0.5f : u);
  // Values that are not finite, or very large, are clamped to the range of an int.
  const int i = low > 1e9f ? 1000000000 : low > -1e9f ? int(low) : -1000000000;
  return {addressed(i + offset, size, mode), addressed(i + 1 + offset, size, mode), linear ? u - 0.5f - low : 0};
}

// The pixels along an axis that a filter combines, and their weights.
struct Taps {
  int at[4];
  float weight[4];
  uint count;
};

enum class Filter : uint { nearest, linear, cubic };

// Returns the magnification filter if the level of detail is at most 0, else the minification filter.
MRT_TEXEL_PART Filter filter_of(uint settings, const SamplePosition &position) {
  const uint shift = position.lod <= 0 ? 0 : 1;
  return settings >> (20 + shift) & 1 ? Filter::cubic : settings >> (10 + shift) & 1 ? Filter::linear : Filter::nearest;
}

MRT_TEXEL_PART Taps taps(float at, int offset, int size, uint mode, bool pixels, Filter filter) {
  const Neighbours middle = neighbours(at, offset, size, mode, pixels, filter != Filter::nearest);
  const float t = middle.weight;
  if (filter == Filter::nearest) return {{middle.first}, {1}, 1};
  if (filter == Filter::linear) return {{middle.first, middle.second}, {1 - t, t}, 2};
  const Neighbours before = neighbours(at, offset - 1, size, mode, pixels, true),
                   after = neighbours(at, offset + 1, size, mode, pixels, true);
  // The Catmull-Rom cubic through four pixels.
  return {{before.first, middle.first, middle.second, after.second},
          {((1 - 0.5f * t) * t - 0.5f) * t, (1.5f * t - 2.5f) * t * t + 1, ((2 - 1.5f * t) * t + 0.5f) * t,
           (0.5f * t - 0.5f) * t * t},
          4};
}

MRT_TEXEL_PART Texel sample_level(const MrtTexture *texture, uint settings, const SamplePosition &position, uint level,
                                  const void *caller) {
  const MrtLevel &image = texture->levels[level];
  const uint sizes[3] = {image.width, image.height, image.depth};
  const Filter filter = filter_of(settings, position);
  Taps axes[3] = {{{}, {1}, 1}, {{}, {1}, 1}, {{}, {1}, 1}};
  for (uint axis = 0; axis < position.dimensions; axis++)
    axes[axis] = taps(position.at[axis], position.offset[axis], int(sizes[axis]), settings >> (1 + 3 * axis) & 7,
                      settings & 1, filter);
  const uint count = axes[0].count * axes[1].count * axes[2].count;
  Texel sum = {};
  for (uint tap = 0; tap < count; tap++) {
    float weight = 1;
    int at[3];
    for (uint axis = 0, rest = tap; axis < 3; rest /= axes[axis].count, axis++) {
      weight *= axes[axis].weight[rest % axes[axis].count];
      at[axis] = axes[axis].at[rest % axes[axis].count];
    }
    if (weight == 0) continue;
    const bool inside = at[0] >= 0 && at[1] >= 0 && at[2] >= 0;
    const Texel pixel =
        inside
            ? load(texture, pixel_at(texture, {uint(at[0]), uint(at[1]), uint(at[2]), position.slice, level}), caller)
            : border(texture, settings);
    const Texel texel = compared(pixel, settings, position);
    if (filter == Filter::nearest) return texel;
    for (uint i = 0; i < 4; i++) sum.f[i] += weight * texel.f[i];
  }
  return sum;
}

#include "texel_cube.h"

MRT_TEXEL_PART Texel sample_any(const MrtTexture *texture, uint settings, const SamplePosition &position, uint level,
                                const void *caller) {
  return position.dimensions == cube_dimensions ? sample_cube(texture, settings, position, level, caller)
                                                : sample_level(texture, settings, position, level, caller);
}

MRT_TEXEL Texel sample_texel(const MrtTexture *texture, metal::sampler given, SamplePosition position) {
  if (!texture) return {};
  const MrtSampler sampler = parts_of(given);
  const void *caller = __builtin_return_address(0);
  const float last = float(texture->level_count - 1);
  const uint mip = sampler.settings >> 12 & 3;
  float lod = position.lod < sampler.lod_min ? sampler.lod_min : position.lod;
  lod = lod > sampler.lod_max ? sampler.lod_max : lod;
  position.lod = lod;
  lod = mip == 0 || !(lod > 0) ? 0 : lod > last ? last : lod;
  const uint slices = position.dimensions == cube_dimensions ? texture->array_length / 6 : texture->array_length;
  if (position.slice >= slices) position.slice = slices - 1;
  if (mip < 2) return sample_any(texture, sampler.settings, position, uint(lod + 0.5f), caller);
  const uint level = uint(lod);
  const float weight = lod - float(level);
  Texel texel = sample_any(texture, sampler.settings, position, level, caller);
  if (weight == 0) return texel;
  const Texel next = sample_any(texture, sampler.settings, position, level + 1, caller);
  for (uint i = 0; i < 4; i++) texel.f[i] += weight * (next.f[i] - texel.f[i]);
  return texel;
}

// Returns one component of the four pixels that linear filtering would combine, counterclockwise from the lower left
// one.
MRT_TEXEL Texel gather_texels(const MrtTexture *texture, metal::sampler sampler, SamplePosition position,
                              uint component) {
  Texel result = {};
  if (!texture) return result;
  const void *caller = __builtin_return_address(0);
  const uint settings = parts_of(sampler).settings;
  Texel pixels[4];
  if (position.dimensions == cube_dimensions) {
    if (position.slice >= texture->array_length / 6) position.slice = texture->array_length / 6 - 1;
    gather_cube(texture, position, caller, pixels);
  } else {
    const MrtLevel &image = texture->levels[0];
    const Neighbours x =
        neighbours(position.at[0], position.offset[0], int(image.width), settings >> 1 & 7, settings & 1, true);
    const Neighbours y =
        neighbours(position.at[1], position.offset[1], int(image.height), settings >> 4 & 7, settings & 1, true);
    const int at[4][2] = {{x.first, y.second}, {x.second, y.second}, {x.second, y.first}, {x.first, y.first}};
    for (uint i = 0; i < 4; i++) {
      const bool inside = at[i][0] >= 0 && at[i][1] >= 0;
      pixels[i] = inside
                      ? load(texture, pixel_at(texture, {uint(at[i][0]), uint(at[i][1]), 0, position.slice, 0}), caller)
                      : border(texture, settings);
    }
  }
  for (uint i = 0; i < 4; i++) result.u[i] = compared(pixels[i], settings, position).u[component];
  return result;
}

// Does an atomic operation on the first component of a pixel, which has 32 bits (MSL 6.12, from Metal 3.1 on). Returns
// the old value; 0 outside the texture.
template <typename Update>
MRT_TEXEL_PART uint update_texel(const MrtTexture *texture, TexelPosition at, mrt_u32 write, Site site, Update update) {
  uint *pixel = (uint *)pixel_at(texture, at);
  if (!pixel) return outside(texture, at, write != 0, site), 0u;
  uint seen = __atomic_load_n(pixel, __ATOMIC_RELAXED);
#ifndef MRT_GPU
  runtime->atomic(pixel, sizeof seen, write, seen, site.file, mrt_u32(site.line));
#endif
  while (write && !__atomic_compare_exchange_n(pixel, &seen, update(seen), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen;
}

#undef MRT_TEXEL_PART
#undef MRT_TEXEL

} // namespace mrt
#endif
#endif
