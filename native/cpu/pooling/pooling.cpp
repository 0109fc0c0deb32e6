// The functions "maxPool" and "maxPoolGradient".
#include "pooling.h"

#include "../indexing/scratch_slots.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using namespace tuning::pooling;

int64_t grain_of(int64_t steps) { return std::max<int64_t>(1, window_steps / std::max<int64_t>(1, steps)); }

struct Problem {
  Pooling pooling;
  int64_t planes;
  DType dtype, index_dtype;
  Extent x, results;

  explicit Problem(const PoolingHead &block)
      : planes(block.planes), dtype(block.dtype), index_dtype(block.index_dtype) {
    if (dtype > DType::bfloat16)
      fail(ORCHARD_CPU_UNSUPPORTED,
           std::string("expected a float for a pooling, got ") + dtype_names[static_cast<int>(dtype)]);
    if (index_dtype != DType::int32 && index_dtype != DType::int64)
      fail(ORCHARD_CPU_UNSUPPORTED,
           std::string("expected indices of int32 or int64, got ") + dtype_names[static_cast<int>(index_dtype)]);
    for (int axis = 0; axis < convolution_axes; axis++) {
      pooling.axes[axis] = {block.input[axis],  block.output[axis],   block.kernel_size[axis],
                            block.stride[axis], block.dilation[axis], block.before[axis]};
      if (pooling.axes[axis].kernel == adaptive_kernel)
        pooling.axes[axis].stride = pooling.axes[axis].dilation = 1, pooling.axes[axis].before = 0;
      check_axis(pooling.axes[axis]);
      if (pooling.axes[axis].dilation < 1) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a dilation of at least 1");
    }
    x = without_gaps(pooling.axes[0].input, pooling.axes[1].input, pooling.axes[2].input);
    results = without_gaps(pooling.axes[0].output, pooling.axes[1].output, pooling.axes[2].output);
    if (x.is_empty()) // every window is empty, and no product of sizes overflows
      for (ConvolutionAxis &axis : pooling.axes) axis.input = 0;
    if (results.is_empty())
      for (ConvolutionAxis &axis : pooling.axes) axis.output = 0;
    if (index_dtype == DType::int32 && x.is_possible() && x.count() / std::max<int64_t>(planes, 1) > int64_t(1) << 31)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected places of planes that int32 holds");
  }

  // Returns approximately how many elements of x a line of results reads.
  int64_t steps() const {
    int64_t product = pooling.axes[2].output;
    for (const ConvolutionAxis &axis : pooling.axes) {
      const int64_t kernel =
          axis.kernel == adaptive_kernel ? axis.input / std::max<int64_t>(1, axis.output) : axis.kernel;
      product *= std::clamp<int64_t>(kernel, 1, 64);
    }
    return product;
  }
  // Whether lanes are planes instead of windows of a line: lines are short, or their windows differ.
  bool has_small_planes() const {
    const ConvolutionAxis &wide = pooling.axes[2];
    const bool is_uneven = wide.kernel == adaptive_kernel;
    const bool is_short = is_uneven ? wide.input < long_uneven_window * wide.output
                                    : wide.output < long_line && wide.kernel < long_uneven_window;
    const int64_t least = is_uneven || wide.output < medium_line ? least_planes : max_pool_blocks().planes;
    const int64_t most = planes < many_planes ? small_plane : medium_plane;
    return is_short && planes >= least && pooling.pixels() <= most && pooling.results() <= most;
  }
  int64_t size() const { return dtype_sizes[static_cast<int>(dtype)]; }
  int64_t compute_size() const { return std::max<int64_t>(size(), 4); }
  PoolingIndex index_kind() const { return index_dtype == DType::int32 ? pooling_int32 : pooling_int64; }
  const MaxPoolKernel &kernel() const { return max_pools().kernels[static_cast<int>(dtype)][index_kind()]; }

private:
  Extent without_gaps(int64_t deep, int64_t high, int64_t wide) const {
    Extent all(wide);
    for (int64_t size : {high, deep, planes}) all.along(size, all.count());
    return all;
  }
};

void pool_small_planes(const Problem &problem, const char *x, char *values, char *indices) {
  const int64_t together = max_pool_blocks().planes, planes = problem.planes;
  const int64_t blocks = (planes + together - 1) / together;
  const Pooling &pooling = problem.pooling;
  const int64_t pixels = pooling.pixels(), results = pooling.results();
  const int64_t steps = together * (pixels + results) + problem.steps() * pooling.lines();
  const int64_t grain = std::max<int64_t>(1, plane_steps / steps);
  const int64_t room = together * (pixels + 2 * results + 3 * together) * problem.compute_size();
  const MaxPoolPlanes compute = max_pool_blocks().kernels[static_cast<int>(problem.dtype)][problem.index_kind()];
  ScratchSlots<double> slots((blocks + grain - 1) / grain, room / int64_t(sizeof(double)));
  parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](double *scratch) {
      for (int64_t plane = begin * together; plane < std::min(end * together, planes); plane += together)
        compute(pooling, element(x, problem.dtype, plane * pixels), std::min(together, planes - plane),
                element(values, problem.dtype, plane * results),
                indices ? element(indices, problem.index_dtype, plane * results) : nullptr, scratch);
    });
  });
}

void max_pool(const MaxPoolBlock &block, Operands operands) {
  const Problem problem(block);
  const char *x = operands.input(0, problem.dtype, block.offsets[0], problem.x);
  char *values = operands.result(1, problem.dtype, block.offsets[1], problem.results);
  char *indices =
      block.has_indices ? operands.result(2, problem.index_dtype, block.offsets[2], problem.results) : nullptr;
  if (problem.results.is_empty()) return;
  if (problem.has_small_planes()) return pool_small_planes(problem, x, values, indices);
  const Pooling &pooling = problem.pooling;
  const int64_t lines = pooling.lines(), width = pooling.axes[2].output, pixels = pooling.pixels();
  parallel_for(problem.planes * lines, grain_of(problem.steps()), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; line++)
      problem.kernel().line(pooling, element(x, problem.dtype, line / lines * pixels), line % lines,
                            element(values, problem.dtype, line * width),
                            indices ? element(indices, problem.index_dtype, line * width) : nullptr);
  });
}

void max_pool_gradient(const MaxPoolGradientBlock &block, Operands operands) {
  const Problem problem(block);
  const char *gradient = operands.input(0, problem.dtype, block.offsets[0], problem.results);
  const char *indices = operands.input(1, problem.index_dtype, block.offsets[1], problem.results);
  char *output = operands.result(2, problem.dtype, block.offsets[2], problem.x);
  if (problem.x.is_empty()) return;
  const Pooling &pooling = problem.pooling;
  const int64_t pixels = pooling.pixels(), results = pooling.results(), grain = grain_of(pixels + results);
  const bool is_wide = problem.size() == problem.compute_size();
  ScratchSlots<float> slots((problem.planes + grain - 1) / grain, is_wide ? 0 : pixels);
  parallel_for(problem.planes, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](float *sums) {
      for (int64_t plane = begin; plane < end; plane++) {
        char *to = element(output, problem.dtype, plane * pixels);
        problem.kernel().scatter(pooling, element(gradient, problem.dtype, plane * results),
                                 element(indices, problem.index_dtype, plane * results),
                                 is_wide ? static_cast<void *>(to) : sums, to);
      }
    });
  });
}

ORCHARD_FUNCTION("maxPool", max_pool, MaxPoolBlock, 3)
ORCHARD_FUNCTION("maxPoolGradient", max_pool_gradient, MaxPoolGradientBlock, 3)

} // namespace
