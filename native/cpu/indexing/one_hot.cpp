// The function "oneHot".
#include "../functions.h"
#include "../parallel.h"
#include "indexing.h"
#include "indices.h"

using namespace orchard;

namespace {

// out[i, c] = 1 if index[i] is c, else 0
void one_hot(const OneHotBlock &block, Operands operands) {
  const Nest<1> nest = block.nest;
  const int64_t classes = block.classes;
  int64_t *out = operands.results<int64_t>(1, block.offsets[1], Extent(classes).along(nest.count(), classes));
  BadIndex bad;
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(classes, 1));
  with_indices(operands, 0, block.dtype, block.offsets[0], nest.extent(0), [&](auto *index) {
    parallel_for(nest.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        std::fill_n(out + row * classes, classes, 0);
        const int64_t place = index[nest.offset(0, row)];
        if (is_in_range(place, classes)) out[row * classes + place] = 1;
        else bad.set(place);
      }
    });
  });
  bad.check(classes);
}

ORCHARD_FUNCTION("oneHot", one_hot, OneHotBlock, 2)

} // namespace
