// The functions "fractionalMaxPool" and "gridSample". The formulas are those of the operations that other backends
// compose (src/ops/pooling/fractional_max_pool.ts, src/ops/picture/grid_sample.ts), in the same order.
#include "sampled.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::pooling::sampled_steps;

ORCHARD_EXPORT_NAMES(GridBorder)

// The first element of window `at`; the last window ends at the end of the axis.
int64_t start_of(int64_t at, float sample, int64_t size, int64_t output, int64_t kernel) {
  if (at == output - 1) return size - kernel;
  const float step = float(double(size - kernel) / double(output - 1));
  const double start = double(std::floor((float(at) + sample) * step) - std::floor(sample * step));
  return start >= 0 && start <= double(size - kernel) ? int64_t(start) : 0; // a sample outside [0, 1) stays in bounds
}

template <class T> void pool(const FractionalMaxPoolBlock &block, const Operands &operands) {
  const int64_t planes = block.planes, height = block.input[0], width = block.input[1];
  const int64_t high = block.output[0], wide = block.output[1], rows = block.kernel[0], columns = block.kernel[1];
  if (planes < 0 || high < 1 || wide < 1 || rows < 1 || columns < 1 || rows > height || columns > width)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected windows inside the planes");
  const Extent from = Extent(width).along(height, width).along(planes, scratch_product({height, width}));
  const Extent to = Extent(wide).along(high, wide).along(planes, scratch_product({high, wide}));
  const T *x = operands.inputs<T>(0, block.offsets[0], from);
  const float *samples = operands.inputs<float>(1, block.offsets[1], Extent(2).along(planes, 2));
  T *values = operands.results<T>(2, block.offsets[2], to);
  int64_t *indices = operands.results<int64_t>(3, block.offsets[3], to);
  const int64_t steps = scratch_product({high, wide, rows, columns});
  parallel_for(planes, std::max<int64_t>(1, sampled_steps / steps), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; plane++) {
      const T *in = x + plane * height * width;
      const float of_rows = samples[2 * plane + 1], of_columns = samples[2 * plane];
      for (int64_t r = 0; r < high; r++) {
        const int64_t top = start_of(r, of_rows, height, high, rows);
        for (int64_t c = 0; c < wide; c++) {
          const int64_t left = start_of(c, of_columns, width, wide, columns);
          int64_t best = top * width + left;
          auto most = load(in[best]);
          for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
              const int64_t at = (top + i) * width + left + j;
              const auto value = load(in[at]);
              if (value > most || (value != value && most == most)) most = value, best = at;
            }
          const int64_t result = (plane * high + r) * wide + c;
          values[result] = in[best];
          indices[result] = best;
        }
      }
    }
  });
}

void fractional_max_pool(const FractionalMaxPoolBlock &block, Operands operands) {
  switch (DType(block.dtype)) {
  case DType::float64: return pool<double>(block, operands);
  case DType::float32: return pool<float>(block, operands);
  case DType::float16: return pool<Float16>(block, operands);
  case DType::bfloat16: return pool<BFloat16>(block, operands);
  default: fail(ORCHARD_CPU_UNSUPPORTED, "expected floats");
  }
}

// ---------------------------------------------------------------- sampling by a grid

template <class T> struct GridAxis {
  int64_t size;
  GridBorder border;
  bool aligns_corners;

  T scaled(T at) const {
    return aligns_corners ? (at + 1) * T(double(size - 1) / 2) : ((at + 1) * T(size) - 1) * T(0.5);
  }

  // Reflects a position at the borders.
  T mirrored(T at) const {
    const T low = aligns_corners ? 0 : T(-0.5), span = T(aligns_corners ? size - 1 : size);
    if (span == 0) return at * 0;
    const T distance = std::abs(at - low), beyond = std::fmod(distance, span);
    const bool is_even = std::fmod(std::floor((distance - beyond) * T(1 / double(span)) + T(0.5)), T(2)) == 0;
    return is_even ? beyond + low : span + low - beyond;
  }

  T bounded(T at) const {
    switch (border) {
    case GridBorder::border: return clamped(at);
    case GridBorder::reflection: return clamped(mirrored(at));
    case GridBorder::zeros:
    case GridBorder::count: break;
    }
    return at;
  }
  T clamped(T at) const { return at != at ? 0 : std::clamp(at, T(0), T(size - 1)); }

  // The element at a position; `size` for none.
  int64_t place(T at) const {
    const bool is_inside = at >= 0 && at <= T(size - 1);
    if (border == GridBorder::zeros && !is_inside) return size;
    return is_inside ? int64_t(at) : at > 0 ? size - 1 : 0;
  }
};

// One or two elements along an axis.
template <class T> struct Taps {
  int64_t places[2];
  T weights[2];

  Taps(const GridAxis<T> &axis, T given, bool is_nearest) {
    const T at = axis.bounded(axis.scaled(given));
    if (is_nearest) {
      places[0] = axis.place(std::nearbyint(at));
      return;
    }
    const T first = std::floor(at), part = at - first;
    places[0] = axis.place(first), places[1] = axis.place(first + 1);
    weights[0] = 1 - part, weights[1] = part;
  }
};

template <class T> void sample(const GridSampleBlock &block, const Operands &operands) {
  const int64_t batch = block.batch, channels = block.channels, places = block.places;
  const GridAxis<T> down{block.height, block.border, block.aligns_corners};
  const GridAxis<T> across{block.width, block.border, block.aligns_corners};
  const bool is_nearest = block.is_nearest;
  if (batch < 0 || channels < 0 || places < 0 || down.size < 1 || across.size < 1)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected images with elements");
  const int64_t pixels = scratch_product({down.size, across.size});
  const T *x = operands.inputs<T>(
      0, block.offsets[0], Extent(pixels).along(channels, pixels).along(batch, scratch_product({channels, pixels})));
  const T *grid =
      operands.inputs<T>(1, block.offsets[1], Extent(2).along(places, 2).along(batch, scratch_product({2, places})));
  T *out = operands.results<T>(
      2, block.offsets[2], Extent(places).along(channels, places).along(batch, scratch_product({channels, places})));
  parallel_for(
      batch * places, std::max<int64_t>(1, sampled_steps / (16 + 4 * channels)), [&](int64_t begin, int64_t end) {
        for (int64_t number = begin; number < end; number++) {
          const int64_t image = number / places, place = number % places;
          const Taps<T> row(down, grid[2 * number + 1], is_nearest), column(across, grid[2 * number], is_nearest);
          const T *in = x + image * channels * pixels;
          T *to = out + image * channels * places + place;
          const auto element_at = [&](const T *plane, int y, int z) {
            const bool is_inside = row.places[y] < down.size && column.places[z] < across.size;
            return is_inside ? plane[row.places[y] * across.size + column.places[z]] : T(0);
          };
          for (int64_t channel = 0; channel < channels; channel++, in += pixels, to += places) {
            if (is_nearest) {
              *to = element_at(in, 0, 0);
              continue;
            }
            T total = element_at(in, 0, 0) * row.weights[0] * column.weights[0];
            total += element_at(in, 0, 1) * row.weights[0] * column.weights[1];
            total += element_at(in, 1, 0) * row.weights[1] * column.weights[0];
            *to = total + element_at(in, 1, 1) * row.weights[1] * column.weights[1];
          }
        }
      });
}

void grid_sample(const GridSampleBlock &block, Operands operands) {
  switch (DType(block.dtype)) {
  case DType::float64: return sample<double>(block, operands);
  case DType::float32: return sample<float>(block, operands);
  default: fail(ORCHARD_CPU_UNSUPPORTED, "expected images of float32 or float64");
  }
}

ORCHARD_FUNCTION("fractionalMaxPool", fractional_max_pool, FractionalMaxPoolBlock, 4)
ORCHARD_FUNCTION("gridSample", grid_sample, GridSampleBlock, 3)

} // namespace
