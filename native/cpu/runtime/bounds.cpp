#include "../nest.h"

#include "text.h"

namespace orchard {
namespace {

std::string reason_of(int64_t bytes, const void *address, int64_t size, int64_t offset, const Extent &extent) {
  if (bytes < 0) return "expected an operand, got none";
  if (!address && bytes > 0) return "expected an address, got null";
  if (!extent.is_possible()) return "expected sizes and strides that memory can have, got others";
  int64_t first, end, needed;
  bool overflows = __builtin_add_overflow(offset, extent.low(), &first);
  overflows |= __builtin_add_overflow(offset, extent.high(), &end) || __builtin_add_overflow(end, int64_t(1), &end) ||
               __builtin_mul_overflow(end, size, &needed);
  if (overflows) return "expected an offset that memory can have, got " + std::to_string(offset);
  if (first < 0) return "expected elements from 0 on, got " + std::to_string(first);
  if (needed > bytes) return "expected at least " + std::to_string(needed) + " bytes, got " + std::to_string(bytes);
  if (reinterpret_cast<uintptr_t>(address) % uintptr_t(size) != 0)
    return "expected an address that is a multiple of " + std::to_string(size) + ", got another";
  return "expected elements that lie apart, got " + std::to_string(extent.count()) + " in " + std::to_string(bytes) +
         " bytes";
}

} // namespace

void refuse_operand(int index, int64_t bytes, const void *address, int64_t size, int64_t offset, const Extent &extent) {
  fail(ORCHARD_CPU_INVALID_ARGUMENT,
       "operand " + std::to_string(index) + ": " + reason_of(bytes, address, size, offset, extent));
}

void refuse_number(double value, const char *expected) {
  fail(ORCHARD_CPU_INVALID_ARGUMENT, std::string("expected ") + expected + ", got " + decimal(value));
}

void refuse_shape(const int64_t *shape, int rank) {
  std::string text;
  for (int axis = 0; axis < rank; axis++) text += (axis == 0 ? "" : ", ") + std::to_string(shape[axis]);
  fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected sizes of at least 0 and at most 2^53 elements, got [" + text + "]");
}

int64_t scratch_product(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  bool overflows = false;
  for (int64_t factor : factors) overflows |= factor < 0 || __builtin_mul_overflow(product, factor, &product);
  if (overflows || product > largest_whole)
    fail(ORCHARD_CPU_MEMORY_LIMIT, "the memory that this call takes for itself is more than any machine has");
  return product;
}

} // namespace orchard
