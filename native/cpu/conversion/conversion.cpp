// The function "convert".
#include "conversion.h"

#include "../functions.h"
#include "../parallel.h"
#include "../pieces.h"
#include "../tuning.h"

using namespace orchard;

namespace {

using tuning::conversion::task_elements;
using tuning::conversion::task_unit;

// out[i] = (dtype of out) x[i] for i < count. To a narrower float: rounds to nearest even; NaN stays NaN. Float to
// integer: truncates; values out of range become the nearer limit, and NaN becomes 0. Integer to integer: wraps around.
// To bool: whether the value is not 0 (true for NaN). Source and result may be the same elements.
void convert(const ConvertBlock &block, Operands operands) {
  const DType from = block.from, to = block.to;
  const int64_t count = block.count;
  const Extent adjacent(count);
  const char *in = operands.input(0, from, block.from_offset, adjacent);
  char *out = operands.result(1, to, block.to_offset, adjacent);
  ConvertRow row = conversions().rows[static_cast<int>(from)][static_cast<int>(to)];
  parallel_for(count, equal_pieces(count, task_elements, task_unit, threads_at_hand()),
               [&](int64_t begin, int64_t end) {
                 const void *inputs[] = {element(in, from, begin)};
                 row(inputs, element(out, to, begin), end - begin);
               });
}

ORCHARD_FUNCTION("convert", convert, ConvertBlock, 2)

} // namespace
