// Asynchronous copies of a SIMD-group between device and threadgroup memory, which programs declare under the names of
// Apple's compiler (rewrite/spellings.cpp): `__asm("air.simdgroup_async_copy_2d.p3i8.p1i8")`. The active lanes divide
// the elements. Waiting is a barrier of the SIMD-group, so a copy without a wait is a race.
#ifndef MRT_ASYNC_COPY_H
#define MRT_ASYNC_COPY_H

#include "simd.h"
#include "synchronization.h"

#ifndef MRT_STRICT
namespace mrt {

// Copies in the largest words that the elements' alignment allows.
template <typename D, typename S>
MRT_FUNC void copy_element(D *destination, const S *source, ulong size, ulong alignment) {
  for (ulong at = 0; at < size;) {
    if (alignment % 4 == 0) *(uint *)((char *)destination + at) = *(const uint *)((const char *)source + at), at += 4;
    else if (alignment % 2 == 0)
      *(ushort *)((char *)destination + at) = *(const ushort *)((const char *)source + at), at += 2;
    else *((uchar *)destination + at) = *((const uchar *)source + at), at++;
  }
}

// This lane's number among the active lanes, and their count.
struct LaneShare {
  uint first, step;
};
MRT_FUNC LaneShare lane_share() {
  const uint active = uint(ulong(metal::simd_active_threads_mask()));
  const uint lane = lane_index();
  return {uint(__builtin_popcount(active & ((1u << lane) - 1))), uint(__builtin_popcount(active))};
}

template <typename D, typename S>
MRT_FUNC void *async_copy_1d(ulong size, ulong alignment, D *destination, const S *source, ulong count) {
  const LaneShare share = lane_share();
  for (ulong at = share.first; at < count; at += share.step)
    copy_element((char *)destination + at * size, (const char *)source + at * size, size, alignment);
  return nullptr;
}

// Copies a tile; elements of the destination beyond the source tile are zero (clamp 0) or the nearest element (clamp
// 1).
template <typename D, typename S, typename V, typename W, typename O>
MRT_FUNC void *async_copy_2d(ulong size, ulong alignment, D *destination, ulong destination_row, ulong,
                             V destination_tile, const S *source, ulong source_row, ulong, W source_tile, O offset,
                             int clamp) {
  const LaneShare share = lane_share();
  for (ulong at = share.first; at < destination_tile.x * destination_tile.y; at += share.step) {
    const ulong x = at % destination_tile.x, y = at / destination_tile.x;
    long from_x = long(x) + offset.x, from_y = long(y) + offset.y;
    char *to = (char *)destination + (y * destination_row + x) * size;
    const bool inside = from_x >= 0 && from_y >= 0 && from_x < long(source_tile.x) && from_y < long(source_tile.y);
    if (!inside && clamp == 0) {
      for (ulong byte = 0; byte < size; byte++) to[byte] = 0;
      continue;
    }
    from_x = from_x < 0 ? 0 : from_x < long(source_tile.x) ? from_x : long(source_tile.x) - 1;
    from_y = from_y < 0 ? 0 : from_y < long(source_tile.y) ? from_y : long(source_tile.y) - 1;
    copy_element(to, (const char *)source + (ulong(from_y) * source_row + ulong(from_x)) * size, size, alignment);
  }
  return nullptr;
}

template <typename E> MRT_FUNC void wait_events(int, E) {
  metal::simdgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup);
}

} // namespace mrt
#endif
#endif
