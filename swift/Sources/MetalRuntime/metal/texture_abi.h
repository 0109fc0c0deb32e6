// The part of a bound texture or sampler that a kernel reads. Included by the kernel (mrt/texture.h) and by the
// runtime's interface (include/metal_runtime.h), so it uses no system header.
#ifndef MRT_TEXTURE_ABI_H
#define MRT_TEXTURE_ABI_H

enum { MRT_MAX_TEXTURES = 128, MRT_MAX_SAMPLERS = 16, MRT_MAX_LEVELS = 15 };

// Added to the number of a texture's type if the kernel reads its pixels as depths.
enum { MRT_DEPTH_ARGUMENT = 256 };

// The representation of a component in memory.
enum MrtComponentKind { MRT_UNORM = 0, MRT_SNORM = 1, MRT_UINT = 2, MRT_SINT = 3, MRT_FLOAT = 4 };

// For pixels whose components are not red, green, blue, alpha in this order.
enum MrtFormatFlags { MRT_FORMAT_BGRA = 1, MRT_FORMAT_SRGB = 2, MRT_FORMAT_ALPHA = 4 };

// One level of a texture: its offset and the distances between its pixels, in bytes.
typedef struct MrtLevel {
  __UINT64_TYPE__ offset; // from the address of the texture
  __UINT64_TYPE__ row_bytes, image_bytes;
  __UINT32_TYPE__ width, height, depth;
} MrtLevel;

typedef struct MrtTexture {
  void *address;
  const char *label;           // may be null
  __UINT64_TYPE__ slice_bytes; // between elements of an array
  __UINT32_TYPE__ array_length, level_count, sample_count;
  __UINT32_TYPE__ kind, component_bytes, channels, flags; // MrtComponentKind, 1 2 or 4, 1 2 or 4, MrtFormatFlags
  MrtLevel levels[MRT_MAX_LEVELS];
} MrtTexture;

// The settings of a sampler in one word, as packed by mrt/sampler.h. Bit 0: pixel coordinates; bits 1–3, 4–6 and 7–9:
// address modes of s, t and r; bit 10: linear magnification; bit 11: linear minification; bits 12–13: mip filter (0
// none, 1 nearest, 2 linear); bits 14–15: border color; bits 16–19: comparison (MSL's compare_func).
typedef struct MrtSampler {
  __UINT32_TYPE__ settings;
  float lod_min, lod_max;
} MrtSampler;

// Address modes, with MTLSamplerAddressMode's numbers.
enum MrtAddressMode {
  MRT_CLAMP_TO_EDGE = 0,
  MRT_MIRROR_CLAMP_TO_EDGE = 1,
  MRT_REPEAT = 2,
  MRT_MIRRORED_REPEAT = 3,
  MRT_CLAMP_TO_ZERO = 4,
  MRT_CLAMP_TO_BORDER = 5
};

#endif
