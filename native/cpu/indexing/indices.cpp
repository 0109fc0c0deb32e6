#include "indices.h"

#include "../parallel.h"
#include "nest.h"

#include <atomic>

using namespace orchard;

namespace {
constexpr int64_t grain = 1 << 15;

void lower_to(std::atomic<int64_t> &least, int64_t value) {
  int64_t seen = least.load(std::memory_order_relaxed);
  while (value < seen && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

template <class Index>
void find_in_range(const Nest<1> &nest, const Index *index, int64_t size, int64_t except, int64_t begin, int64_t end,
                   std::atomic<int64_t> &least) {
  int64_t stride = nest.run_stride(0);
  for_each_run(nest, begin, end, [&](const int64_t(&places)[1], int64_t first, int64_t length) {
    for (int64_t i = 0; i < length; i++) {
      int64_t value = index[places[0] + i * stride];
      if ((value < 0 || value >= size) && value != except) return lower_to(least, first + i);
    }
  });
}
} // namespace

int32_t orchard_cpu_find_outside(const double *block, const void *index, double *out) {
  return guarded([&] {
    BlockReader reader(block);
    DType dtype = reader.dtype();
    int64_t offset = reader.whole();
    int64_t size = reader.whole();
    int64_t except = reader.whole();
    Nest<1> nest = read_nest<1>(reader);
    std::atomic<int64_t> least{INT64_MAX};
    with_indices(dtype, index, offset, [&](auto *first) {
      parallel_for(nest.count(), grain, [&](int64_t begin, int64_t end) {
        find_in_range(nest, first, size, except, begin, end, least);
      });
    });
    out[0] = least == INT64_MAX ? -1.0 : static_cast<double>(least.load());
  });
}

int32_t orchard_cpu_find_descent(const double *block, const void *offsets, double *out) {
  return guarded([&] {
    BlockReader reader(block);
    DType dtype = reader.dtype();
    int64_t offset = reader.whole(), count = reader.whole(), size = reader.whole();
    out[0] = -1;
    with_indices(dtype, offsets, offset, [&](auto *own) {
      int64_t before = 0;
      for (int64_t i = 0; i < count && out[0] < 0; before = own[i++])
        if (own[i] < before || own[i] > size || (i == 0 && own[i] != 0)) out[0] = double(i);
    });
  });
}
