// Types that only render functions have as parameters. These functions are left out (rewrite/stages.cpp), but structs,
// type names and helper functions outside them may mention the types.
#ifndef MRT_STAGE_NAMES_H
#define MRT_STAGE_NAMES_H

#include "vec.h"

namespace metal {

enum class topology { point, line, triangle };
namespace interpolation {
struct perspective {};
struct no_perspective {};
} // namespace interpolation

// The control points of a patch (MSL 2.14).
template <typename T> struct patch_control_point {
  T point;
  MRT_METHOD size_t size() const { return 1; }
  MRT_METHOD T operator[](size_t) const { return point; }
};

// An input of a fragment function that the function interpolates (MSL 2.18).
template <typename T, typename P> struct interpolant {
  T value;
  MRT_METHOD T interpolate_at_center() const { return value; }
  MRT_METHOD T interpolate_at_centroid() const { return value; }
  MRT_METHOD T interpolate_at_offset(float2) const { return value; }
  MRT_METHOD T interpolate_at_sample(uint) const { return value; }
};

// The result of a mesh function, and the grid of an object function (MSL 2.19).
template <typename V, typename P, size_t vertices, size_t primitives, topology kind> struct mesh {
  typedef V vertex_type;
  typedef P primitive_type;
  MRT_METHOD void set_vertex(uint, V) const {}
  template <typename Q> MRT_METHOD void set_primitive(uint, Q) const {}
  MRT_METHOD void set_primitive_count(uint) const {}
  MRT_METHOD void set_index(uint, uchar) const {}
  MRT_METHOD void set_indices(uint, uchar2) const {}
  MRT_METHOD void set_indices(uint, uchar4) const {}
};
struct mesh_grid_properties {
  MRT_METHOD void set_threadgroups_per_grid(uint3) const {}
};

} // namespace metal
#endif
