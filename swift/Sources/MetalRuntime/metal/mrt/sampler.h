// Samplers (MSL 2.10): settings in any order, packed into one word.
#ifndef MRT_SAMPLER_H
#define MRT_SAMPLER_H

#include "../texture_abi.h"
#include "types.h"

namespace metal {

enum class coord { normalized = 0, pixel = 1 };
#define MRT_ADDRESS_MODES(NAME)                                                                                        \
  enum class NAME {                                                                                                    \
    clamp_to_edge = MRT_CLAMP_TO_EDGE,                                                                                 \
    mirror_clamp_to_edge = MRT_MIRROR_CLAMP_TO_EDGE,                                                                   \
    repeat = MRT_REPEAT,                                                                                               \
    mirrored_repeat = MRT_MIRRORED_REPEAT,                                                                             \
    clamp_to_zero = MRT_CLAMP_TO_ZERO,                                                                                 \
    clamp_to_border = MRT_CLAMP_TO_BORDER                                                                              \
  };
MRT_ADDRESS_MODES(address)
MRT_ADDRESS_MODES(s_address)
MRT_ADDRESS_MODES(t_address)
MRT_ADDRESS_MODES(r_address)
enum class filter { nearest = 0, linear = 1, bicubic = 2 };
enum class mag_filter { nearest = 0, linear = 1, bicubic = 2 };
enum class min_filter { nearest = 0, linear = 1, bicubic = 2 };
enum class mip_filter { none = 0, nearest = 1, linear = 2 };
enum class border_color { transparent_black = 0, opaque_black = 1, opaque_white = 2 };
enum class compare_func { never, less, less_equal, greater, greater_equal, equal, not_equal, always, none };

struct max_anisotropy {
  int value;
  constexpr MRT_METHOD explicit max_anisotropy(int value) : value(value) {}
};
struct lod_clamp {
  float low, high;
  constexpr MRT_METHOD lod_clamp(float low, float high) : low(low), high(high) {}
};

// A sampler that is a kernel's parameter cannot be changed; a copy can. It has 8 bytes, as in an argument buffer, where
// the host writes the address of an MrtSampler (`gpuResourceID`). Otherwise the highest bit is set: bits 0–21 are the
// settings, and bits 22–41 and 42–61 the least and the greatest level of detail. Those are floats of 12 bits after the
// point, without a sign; a GPU's have 8 or fewer (MSL 2.10).
struct sampler {
  ulong word = from_program | ulong(short_float(1000)) << 42;

  constexpr MRT_METHOD sampler() {}
  template <typename First, typename... Others>
  constexpr MRT_METHOD sampler(First first, Others... others) : sampler(others...) {
    set(first);
  }
  constexpr MRT_METHOD sampler(const sampler &other) = default;
  constexpr MRT_METHOD sampler &operator=(const sampler &other) = default;

  static constexpr MRT_CONSTANT ulong from_program = 1ul << 63;

private:
  static constexpr MRT_METHOD uint short_float(float value) {
    return value > 0 ? (__builtin_bit_cast(uint, value) + 0x400) >> 11 : 0;
  }
  constexpr MRT_METHOD void set(uint position, uint bits, uint value) {
    word = (word & ~(((1ul << bits) - 1) << position)) | ulong(value) << position;
  }
  constexpr MRT_METHOD void set(coord value) { set(0, 1, uint(value)); }
  constexpr MRT_METHOD void set(address value) { set(1, 9, uint(value) * 73); }
  constexpr MRT_METHOD void set(s_address value) { set(1, 3, uint(value)); }
  constexpr MRT_METHOD void set(t_address value) { set(4, 3, uint(value)); }
  constexpr MRT_METHOD void set(r_address value) { set(7, 3, uint(value)); }
  constexpr MRT_METHOD void set(filter value) { set(mag_filter(value)), set(min_filter(value)); }
  // A separate bit says that the filter is bicubic; where this is not supported, it is linear.
  constexpr MRT_METHOD void set(mag_filter value) {
    set(10, 1, value != mag_filter::nearest), set(20, 1, value == mag_filter::bicubic);
  }
  constexpr MRT_METHOD void set(min_filter value) {
    set(11, 1, value != min_filter::nearest), set(21, 1, value == min_filter::bicubic);
  }
  constexpr MRT_METHOD void set(mip_filter value) { set(12, 2, uint(value)); }
  constexpr MRT_METHOD void set(border_color value) { set(14, 2, uint(value)); }
  constexpr MRT_METHOD void set(compare_func value) { set(16, 4, uint(value)); }
  constexpr MRT_METHOD void set(max_anisotropy) {}
  constexpr MRT_METHOD void set(lod_clamp value) {
    set(22, 20, short_float(value.low));
    set(42, 20, short_float(value.high));
  }
};

} // namespace metal

#ifndef MRT_STRICT
namespace mrt {
inline MrtSampler MRT_UNINSTRUMENTED parts_of(metal::sampler sampler) {
  if (!(sampler.word & metal::sampler::from_program)) return *(const MrtSampler *)sampler.word;
  const auto lod = [&](uint shift) { return __builtin_bit_cast(float, uint(sampler.word >> shift & 0xfffff) << 11); };
  return {uint(sampler.word & 0x3fffff), lod(22), lod(42)};
}
} // namespace mrt
#endif
#endif
