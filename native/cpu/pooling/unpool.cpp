// The function "maxUnpool".
#include "unpool.h"

#include "../functions.h"
#include "../indexing/indices.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <cstring>

using namespace orchard;

namespace {

using tuning::pooling::unpool_steps;

template <class T, class I>
void unpool(const MaxUnpoolBlock &block, const T *x, const I *indices, T *out, BadIndex &bad) {
  const int64_t elements = block.elements, pixels = block.pixels;
  const int64_t grain = std::max<int64_t>(1, unpool_steps / (4 * elements + pixels + 1));
  parallel_for(block.planes, grain, [&](int64_t begin, int64_t end) {
    std::memset(out + begin * pixels, 0, static_cast<size_t>((end - begin) * pixels) * sizeof(T));
    for (int64_t plane = begin; plane < end; plane++) {
      const T *from = x + plane * elements;
      const I *places = indices + plane * elements;
      T *to = out + plane * pixels;
      for (int64_t i = 0; i < elements; i++) {
        const int64_t place = int64_t(places[i]);
        if (__builtin_expect(is_in_range(place, pixels), true)) to[place] = from[i];
        else bad.set(place);
      }
    }
  });
}

void max_unpool(const MaxUnpoolBlock &block, Operands operands) {
  const DType dtype = block.dtype, index_dtype = block.index_dtype;
  const int64_t planes = block.planes, elements = block.elements, pixels = block.pixels;
  const Extent from = Extent(elements).along(planes, elements), to = Extent(pixels).along(planes, pixels);
  const char *x = operands.input(0, dtype, block.offsets[0], from);
  char *out = operands.result(2, dtype, block.offsets[2], to);
  BadIndex bad;
  with_indices(operands, 1, index_dtype, block.offsets[1], from, [&](const auto *indices) {
    const auto run = [&](auto element) {
      using T = decltype(element);
      unpool(block, reinterpret_cast<const T *>(x), indices, reinterpret_cast<T *>(out), bad);
    };
    if (to.is_empty()) return;
    switch (dtype_sizes[static_cast<int>(dtype)]) {
    case 2: return run(uint16_t());
    case 4: return run(uint32_t());
    case 8: return run(uint64_t());
    default: fail(ORCHARD_CPU_UNSUPPORTED, "expected floats");
    }
  });
  bad.check(pixels);
}

ORCHARD_FUNCTION("maxUnpool", max_unpool, MaxUnpoolBlock, 3)

} // namespace
