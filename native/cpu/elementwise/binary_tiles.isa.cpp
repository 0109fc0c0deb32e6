// Tile steps of operations of two operands, with the formulas of kernels/formulas/binary.h.
#include "../../.build/generated/binary.h"
#include "activations.h"
#include "bits.h"
#include "gamma.h"
#include "gated.h"
#include "inverse.h"
#include "power.h"
#include "quotients.h"
#include "special.h"
#include "tile_code.h"

namespace orchard::ORCHARD_ISA {
namespace {
#include "../../../kernels/formulas/binary.h"

} // namespace

// Of two NaNs, a sum or product returns the first operand of its instruction. In the loop of a row function, that is b
// of a + b, which GCC loads while it reads a from memory. If b was the accumulator here, it comes first anyway.
#if defined(__AVX__)
#define ORCHARD_ORDERED(operation, instruction)                                                                        \
  template <> Vector accumulated<OfFloats<operation>>(Vector x, Vector second) {                                       \
    __asm__("v" instruction " %1, %0, %0" : "+x"(second) : "x"(x));                                                    \
    return second;                                                                                                     \
  }
#elif defined(__x86_64__)
#define ORCHARD_ORDERED(operation, instruction)                                                                        \
  template <> Vector accumulated<OfFloats<operation>>(Vector x, Vector second) {                                       \
    __asm__(instruction " %1, %0" : "+x"(second) : "x"(x));                                                            \
    return second;                                                                                                     \
  }
#else
#define ORCHARD_ORDERED(operation, instruction)
#endif
ORCHARD_ORDERED(BINARY_ADD, "addps")
ORCHARD_ORDERED(BINARY_MUL, "mulps")

namespace {

template <class Operation> TileCode code_of_form(TileForm form) {
  switch (form) {
  case TileForm::both: return code_of(binary_step<Operation, TileForm::both>);
  case TileForm::with_memory: return code_of(binary_step<Operation, TileForm::with_memory>);
  case TileForm::memory_first: return code_of(binary_step<Operation, TileForm::memory_first>);
  case TileForm::with_value: return code_of(binary_step<Operation, TileForm::with_value>);
  case TileForm::value_first: return code_of(binary_step<Operation, TileForm::value_first>);
  }
  return nullptr;
}

} // namespace

#define ORCHARD_TILE_OF(operation)                                                                                     \
  case operation: return code_of_form<OfFloats<operation>>(form);

TileCode binary_tile(int64_t operation, TileForm form) {
  switch (operation) {
    ORCHARD_TILE_OF(BINARY_ADD)
    ORCHARD_TILE_OF(BINARY_SUB)
    ORCHARD_TILE_OF(BINARY_MUL)
    ORCHARD_TILE_OF(BINARY_DIV)
    ORCHARD_TILE_OF(BINARY_MAXIMUM)
    ORCHARD_TILE_OF(BINARY_MINIMUM)
    ORCHARD_TILE_OF(BINARY_FMAX)
    ORCHARD_TILE_OF(BINARY_FMIN)
    ORCHARD_TILE_OF(BINARY_COPYSIGN)
    ORCHARD_TILE_OF(BINARY_HEAVISIDE)
    ORCHARD_TILE_OF(BINARY_LEAKY)
  default: return nullptr;
  }
}

} // namespace orchard::ORCHARD_ISA
