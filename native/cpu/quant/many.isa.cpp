#include "many.h"

#if defined(__AVX512F__)

#include "../amx.h"
#include "few_rows.h"
#include "many_rows.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class Unit>
void multiply(const Weights &weights, const ByteBlocks &x, int64_t count, int64_t begin, int64_t end, float *out) {
  with_level_rows(weights, [&](auto type) {
    multiply_many_rows<Unit, typename decltype(type)::type>(weights, x, count, begin, end, out);
  });
}

} // namespace

extern const ManyRowsKernels many_rows_kernels = {pack_block, multiply<VectorUnit>, multiply<TileUnit<AmxTiles>>};

} // namespace orchard::ORCHARD_ISA

#else

namespace orchard::ORCHARD_ISA {
extern const ManyRowsKernels many_rows_kernels = {};
} // namespace orchard::ORCHARD_ISA

#endif
