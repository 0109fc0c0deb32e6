// The functions "batchNorm" and "batchNormGradient". Channels are divided among threads.
#include "batch_norm.h"

#include "../parallel.h"
#include "../streamed.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::normalization::batch_task_elements;

struct Problem {
  DType dtype;
  int64_t batch, channels, inner;
  double eps;
  Extent x, vector;

  explicit Problem(const BatchNormHead &block)
      : dtype(block.dtype), batch(block.batch), channels(block.channels), inner(block.inner), eps(block.eps), x(inner),
        vector(channels) {
    if (dtype > DType::bfloat16)
      fail(ORCHARD_CPU_UNSUPPORTED,
           std::string("expected a float for a normalization, got ") + dtype_names[static_cast<int>(dtype)]);
    x.along(channels, x.count());
    x.along(batch, x.count());
  }

  DType compute_dtype() const { return dtype == DType::float64 ? DType::float64 : DType::float32; }
  const BatchNormKernel &kernel() const { return batch_norms().kernels[static_cast<int>(dtype)]; }

  // Calls use(slab, number of its first channel) for slabs that together cover all channels.
  template <class Use> void for_each_slab(Use &&use) const {
    const int64_t together = inner < least_inner ? std::max<int64_t>(1, slab_columns / inner) : 1;
    const int64_t slabs = (channels + together - 1) / together;
    const int64_t grain = std::max<int64_t>(1, batch_task_elements / std::max<int64_t>(1, batch * inner * together));
    parallel_for(slabs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin * together; first < std::min(end * together, channels); first += together)
        use(ChannelSlab{batch, std::min(together, channels - first), inner, channels * inner, eps}, first);
    });
  }
};

// Like `element`, for operands that may be null.
char *at(void *first, DType dtype, int64_t offset) { return first ? element(first, dtype, offset) : nullptr; }
const char *at(const void *first, DType dtype, int64_t offset) {
  return first ? element(first, dtype, offset) : nullptr;
}

void batch_norm(const BatchNormBlock &block, Operands operands) {
  const Problem problem(block);
  const DType wide = problem.compute_dtype();
  const auto vector = [&](int index) { return operands.input(index, wide, block.offsets[index], problem.vector); };
  const auto result = [&](int index) { return operands.result(index, wide, block.offsets[index], problem.vector); };
  const bool is_given = block.is_given;
  const char *x = operands.input(0, problem.dtype, block.offsets[0], problem.x);
  const char *weight = block.has_weight ? vector(1) : nullptr, *bias = block.has_bias ? vector(2) : nullptr;
  // Given statistics are only read, although the pointers are mutable.
  char *mean = is_given ? const_cast<char *>(vector(3)) : result(3);
  char *variance = is_given ? const_cast<char *>(vector(4)) : result(4);
  char *out = operands.result(5, problem.dtype, block.offsets[5], problem.x);
  if (problem.x.is_empty()) return;
  const bool streamed = is_streamed(problem.x.count() * dtype_sizes[static_cast<int>(problem.dtype)]);
  problem.for_each_slab([&](const ChannelSlab &slab, int64_t first) {
    const int64_t start = first * problem.inner;
    problem.kernel().normalize({slab, is_given, streamed, at(x, problem.dtype, start), at(weight, wide, first),
                                at(bias, wide, first), at(mean, wide, first), at(variance, wide, first),
                                at(out, problem.dtype, start)});
  });
}

void batch_norm_gradient(const BatchNormGradientBlock &block, Operands operands) {
  const Problem problem(block);
  const DType wide = problem.compute_dtype();
  const auto vector = [&](int index) { return operands.input(index, wide, block.offsets[index], problem.vector); };
  const auto result = [&](int index) { return operands.result(index, wide, block.offsets[index], problem.vector); };
  const char *x = operands.input(0, problem.dtype, block.offsets[0], problem.x);
  const char *gradient = operands.input(1, problem.dtype, block.offsets[1], problem.x);
  const char *weight = block.has_weight ? vector(2) : nullptr, *mean = vector(3), *variance = vector(4);
  char *grad_x = block.has_grad_x ? operands.result(5, problem.dtype, block.offsets[5], problem.x) : nullptr;
  char *grad_weight = block.has_grad_weight ? result(6) : nullptr,
       *grad_bias = block.has_grad_bias ? result(7) : nullptr;
  if (problem.x.is_empty()) return;
  problem.for_each_slab([&](const ChannelSlab &slab, int64_t first) {
    const int64_t start = first * problem.inner;
    problem.kernel().gradients({slab, at(x, problem.dtype, start), at(gradient, problem.dtype, start),
                                at(weight, wide, first), at(mean, wide, first), at(variance, wide, first),
                                at(grad_x, problem.dtype, start), at(grad_weight, wide, first),
                                at(grad_bias, wide, first)});
  });
}

ORCHARD_FUNCTION("batchNorm", batch_norm, BatchNormBlock, 6)
ORCHARD_FUNCTION("batchNormGradient", batch_norm_gradient, BatchNormGradientBlock, 8)

} // namespace
