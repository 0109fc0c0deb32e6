// The operations of three operands, with the formulas of kernels/formulas/ternary.h.
#include "../../.build/generated/ternary.h"
#include "activations.h"
#include "bits.h"

namespace orchard::ORCHARD_ISA {
namespace {
#include "../../../kernels/formulas/ternary.h"
template <Ternary name> struct OfBools;
template <Ternary name> struct Test;
} // namespace
} // namespace orchard::ORCHARD_ISA

#include "formula.h"

namespace orchard::ORCHARD_ISA {
namespace {

TERNARY_FLOATS(ORCHARD_MEMBER, in_floats)
TERNARY_INTEGERS(ORCHARD_MEMBER, in_integers)

// out[i] = condition[i] ? a[i] : b[i], which only moves bits. Any 16-bit type works for float16 and bfloat16.
template <class T> void where(const void *const *inputs, void *result, int64_t count) {
  const Bool *condition = static_cast<const Bool *>(inputs[0]);
  const T *__restrict a = static_cast<const T *>(inputs[1]), *__restrict b = static_cast<const T *>(inputs[2]);
  T *__restrict out = static_cast<T *>(result);
  if (inputs[2] == result) { // in place
    for (int64_t i = 0; i < count; i++) {
      T yes = a[i], no = out[i];
      out[i] = condition[i].byte ? yes : no;
    }
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    T yes = a[i], no = b[i];
    out[i] = condition[i].byte ? yes : no;
  }
}

// A choice (the group of operations whose first operand is a bool).
constexpr ElementwiseOperation choice(const char *name) {
  const ElementwiseRow by_size[] = {nullptr, where<uint8_t>, where<uint16_t>, nullptr,        where<uint32_t>,
                                    nullptr, nullptr,        nullptr,         where<uint64_t>};
  ElementwiseOperation operation{name, false, false, true, {}};
  for (int dtype = 0; dtype < dtype_count; dtype++) operation.rows[dtype] = by_size[dtype_sizes[dtype]];
  return operation;
}

template <Ternary operation> constexpr ElementwiseOperation operation_of() {
  if constexpr (operation == TERNARY_WHERE) return choice(names_of(operation));
  else return elementwise_operation<Formula<operation>, 3>();
}
#define ORCHARD_TERNARY(operation, _) operation_of<operation>(),

} // namespace

static constexpr ElementwiseOperation operations[] = {TERNARY_NAMES(ORCHARD_TERNARY, )};

extern const ElementwiseOperations ternary_operations = {operations, std::size(operations)};

} // namespace orchard::ORCHARD_ISA
