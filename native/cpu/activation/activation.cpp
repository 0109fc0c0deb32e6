#include "activation.h"

#include "../block.h"
#include "../elementwise/loop.h"

using namespace orchard;

namespace {

uint32_t word(BlockReader &reader) { return static_cast<uint32_t>(reader.whole()); }

template <class Function> Function *checked(Function *function, DType dtype) {
  if (!function) fail(ORCHARD_CPU_UNSUPPORTED, std::string("activations are floats, not ") + dtype_names[static_cast<int>(dtype)]);
  return function;
}

} // namespace

// The loop walks over the first result; the second one has its layout, and so the same places.
int32_t orchard_cpu_swiglu_gradient(const double *block, const void *g, const void *gate, const void *up, void *gateGradient,
                                    void *upGradient) {
  return guarded([&] {
    BlockReader reader(block);
    DType dtype = reader.dtype();
    auto *row = checked(activations().swiglu_gradient[static_cast<int>(dtype)], dtype);
    const int64_t size = dtype_sizes[static_cast<int>(dtype)], sizes[] = {size, size, size, size};
    const void *inputs[] = {g, gate, up};
    Loop loop(reader, 4, sizes);
    auto both = [&](const void *const *in, void *out, int64_t start, int64_t count) {
      row(in[0], in[1], in[2], out, element(upGradient, dtype, start), count);
    };
    loop.run_placed(both, inputs, gateGradient);
  });
}

int32_t orchard_cpu_dropout(const double *block, const void *x, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    DType dtype = reader.dtype();
    Dropout dropout{};
    for (uint32_t &part : dropout.start.key) part = word(reader);
    for (uint32_t &part : dropout.start.counter) part = word(reader);
    dropout.last_dropped = word(reader);
    dropout.scale = reader.real();
    auto *row = checked(activations().dropout[static_cast<int>(dtype)], dtype);
    const int64_t size = dtype_sizes[static_cast<int>(dtype)], sizes[] = {size, size};
    Loop(reader, 2, sizes).run_placed(
        [&](const void *const *in, void *result, int64_t start, int64_t count) { row(dropout, in[0], result, start, count); }, &x, out);
  });
}
