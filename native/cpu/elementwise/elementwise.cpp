// The elementwise functions of orchard_cpu.h.
#include "../conversion/conversion.h"
#include "operations.h"

using namespace orchard;

namespace {

#define ORCHARD_NAME(name) #name,
constexpr const char *unary_names[] = {ORCHARD_UNARY(ORCHARD_NAME)};
constexpr const char *binary_names[] = {ORCHARD_BINARY(ORCHARD_NAME)};
constexpr const char *ternary_names[] = {ORCHARD_TERNARY(ORCHARD_NAME)};
#undef ORCHARD_NAME

int64_t size_of(DType dtype) { return dtype_sizes[static_cast<int>(dtype)]; }

template <class Table> ElementwiseRow find_row(const Table &table, const char *const *names, int64_t code, DType dtype) {
  constexpr int64_t count = sizeof table.rows / sizeof *table.rows;
  if (code < 0 || code >= count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no operation with the code " + std::to_string(code));
  ElementwiseRow row = table.rows[code][static_cast<int>(dtype)];
  if (!row) fail(ORCHARD_CPU_UNSUPPORTED, std::string(names[code]) + " has no meaning for " + dtype_names[static_cast<int>(dtype)]);
  return row;
}

template <class T> bool has_zero(const void *elements, int64_t count) {
  const T *values = static_cast<const T *>(elements);
  bool found = false;
  for (int64_t i = 0; i < count; i++) found |= values[i] == 0;
  return found;
}

Loop::Test zero_test(int64_t size) {
  return size == 1 ? has_zero<uint8_t> : size == 4 ? has_zero<uint32_t> : has_zero<uint64_t>;
}

bool divides(Binary operation) {
  return operation == Binary::floorDivide || operation == Binary::truncDivide || operation == Binary::remainder || operation == Binary::fmod;
}

} // namespace

int32_t orchard_cpu_unary(const double *block, const void *input, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t code = reader.whole();
    DType dtype = reader.dtype();
    ElementwiseRow row = find_row(unary_rows(), unary_names, code, dtype);
    bool asks = code >= static_cast<int64_t>(Unary::logicalNot);
    const int64_t sizes[] = {size_of(dtype), asks ? 1 : size_of(dtype)};
    Loop(reader, 2, sizes).run(row, &input, out);
  });
}

int32_t orchard_cpu_binary(const double *block, const void *a, const void *b, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t code = reader.whole();
    DType dtype = reader.dtype();
    ElementwiseRow row = find_row(binary_rows(), binary_names, code, dtype);
    bool asks = code >= static_cast<int64_t>(Binary::eq);
    const int64_t size = size_of(dtype), sizes[] = {size, size, asks ? 1 : size};
    const void *inputs[] = {a, b};
    Loop loop(reader, 3, sizes);
    if (divides(static_cast<Binary>(code)) && dtype >= DType::int64 && loop.any(1, b, zero_test(size)))
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "an integer is divided by zero");
    loop.run(row, inputs, out);
  });
}

int32_t orchard_cpu_ternary(const double *block, const void *a, const void *b, const void *c, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t code = reader.whole();
    DType dtype = reader.dtype();
    ElementwiseRow row = find_row(ternary_rows(), ternary_names, code, dtype);
    bool has_condition = code == static_cast<int64_t>(Ternary::where);
    const int64_t size = size_of(dtype), sizes[] = {has_condition ? 1 : size, size, size, size};
    const void *inputs[] = {a, b, c};
    Loop(reader, 4, sizes).run(row, inputs, out);
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
