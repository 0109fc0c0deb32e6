// Sampling of images at given positions.
#pragma once

// The values outside the border: zeros, the nearest element, or mirror images.
#include "../../.build/generated/grid_border.h"

// The interpolation between elements.
#include "../../.build/generated/grid_mode.h"

// x is [batch, channels, height, width], the grid [batch, places, 2] and the result [batch, channels, places], all
// contiguous.
// - dtype: float32 or float64
// - offsets: x, grid, result
#include "../../.build/generated/grid_sample_block.h"

// The gradients of x and of the grid, from that of the result.
// - dtype: float32 or float64
// - has_x, has_grid: which gradients are computed
// - offsets: x, grid, gradient, and the gradients of x and of the grid
#include "../../.build/generated/grid_sample_gradient_block.h"

#include "../block.h"
#include "../dtypes.h"
#include "../isa.h"

namespace orchard {

struct GridSampling {
  GridMode mode;
  GridBorder border;
  bool aligns_corners;
  int64_t channels, height, width, places;

  // Elements along each axis that a place reads.
  int taps() const { return mode == GridMode::nearest ? 1 : mode == GridMode::bilinear ? 2 : 4; }
};

// Samples `count` places of an image. `grid` and `out` start at the first of them; a channel of `out` has
// `sampling.places` elements.
using SamplePlaces = void (*)(const GridSampling &sampling, const void *image, const void *grid, void *out,
                              int64_t count);

// Interleaves up to GridBlocks::channels channels of an image (plane_lanes.h), which `planes` has room for.
using InterleaveChannels = void (*)(const void *image, int64_t pixels, int64_t channels, void *planes);

// The same as SamplePlaces for interleaved channels. `out` starts at the first place of the first channel.
using SampleChannels = void (*)(const GridSampling &sampling, const void *planes, int64_t channels, const void *grid,
                                void *out, int64_t count);

// The gradients of a block of channels from those of its results, which start at `gradient`. `planes` are interleaved
// channels, `sums` their gradients. `slopes` gets, for each place, the products of the gradients with the derivatives
// by column and by row, in elements. `sums` or `slopes` may be null, and `planes` too without slopes.
struct SampleGradients {
  const void *planes, *grid, *gradient;
  int64_t channels;
  void *sums, *of_x;
  double *slopes;
};
using SampleGradient = void (*)(const GridSampling &sampling, const SampleGradients &gradients);

// The gradients of `count` numbers of the grid along both axes: the sums over blocks of `slopes`, which are `stride`
// numbers apart, times the derivatives of the positions.
using GridGradient = void (*)(const GridSampling &sampling, const void *grid, const double *slopes, int64_t blocks,
                              int64_t stride, void *out, int64_t count);

// By dtype: float64, float32
struct GridSamplers {
  SamplePlaces places[2];
};
struct GridBlocks {
  int64_t channels;
  InterleaveChannels interleave[2];
  SampleChannels sample[2];
  SampleGradient gradient[2];
  GridGradient grid[2];
};

// Returns the numbers that an interleaved block of channels needs.
inline int64_t numbers_of_channels(int64_t pixels, int64_t channels) {
  return (pixels + channels - 1) / channels * channels * channels;
}

} // namespace orchard

ORCHARD_ISA_TABLE(GridSamplers, grid_samplers)
ORCHARD_ISA_TABLE(GridBlocks, grid_blocks)
