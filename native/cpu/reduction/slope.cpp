#include "slope.h"

#include "../parallel.h"

using namespace orchard;

namespace {

constexpr int64_t grain = 1 << 14;

const SlopeKernels &kernels_for(DType dtype) {
  if (dtype > DType::bfloat16) fail(ORCHARD_CPU_UNSUPPORTED, std::string("gradients are floats, not ") + dtype_names[static_cast<int>(dtype)]);
  return slopes().kernels[static_cast<int>(dtype)];
}

} // namespace

int32_t orchard_cpu_slope(const double *block, const void *x, const void *y, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t code = reader.whole();
    if (code < 0 || code >= slope_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no slope with the code " + std::to_string(code));
    double parameter = reader.real();
    DType dtype = reader.dtype();
    const char *a = element(x, dtype, reader.whole()), *b = element(y, dtype, reader.whole());
    char *result = element(out, dtype, reader.whole());
    Nest nest = read_nest(reader, 2);
    const SlopeKernels &kernels = kernels_for(dtype);
    parallel_for(nest.size(), grain, [&](int64_t begin, int64_t end) { kernels.slope(Slope(code), parameter, nest, begin, end, a, b, result); });
  });
}

int32_t orchard_cpu_select_at(const double *block, const void *x, const void *indices, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t size = reader.whole(), inner = reader.whole();
    DType dtype = reader.dtype();
    const char *a = element(x, dtype, reader.whole());
    const int64_t *index = static_cast<const int64_t *>(indices) + reader.whole();
    char *result = element(out, dtype, reader.whole());
    Nest nest = read_nest(reader, 2);
    const SlopeKernels &kernels = kernels_for(dtype);
    parallel_for(nest.size(), grain, [&](int64_t begin, int64_t end) { kernels.select_at(size, inner, nest, begin, end, a, index, result); });
  });
}
