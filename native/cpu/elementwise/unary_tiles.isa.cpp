// Tile steps of operations of one operand, with the formulas of kernels/formulas/unary.h.
#include "../../.build/generated/unary.h"
#include "activations.h"
#include "bits.h"
#include "gamma.h"
#include "gated.h"
#include "inverse.h"
#include "special.h"
#include "tile_code.h"

#include "../../../kernels/formulas/bessel.h"
#include "../../../kernels/formulas/bessel_kinds.h"

namespace orchard::ORCHARD_ISA {
namespace {
#include "../../../kernels/formulas/unary.h"

} // namespace

#define ORCHARD_TILE_OF(operation)                                                                                     \
  case operation: return code_of(unary_step<OfFloats<operation>>);

TileCode unary_tile(int64_t operation) {
  switch (operation) {
    ORCHARD_TILE_OF(UNARY_NEG)
    ORCHARD_TILE_OF(UNARY_ABS)
    ORCHARD_TILE_OF(UNARY_SIGN)
    ORCHARD_TILE_OF(UNARY_SQUARE)
    ORCHARD_TILE_OF(UNARY_RELU)
    ORCHARD_TILE_OF(UNARY_FLOOR)
    ORCHARD_TILE_OF(UNARY_CEIL)
    ORCHARD_TILE_OF(UNARY_ROUND)
    ORCHARD_TILE_OF(UNARY_TRUNC)
    ORCHARD_TILE_OF(UNARY_FRAC)
    ORCHARD_TILE_OF(UNARY_RECIPROCAL)
    ORCHARD_TILE_OF(UNARY_SQRT)
    ORCHARD_TILE_OF(UNARY_RSQRT)
    ORCHARD_TILE_OF(UNARY_HARDSWISH)
    ORCHARD_TILE_OF(UNARY_HARDSIGMOID)
    ORCHARD_TILE_OF(UNARY_SOFTSIGN)
  default: return nullptr;
  }
}

} // namespace orchard::ORCHARD_ISA
