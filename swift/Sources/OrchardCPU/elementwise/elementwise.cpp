// The elementwise functions of orchard_cpu.h.
#include "../conversion/conversion.h"
#include "operations.h"

#include <cstring>

using namespace orchard;

namespace {

constexpr const char *unary_names[] = {
#define ORCHARD_NAME(name) #name,
    ORCHARD_UNARY(ORCHARD_NAME)};
constexpr const char *binary_names[] = {ORCHARD_BINARY(ORCHARD_NAME)};
#undef ORCHARD_NAME

int64_t size_of(DType dtype) { return dtype_sizes[static_cast<int>(dtype)]; }

template <int count> ElementwiseRow find_row(const ElementwiseRow (&rows)[count][dtype_count], const char *const *names, int64_t code, DType dtype) {
  if (code < 0 || code >= count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no operation with the code " + std::to_string(code));
  ElementwiseRow row = rows[code][static_cast<int>(dtype)];
  if (!row) fail(ORCHARD_CPU_UNSUPPORTED, std::string(names[code]) + " has no meaning for " + dtype_names[static_cast<int>(dtype)]);
  return row;
}

} // namespace

int32_t orchard_cpu_unary(const double *block, const void *input, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t code = reader.whole();
    DType dtype = reader.dtype();
    ElementwiseRow row = find_row(unary_rows().rows, unary_names, code, dtype);
    const int64_t sizes[] = {size_of(dtype), size_of(dtype)};
    Loop(reader, 2, sizes).run(row, &input, out);
  });
}

int32_t orchard_cpu_binary(const double *block, const void *a, const void *b, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t code = reader.whole();
    DType dtype = reader.dtype();
    ElementwiseRow row = find_row(binary_rows().rows, binary_names, code, dtype);
    const int64_t sizes[] = {size_of(dtype), size_of(dtype), size_of(dtype)};
    const void *inputs[] = {a, b};
    Loop(reader, 3, sizes).run(row, inputs, out);
  });
}

int32_t orchard_cpu_copy(const double *block, const void *source, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    DType from = reader.dtype();
    DType to = reader.dtype();
    const int64_t sizes[] = {size_of(from), size_of(to)};
    Loop(reader, 2, sizes).run(conversions().rows[static_cast<int>(from)][static_cast<int>(to)], &source, out);
  });
}
