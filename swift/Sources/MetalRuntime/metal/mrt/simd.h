// SIMD-group functions (MSL 6.9.2).
#ifndef MRT_SIMD_H
#define MRT_SIMD_H

#include "current.h"
#include "types.h"

namespace mrt {

template <typename T>
MRT_UNINSTRUMENTED void resolve_sum(MrtExchange *exchange) {
  T sum = *static_cast<T *>(exchange->input[exchange->order[0]]);
  for (mrt_u32 i = 1; i < exchange->active_count; ++i) sum = T(sum + *static_cast<T *>(exchange->input[exchange->order[i]]));
  for (mrt_u32 i = 0; i < exchange->active_count; ++i) *static_cast<T *>(exchange->output[exchange->order[i]]) = sum;
}

template <typename T>
MRT_UNINSTRUMENTED void resolve_shuffle(MrtExchange *exchange) {
  struct Operand { T data; ushort lane; };
  for (mrt_u32 i = 0; i < exchange->active_count; ++i) {
    const mrt_u32 lane = exchange->order[i];
    const mrt_u32 from = static_cast<Operand *>(exchange->input[lane])->lane;
    T &result = *static_cast<T *>(exchange->output[lane]);
    if (from < 32 && (exchange->active >> from & 1)) {
      result = static_cast<Operand *>(exchange->input[from])->data;
    } else {
      exchange->inactive_lane(exchange, lane, from);
      __builtin_memset(&result, 0xff, sizeof(T));
    }
  }
}

} // namespace mrt

namespace metal {

template <typename T> MRT_COOPERATIVE T simd_sum(T data MRT_SITE) {
  return mrt::exchange<T, mrt::resolve_sum<T>>(data, MRT_COLLECTIVE_SIMD, "simd_sum", site);
}

template <typename T> MRT_COOPERATIVE T simd_shuffle(T data, ushort lane MRT_SITE) {
  struct Operand { T data; ushort lane; };
  return mrt::exchange<T, mrt::resolve_shuffle<T>>(Operand{data, lane}, MRT_COLLECTIVE_SIMD, "simd_shuffle", site);
}

} // namespace metal
#endif
