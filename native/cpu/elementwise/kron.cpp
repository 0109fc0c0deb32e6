// The function "kron".
#include "kron.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::elementwise::kron_elements;

// Row i p + k of the result is a[i, 0] b[k, :], a[i, 1] b[k, :], …, where b has p rows.
void kron(const KronBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t other_rows = block.other_rows, other_columns = block.other_columns;
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("expected floats, got ") + dtype_names[static_cast<int>(dtype)]);
  const Extent left = Extent(block.columns).along(block.rows, block.columns);
  // With one row of b, as in an outer product, the elements of a are computed as rows of one element each.
  const int64_t rows = other_rows == 1 ? left.count() : int64_t(block.rows);
  const int64_t columns = other_rows == 1 ? 1 : int64_t(block.columns);
  const Extent right = Extent(other_columns).along(other_rows, other_columns);
  const Extent row = Extent(other_columns).along(columns, other_columns);
  const int64_t width = row.count();
  const Extent all = Extent(row).along(other_rows, width).along(rows, scratch_product({other_rows, width}));
  const char *a = operands.input(0, dtype, block.offsets[0], left);
  const char *b = operands.input(1, dtype, block.offsets[1], right);
  char *out = operands.result(2, dtype, block.offsets[2], all);
  if (all.is_empty()) return;
  const KronRows compute = kron_kernels().rows[static_cast<int>(dtype)];
  const KronOperands given{a, b, out, columns, other_rows, other_columns};
  parallel_for(rows * other_rows, std::max<int64_t>(1, kron_elements / width),
               [&](int64_t begin, int64_t end) { compute(given, begin, end); });
}

ORCHARD_FUNCTION("kron", kron, KronBlock, 3)

} // namespace
