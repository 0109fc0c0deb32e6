#include "kron.h"

#include "../dtypes.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> void multiply_rows(const KronOperands &operands, int64_t begin, int64_t end) {
  const int64_t columns = operands.columns, length = operands.other_columns;
  T *to = static_cast<T *>(operands.out) + begin * columns * length;
  for (int64_t row = begin; row < end; row++) {
    const T *a = static_cast<const T *>(operands.a) + row / operands.other_rows * columns;
    const T *b = static_cast<const T *>(operands.b) + row % operands.other_rows * length;
    for (int64_t j = 0; j < columns; j++, to += length) {
      const Compute<T> factor = load(a[j]);
      T *__restrict out = to;
      for (int64_t l = 0; l < length; l++) out[l] = store<T>(factor * load(b[l]));
    }
  }
}

} // namespace

extern const KronKernels kron_kernels = {
    {multiply_rows<double>, multiply_rows<float>, multiply_rows<Float16>, multiply_rows<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
