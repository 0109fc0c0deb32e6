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

// A sampler that is a kernel's parameter cannot be changed; a copy can.
struct sampler {
  uint settings = 0;
  float lod_min = 0, lod_max = 1000;

  constexpr MRT_METHOD sampler() {}
  template <typename First, typename... Others>
  constexpr MRT_METHOD sampler(First first, Others... others) : sampler(others...) {
    set(first);
  }
  constexpr MRT_METHOD sampler(const sampler &other) = default;
  constexpr MRT_METHOD sampler &operator=(const sampler &other) = default;

private:
  constexpr MRT_METHOD void set(uint position, uint bits, uint value) {
    settings = (settings & ~(((1u << bits) - 1) << position)) | value << position;
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
    lod_min = value.low;
    lod_max = value.high;
  }
};

} // namespace metal
#endif
