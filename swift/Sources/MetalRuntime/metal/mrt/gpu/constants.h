// Function constants on an NVIDIA GPU are compile-time constants: a kernel is compiled for each set of values. The text
// before the program defines mrt::given, the values (compile/library.cpp).
#ifndef MRT_GPU_CONSTANTS_H
#define MRT_GPU_CONSTANTS_H

#include "current.h"

namespace mrt {

struct Given {
  mrt_u32 index;
  mrt_u8 bytes[32];
};
constexpr mrt_u32 end_of_given = ~0u;

template <unsigned size> struct Bytes {
  mrt_u8 at[size];
};

constexpr const Given *find_given(const Given *table, mrt_u32 index) {
  while (table->index != index && table->index != end_of_given) table++;
  return table;
}

template <typename T> constexpr T given_value(const Given *table, mrt_u32 index) {
  Bytes<sizeof(T)> value = {};
  for (unsigned i = 0; i < sizeof(T); i++) value.at[i] = find_given(table, index)->bytes[i];
  return __builtin_bit_cast(T, value);
}

// For the functions that decide whether a parameter exists, which only the host calls.
inline void enter(const MrtLaunch *) {}

} // namespace mrt

#define MRT_FUNCTION_CONSTANT(name, position, ...)                                                                     \
  static constexpr mrt_u32 mrt_index_##name = mrt_u32(position);                                                       \
  static constexpr bool mrt_defined_##name = mrt::find_given(mrt::given, mrt_index_##name)->index == mrt_index_##name; \
  static const __VA_ARGS__ name = mrt::given_value<__VA_ARGS__>(mrt::given, mrt_index_##name);
#define MRT_DERIVED_DECLARATION(name, ...) static constexpr __VA_ARGS__ mrt_derive_##name()
#define MRT_DERIVED_VALUE(name, ...) static const __VA_ARGS__ name = mrt_derive_##name();

#endif
