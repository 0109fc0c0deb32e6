// The function "groupNorm".
#include "groups.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::normalization::group_task_elements;

void group_norm(const GroupNormBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("expected floats, got ") + dtype_names[static_cast<int>(dtype)]);
  const int64_t batch = block.batch, channels = block.channels, inner = block.inner, groups = block.groups;
  if (batch < 0 || inner < 0 || groups < 1 || channels % groups != 0)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected channels that groups divide");
  const Extent all = Extent(inner).along(channels, inner).along(batch, scratch_product({channels, inner}));
  const DType wide = dtype == DType::float64 ? DType::float64 : DType::float32;
  const Extent vector(channels);
  const char *x = operands.input(0, dtype, block.offsets[0], all);
  const char *weight = block.has_weight ? operands.input(1, wide, block.offsets[1], vector) : nullptr;
  const char *bias = block.has_bias ? operands.input(2, wide, block.offsets[2], vector) : nullptr;
  char *out = operands.result(3, dtype, block.offsets[3], all);
  if (all.is_empty()) return;
  const int64_t in_group = channels / groups, length = in_group * inner;
  const NormalizeGroup normalize = group_norms().group[static_cast<int>(dtype)];
  parallel_for(batch * groups, std::max<int64_t>(1, group_task_elements / length), [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; group++) {
      const int64_t first = group % groups * in_group;
      normalize(element(x, dtype, group * length), in_group, inner, block.eps,
                weight ? element(weight, wide, first) : nullptr, bias ? element(bias, wide, first) : nullptr,
                element(out, dtype, group * length));
    }
  });
}

ORCHARD_FUNCTION("groupNorm", group_norm, GroupNormBlock, 4)

} // namespace
