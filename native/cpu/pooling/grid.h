// Sampling of images at given positions.
#pragma once

#include "../block.h"
#include "../dtypes.h"
#include "../isa.h"

namespace orchard {

// The values outside the border: zeros, the nearest element, or mirror images.
ORCHARD_NAMES(GridBorder, zeros, border, reflection)

// x is [batch, channels, height, width], the grid [batch, places, 2] and the result [batch, channels, places], all
// contiguous.
struct GridSampleBlock {
  DTypeField dtype; // float32 or float64
  Name<GridBorder> border;
  Flag is_nearest, aligns_corners;
  Whole batch, channels, height, width, places;
  Whole offsets[3]; // x, grid, result
};

struct GridSampling {
  GridBorder border;
  bool is_nearest, aligns_corners;
  int64_t channels, height, width, places;
};

// Samples `count` places of an image. `grid` and `out` start at the first of them; a channel of `out` has
// `sampling.places` elements.
using SamplePlaces = void (*)(const GridSampling &sampling, const void *image, const void *grid, void *out,
                              int64_t count);

struct GridSamplers {
  SamplePlaces places[2]; // by dtype: float64, float32
};

} // namespace orchard

ORCHARD_ISA_TABLE(GridSamplers, grid_samplers)
