// Quad-group functions (MSL 6.9.3), for four adjacent lanes of a SIMD-group. Only the active lanes take part.
//
// A program must test whether the device supports them (families of the Metal Feature Set Tables):
//
//   functions                                                        required families
//   quad_broadcast, quad_shuffle, _up, _down, _xor                   Apple4, Mac2 ("quad-scoped permute")
//   quad_shuffle_rotate_…, quad_ballot, _all, _any, _is_first, …      Apple6, Mac2
//   quad_sum, _product, _min, _max, _and, _or, _xor, _prefix_…       Apple7, Mac2
//   quad_shuffle_and_fill_up, _and_fill_down                         Apple8, that is M2
#ifndef MRT_QUAD_H
#define MRT_QUAD_H

#include "lane_functions.h"

namespace metal {
MRT_LANE_FUNCTIONS(quad, quad)
MRT_LANE_VOTES(quad, 0xfu)
} // namespace metal

MRT_LANE_FUNCTIONS(__metal_quad, quad)

#endif
