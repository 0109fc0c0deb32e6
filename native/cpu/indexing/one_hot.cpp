#include "../parallel.h"
#include "indices.h"
#include "nest.h"

using namespace orchard;

int32_t orchard_cpu_one_hot(const double *block, const void *index, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    DType dtype = reader.dtype();
    int64_t offset = reader.whole();
    int64_t *target = reinterpret_cast<int64_t *>(element(out, DType::int64, reader.whole()));
    int64_t classes = reader.whole();
    Nest<1> nest = read_nest<1>(reader);
    int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(classes, 1));
    with_indices(dtype, index, offset, [&](auto *first) {
      parallel_for(nest.count(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row++) {
          int64_t places[1];
          find_places(nest, row, places);
          std::fill_n(target + row * classes, classes, 0);
          target[row * classes + first[places[0]]] = 1;
        }
      });
    });
  });
}
