#include "kron.h"

#include "../dtypes.h"
#include "../matmul/some_lanes.h"

namespace orchard::ORCHARD_ISA {
namespace {

// to[l] = factor from[l]
template <class T> void multiply_row(Compute<T> factor, const T *from, T *to, int64_t length) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    int64_t l = 0;
    for (; l + lanes<T> <= length; l += lanes<T>) store_vector<T>(load_vector(from + l) * factor, to + l);
    if (const SomeLanes<T> rest(length - l); l < length) rest.store(rest.load(from + l) * factor, to + l);
  } else {
    for (int64_t l = 0; l < length; l++) to[l] = store<T>(factor * load(from[l]));
  }
}

template <class T> void multiply_rows(const KronOperands &operands, int64_t begin, int64_t end) {
  const int64_t columns = operands.columns, length = operands.other_columns;
  T *to = static_cast<T *>(operands.out) + begin * columns * length;
  for (int64_t row = begin; row < end; row++) {
    const T *a = static_cast<const T *>(operands.a) + row / operands.other_rows * columns;
    const T *b = static_cast<const T *>(operands.b) + row % operands.other_rows * length;
    for (int64_t j = 0; j < columns; j++, to += length) multiply_row<T>(load(a[j]), b, to, length);
  }
}

} // namespace

extern const KronKernels kron_kernels = {
    {multiply_rows<double>, multiply_rows<float>, multiply_rows<Float16>, multiply_rows<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
