// The functions "groupNorm" and "groupNormGradient".
#include "groups.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::normalization::group_task_elements;

struct Problem {
  int64_t batch, channels, inner, groups;
  DType dtype, wide;
  Extent all;

  template <class Block>
  explicit Problem(const Block &block)
      : batch(block.batch), channels(block.channels), inner(block.inner), groups(block.groups), dtype(block.dtype),
        wide(dtype == DType::float64 ? DType::float64 : DType::float32) {
    if (dtype > DType::bfloat16)
      fail(ORCHARD_CPU_UNSUPPORTED, std::string("expected floats, got ") + dtype_names[static_cast<int>(dtype)]);
    if (batch < 0 || inner < 0 || groups < 1 || channels % groups != 0)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected channels that groups divide");
    all = Extent(inner).along(channels, inner).along(batch, scratch_product({channels, inner}));
  }

  int64_t in_group() const { return channels / groups; }
  int64_t length() const { return in_group() * inner; }
  // Returns how often a number of a channel is repeated.
  int64_t repeats() const { return inner < short_channel && batch > 1 ? inner : 1; }

  // Calls use(group, its first channel) for all groups of the batch, on all threads.
  template <class Use> void for_each_group(Use &&use) const {
    parallel_for(batch * groups, std::max<int64_t>(1, group_task_elements / length()), [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; group++) use(group, group % groups * in_group());
    });
  }
};

// A vector of channels; if these are short, each element is repeated for all elements of its channel, so that a group
// is normalized in one loop.
class Repeated {
public:
  Repeated(const Problem &problem, const char *vector)
      : memory_(vector && problem.repeats() > 1 ? scratch_product({problem.channels, problem.repeats()}) : 0),
        vector_(vector) {
    if (!vector || problem.repeats() == 1) return;
    if (problem.wide == DType::float64) repeat<double>(problem);
    else repeat<float>(problem);
  }

  const char *at(const Problem &problem, int64_t channel) const {
    return vector_ ? element(vector_, problem.wide, channel * problem.repeats()) : nullptr;
  }

private:
  template <class C> void repeat(const Problem &problem) {
    const C *from = reinterpret_cast<const C *>(vector_);
    C *to = reinterpret_cast<C *>(memory_.data());
    for (int64_t channel = 0; channel < problem.channels; channel++)
      std::fill_n(to + channel * problem.inner, problem.inner, from[channel]);
    vector_ = reinterpret_cast<const char *>(to);
  }

  Scratch<double> memory_;
  const char *vector_;
};

void group_norm(const GroupNormBlock &block, Operands operands) {
  const Problem problem(block);
  const auto &[batch, channels, inner, groups, dtype, wide, all] = problem;
  const Extent vector(channels);
  const char *x = operands.input(0, dtype, block.offsets[0], all);
  const char *weight = block.has_weight ? operands.input(1, wide, block.offsets[1], vector) : nullptr;
  const char *bias = block.has_bias ? operands.input(2, wide, block.offsets[2], vector) : nullptr;
  char *out = operands.result(3, dtype, block.offsets[3], all);
  if (all.is_empty()) return;
  const NormalizeGroup normalize = group_norms().group[static_cast<int>(dtype)];
  const Repeated factors(problem, weight), terms(problem, bias);
  const int64_t repeats = problem.repeats();
  problem.for_each_group([&, &dtype = dtype, &inner = inner](int64_t group, int64_t first) {
    const int64_t at = group * problem.length();
    normalize(element(x, dtype, at), problem.in_group() * repeats, inner / repeats, block.eps,
              factors.at(problem, first), terms.at(problem, first), element(out, dtype, at));
  });
}

// Sums over the batch in order, so results do not depend on the number of threads.
template <class C>
void add_batch(const double *sums, int64_t batch, int64_t channels, C *gradient_weight, C *gradient_bias) {
  for (int64_t channel = 0; channel < channels; channel++) {
    double of_bias = 0, of_weight = 0;
    for (int64_t at = channel; at < batch * channels; at += channels)
      of_bias += sums[2 * at], of_weight += sums[2 * at + 1];
    gradient_weight[channel] = C(of_weight), gradient_bias[channel] = C(of_bias);
  }
}

void group_norm_gradient(const GroupNormGradientBlock &block, Operands operands) {
  const Problem problem(block);
  const auto &[batch, channels, inner, groups, dtype, wide, all] = problem;
  const Extent vector(channels);
  const char *x = operands.input(0, dtype, block.offsets[0], all);
  const char *gradient = operands.input(1, dtype, block.offsets[1], all);
  const char *weight = block.has_weight ? operands.input(2, wide, block.offsets[2], vector) : nullptr;
  char *gradient_x = operands.result(3, dtype, block.offsets[3], all);
  char *gradient_weight = operands.result(4, wide, block.offsets[4], vector);
  char *gradient_bias = operands.result(5, wide, block.offsets[5], vector);
  const bool is_nothing = all.is_empty();
  Scratch<double> sums(is_nothing ? 0 : scratch_product({2, batch, channels}));
  const GroupGradient compute = group_norms().gradient[static_cast<int>(dtype)];
  if (!is_nothing)
    problem.for_each_group([&, &dtype = dtype, &wide = wide, &inner = inner](int64_t group, int64_t first) {
      const int64_t at = group * problem.length();
      compute(element(x, dtype, at), element(gradient, dtype, at), problem.in_group(), inner, block.eps,
              weight ? element(weight, wide, first) : nullptr, element(gradient_x, dtype, at),
              sums.data() + 2 * group * problem.in_group());
    });
  const int64_t summed = is_nothing ? 0 : batch;
  if (wide == DType::float64)
    add_batch(sums.data(), summed, channels, reinterpret_cast<double *>(gradient_weight),
              reinterpret_cast<double *>(gradient_bias));
  else
    add_batch(sums.data(), summed, channels, reinterpret_cast<float *>(gradient_weight),
              reinterpret_cast<float *>(gradient_bias));
}

ORCHARD_FUNCTION("groupNorm", group_norm, GroupNormBlock, 4)
ORCHARD_FUNCTION("groupNormGradient", group_norm_gradient, GroupNormGradientBlock, 6)

} // namespace
