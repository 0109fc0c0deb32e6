#include "conversion.h"

#include "../block.h"
#include "../parallel.h"

using namespace orchard;

namespace {
constexpr int64_t grain = 1 << 16; // about 20 µs
}

int32_t orchard_cpu_convert(const double *block, const void *source, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t count = reader.whole();
    DType from = reader.dtype();
    const char *in = element(source, from, reader.whole());
    DType to = reader.dtype();
    char *result = element(out, to, reader.whole());
    ConvertRow row = conversions().rows[static_cast<int>(from)][static_cast<int>(to)];
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      const void *inputs[] = {element(in, from, begin)};
      row(inputs, element(result, to, begin), end - begin);
    });
  });
}
