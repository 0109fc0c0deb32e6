// The functions "fractionalMaxPool" and "affineGrid". The formulas are those of the operations that other backends
// compose (src/ops/pooling/fractional_max_pool.ts, src/ops/picture/grid_sample.ts), in the same order.
#include "sampled.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using namespace tuning::pooling;

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

// ---------------------------------------------------------------- affine grids

// Computes the positions of the centers of elements along an axis, or of the corners if these are aligned.
template <class T> void find_centers(int64_t size, bool aligns_corners, T *to) {
  const double share = aligns_corners ? 1 : double(size - 1) / double(size);
  for (int64_t at = 0; at < size; at++) to[at] = size == 1 ? T(0) : T(share * (double(2 * at) / double(size - 1) - 1));
}

template <class T> void affine(const AffineGridBlock &block, const Operands &operands) {
  const int64_t axes = block.axes, batch = block.batch, depth = block.size[0], height = block.size[1];
  const int64_t width = block.size[2];
  if ((axes != 2 && axes != 3) || batch < 0 || depth < 1 || height < 1 || width < 1 || (axes == 2 && depth != 1))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected two or three axes of at least one element");
  const int64_t lines = scratch_product({depth, height}), line = scratch_product({axes, width});
  const int64_t of_matrix = axes * (axes + 1);
  const T *theta = operands.inputs<T>(0, block.offsets[0], Extent(of_matrix).along(batch, of_matrix));
  T *out = operands.results<T>(1, block.offsets[1],
                               Extent(line).along(lines, line).along(batch, scratch_product({lines, line})));
  Scratch<T> centers(scratch_product({1, depth + height + width}));
  T *of_depth = centers.data(), *of_height = of_depth + depth, *of_width = of_height + height;
  find_centers(depth, block.aligns_corners, of_depth);
  find_centers(height, block.aligns_corners, of_height);
  find_centers(width, block.aligns_corners, of_width);
  parallel_for(batch * lines, std::max<int64_t>(1, affine_steps / line), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at++) {
      const T *matrix = theta + at / lines * of_matrix;
      const T z = of_depth[at % lines / height], y = of_height[at % lines % height];
      for (int64_t axis = 0; axis < axes; axis++) {
        const T *row = matrix + axis * (axes + 1);
        T *to = out + at * line + axis;
        for (int64_t x = 0; x < width; x++) {
          T sum = of_width[x] * row[0] + y * row[1];
          if (axes == 3) sum += z * row[2];
          to[x * axes] = sum + row[axes];
        }
      }
    }
  });
}

void affine_grid(const AffineGridBlock &block, Operands operands) {
  switch (DType(block.dtype)) {
  case DType::float64: return affine<double>(block, operands);
  case DType::float32: return affine<float>(block, operands);
  default: fail(ORCHARD_CPU_UNSUPPORTED, "expected matrices of float32 or float64");
  }
}

ORCHARD_FUNCTION("affineGrid", affine_grid, AffineGridBlock, 2)
ORCHARD_FUNCTION("fractionalMaxPool", fractional_max_pool, FractionalMaxPoolBlock, 4)

} // namespace
