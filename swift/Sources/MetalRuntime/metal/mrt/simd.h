// SIMD-group functions (MSL 6.9.2). A SIMD-group has 32 lanes; only the active lanes take part.
//
// A program must test whether the device supports them (families of the Metal Feature Set Tables):
//
//   functions                                              required families
//   simd_broadcast, simd_shuffle, _up, _down, _xor         Apple6, Mac2 ("SIMD-scoped permute")
//   simd_shuffle_rotate_up, _rotate_down, _broadcast_first Apple6, Mac2
//   simd_ballot, _all, _any, _is_first, _active_threads_mask Apple6, Mac2
//   simd_sum, _product, _min, _max, _and, _or, _xor, _prefix_… Apple7, Mac2 ("SIMD-scoped reduction")
//   simd_shuffle_and_fill_up, _and_fill_down               Apple8, that is M2 ("SIMD shift and fill")
#ifndef MRT_SIMD_H
#define MRT_SIMD_H

#include "lane_functions.h"

namespace metal {
MRT_LANE_FUNCTIONS(simd, simd)
MRT_LANE_VOTES(simd, 0xffffffffu)
} // namespace metal

// The compiler's internal names, which some programs use to support another element type (such as bfloat by its bits).
MRT_LANE_FUNCTIONS(__metal_simd, simd)
// A program that wraps all functions for another element type refers to these for float, but never calls them: they are
// only declared.
float __metal_simd_and(float data), __metal_simd_or(float data), __metal_simd_xor(float data);

template <typename T>
MRT_CALL T __metal_get_thread_index_in_simdgroup(T) MRT_BODY(return T(mrt::lane_index());) template <typename T>
MRT_CALL T __metal_get_simdgroup_size(T) MRT_BODY(return T(mrt::simd_width);)

#endif
