// The functions "gridSample" and "gridSampleGradient".
#include "grid.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <limits>

using namespace orchard;

namespace {

using namespace tuning::pooling;

ORCHARD_EXPORT_NAMES(GridMode)
ORCHARD_EXPORT_NAMES(GridBorder)

// Places of a task that samples interleaved channels, which takes about 20 µs, and numbers of images that are
// interleaved at a time.
constexpr int64_t grid_chunk = 1 << 11, grid_numbers = 1 << 20;

// Positions in a plane are of the type of `Lane` (grid_taps.h).
constexpr int64_t most_pixels = std::numeric_limits<int32_t>::max();

template <class T> struct Problem {
  static constexpr int kernel = sizeof(T) == 8 ? 0 : 1;
  GridSampling sampling;
  int64_t batch, pixels, image, results; // image, results: elements of an image, and of its results

  template <class Block>
  explicit Problem(const Block &block)
      : sampling{block.mode,   block.border, block.aligns_corners, block.channels,
                 block.height, block.width,  block.places},
        batch(block.batch) {
    const auto &[mode, border, aligns_corners, channels, height, width, places] = sampling;
    if (batch < 0 || channels < 0 || places < 0 || height < 1 || width < 1)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected images with elements");
    pixels = scratch_product({height, width}), image = scratch_product({channels, pixels});
    results = scratch_product({channels, places});
    if (sizeof(T) == 4 && pixels > most_pixels) fail(ORCHARD_CPU_UNSUPPORTED, "expected at most 2^31 - 1 pixels");
  }

  Extent images() const { return Extent(pixels).along(sampling.channels, pixels).along(batch, image); }
  Extent grids() const {
    return Extent(2).along(sampling.places, 2).along(batch, scratch_product({2, sampling.places}));
  }
  Extent outputs() const {
    return Extent(sampling.places).along(sampling.channels, sampling.places).along(batch, results);
  }
};

template <class T> struct Operands3 {
  const T *x, *grid;
  T *out;
};

// Samples channels from `first` on, one after the other.
template <class T> void sample_singly(const Problem<T> &problem, int64_t first, const Operands3<T> &at) {
  const auto compute = orchard::grid_samplers().places[Problem<T>::kernel];
  GridSampling sampling = problem.sampling;
  sampling.channels -= first;
  const int64_t all = sampling.places, steps = sampling.taps() * sampling.taps() * (4 + sampling.channels);
  const int64_t grain = std::max<int64_t>(1, grid_steps / steps);
  parallel_for(problem.batch * all, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t image = begin / all, place = begin % all, count = std::min(end - begin, all - place);
      compute(sampling, at.x + image * problem.image + first * problem.pixels, at.grid + 2 * begin,
              at.out + image * problem.results + first * all + place, count);
      begin += count;
    }
  });
}

// Samples the first `blocks` blocks of channels of each image. Some images at a time are interleaved, so that they stay
// in the caches.
template <class T> void sample_blocks(const Problem<T> &problem, int64_t blocks, const Operands3<T> &at) {
  const GridBlocks &kernels = orchard::grid_blocks();
  const int64_t channels = problem.sampling.channels, pixels = problem.pixels, places = problem.sampling.places;
  const int64_t together = kernels.channels, numbers = numbers_of_channels(pixels, together);
  const int64_t most = std::clamp<int64_t>(grid_numbers / scratch_product({blocks, numbers}), 1, problem.batch);
  const int64_t chunks = (places + grid_chunk - 1) / grid_chunk;
  Scratch<T> planes(scratch_product({most, blocks, numbers}));
  for (int64_t first = 0; first < problem.batch; first += most) {
    const int64_t images = std::min(most, problem.batch - first);
    const auto width = [&](int64_t block) { return std::min(together, channels - block * together); };
    parallel_for(images * blocks, std::max<int64_t>(1, plane_steps / numbers), [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; part++) {
        const int64_t block = part % blocks;
        kernels.interleave[Problem<T>::kernel](at.x + (first + part / blocks) * problem.image +
                                                   block * together * pixels,
                                               pixels, width(block), planes.data() + part * numbers);
      }
    });
    const int64_t grain = std::max<int64_t>(1, grid_chunk / std::max<int64_t>(1, places));
    parallel_for(images * blocks * chunks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        const int64_t part = task / chunks, block = part % blocks, image = first + part / blocks;
        const int64_t place = task % chunks * grid_chunk, count = std::min(grid_chunk, places - place);
        kernels.sample[Problem<T>::kernel](problem.sampling, planes.data() + part * numbers, width(block),
                                           at.grid + 2 * (image * places + place),
                                           at.out + image * problem.results + block * together * places + place, count);
      }
    });
  }
}

template <class T> void sample(const GridSampleBlock &block, const Operands &operands) {
  const Problem<T> problem(block);
  const Operands3<T> at{operands.inputs<T>(0, block.offsets[0], problem.images()),
                        operands.inputs<T>(1, block.offsets[1], problem.grids()),
                        operands.results<T>(2, block.offsets[2], problem.outputs())};
  if (problem.outputs().is_empty()) return;
  const int64_t channels = problem.sampling.channels, together = orchard::grid_blocks().channels;
  const int64_t blocks = (channels + together - least_planes) / together;
  if (blocks > 0) sample_blocks(problem, blocks, at);
  if (blocks * together < channels) sample_singly(problem, blocks * together, at);
}

template <class Use> void with_type(DType dtype, Use &&use) {
  switch (dtype) {
  case DType::float64: return use(double{});
  case DType::float32: return use(float{});
  default: fail(ORCHARD_CPU_UNSUPPORTED, "expected images of float32 or float64");
  }
}

void grid_sample(const GridSampleBlock &block, Operands operands) {
  with_type(block.dtype, [&](auto real) { sample<decltype(real)>(block, operands); });
}

// ---------------------------------------------------------------- gradients

template <class T> void gradients(const GridSampleGradientBlock &block, const Operands &operands) {
  const Problem<T> problem(block);
  const GridSampling &sampling = problem.sampling;
  const GridBlocks &kernels = orchard::grid_blocks();
  const T *x = operands.inputs<T>(0, block.offsets[0], problem.images());
  const T *grid = operands.inputs<T>(1, block.offsets[1], problem.grids());
  const T *gradient = operands.inputs<T>(2, block.offsets[2], problem.outputs());
  T *of_x = block.has_x ? operands.results<T>(3, block.offsets[3], problem.images()) : nullptr;
  T *of_grid = block.has_grid ? operands.results<T>(4, block.offsets[4], problem.grids()) : nullptr;
  const int64_t together = kernels.channels, numbers = numbers_of_channels(problem.pixels, together);
  const int64_t blocks = (sampling.channels + together - 1) / together, places = sampling.places;
  const bool has_slopes = of_grid && sampling.mode != GridMode::nearest;
  const int64_t tasks = problem.batch * blocks;
  Scratch<double> slopes(has_slopes ? scratch_product({tasks, places, 2}) : 0);
  ScratchSlots<T> slots(tasks, scratch_product({(of_x ? 1 : 0) + (has_slopes ? 1 : 0), numbers}));
  if (of_x || has_slopes)
    parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
      slots.with([&](T *scratch) {
        for (int64_t task = begin; task < end; task++) {
          const int64_t image = task / blocks, channel = task % blocks * together;
          const int64_t channels = std::min(together, sampling.channels - channel);
          const int64_t first = image * problem.image + channel * problem.pixels;
          T *planes = has_slopes ? scratch : nullptr;
          if (planes) kernels.interleave[Problem<T>::kernel](x + first, problem.pixels, channels, planes);
          kernels.gradient[Problem<T>::kernel](
              sampling, {planes, grid + 2 * image * places, gradient + image * problem.results + channel * places,
                         channels, of_x ? scratch + (planes ? numbers : 0) : nullptr, of_x ? of_x + first : nullptr,
                         planes ? slopes.data() + 2 * task * places : nullptr});
        }
      });
    });
  if (!of_grid || problem.grids().is_empty()) return;
  if (!has_slopes || blocks == 0) return void(std::fill_n(of_grid, 2 * problem.batch * places, T(0)));
  parallel_for(problem.batch, std::max<int64_t>(1, grid_chunk / places), [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; image++)
      kernels.grid[Problem<T>::kernel](sampling, grid + 2 * image * places, slopes.data() + 2 * image * blocks * places,
                                       blocks, 2 * places, of_grid + 2 * image * places, places);
  });
}

void grid_sample_gradient(const GridSampleGradientBlock &block, Operands operands) {
  with_type(block.dtype, [&](auto real) { gradients<decltype(real)>(block, operands); });
}

ORCHARD_FUNCTION("gridSample", grid_sample, GridSampleBlock, 3)
ORCHARD_FUNCTION("gridSampleGradient", grid_sample_gradient, GridSampleGradientBlock, 5)

} // namespace
