// The function "finish".
#include "finish.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::convolution::finish_elements;

void finish(const FinishBlock &block, Operands operands) {
  const int64_t planes = block.planes, channels = block.channels, columns = block.columns;
  if (channels < 1) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected at least 1 channel");
  Extent whole(columns);
  whole.along(planes, columns);
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const T *bias = block.has_bias ? operands.inputs<T>(0, block.offsets[0], Extent(channels)) : nullptr;
    const T *added = block.has_added ? operands.inputs<T>(1, block.offsets[1], whole) : nullptr;
    T *y = operands.results<T>(2, block.offsets[2], whole);
    if (whole.is_empty()) return;
    const FinishActivation activation = block.activation;
    auto *row = finish_kernels().of<T>().rows[static_cast<int>(activation)];
    const Finish<T> values{T(block.alpha), T(block.beta), T(block.scale), T(block.shift)};
    const int64_t piece = std::min(columns, finish_elements), pieces = (columns + piece - 1) / piece;
    parallel_for(planes * pieces, std::max<int64_t>(1, finish_elements / piece), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at++) {
        const int64_t plane = at / pieces, first = at % pieces * piece, place = plane * columns + first;
        row(values, bias ? bias[plane % channels] : T(0), added ? added + place : nullptr, y + place,
            std::min(piece, columns - first));
      }
    });
  });
}

ORCHARD_FUNCTION("finish", finish, FinishBlock, 3)
ORCHARD_EXPORT_NAMES(FinishActivation)

} // namespace
