#include "points.h"

float point_length(const Point *point) { return simd_length(point->position) * simd_dot(point->size, point->size); }
