// orchard_cpu_gradient_squares and orchard_cpu_gradient_scale of orchard_cpu.h.
#include "gradients.h"

#include "../block.h"
#include "../parallel.h"

#include <algorithm>

using namespace orchard;

namespace {

constexpr int most_gradients = 14;
constexpr int64_t chunk = 1 << 14; // as CHUNK of src/optim/gradients/table.ts: a sum for each

struct Gradient {
  int64_t count, offset, result_offset, first_chunk;
};

struct Call {
  DType dtype;
  int64_t gradients, first_offset; // of the sums, or of the factor
  Gradient each[most_gradients];
  int64_t chunks = 0;
};

Call read_call(const double *block) {
  BlockReader reader(block);
  Call call;
  call.dtype = reader.dtype();
  if (call.dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("only floats have gradients, not ") + dtype_names[static_cast<int>(call.dtype)]);
  call.gradients = reader.whole();
  if (call.gradients < 1 || call.gradients > most_gradients)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "1 to 14 gradients are taken at once, not " + std::to_string(call.gradients));
  call.first_offset = reader.whole();
  for (int64_t at = 0; at < call.gradients; at++) {
    Gradient &own = call.each[at];
    own.count = reader.whole();
    own.offset = reader.whole();
    own.result_offset = reader.whole();
    own.first_chunk = call.chunks;
    call.chunks += (own.count + chunk - 1) / chunk;
  }
  return call;
}

// Calls work(gradient, first element, elements, number of the chunk) for every chunk of every gradient.
template <class Work> void for_each_chunk(const Call &call, Work work) {
  parallel_for(call.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin, own = 0; at < end; at++) {
      while (own + 1 < call.gradients && at >= call.each[own + 1].first_chunk) own++;
      int64_t first = (at - call.each[own].first_chunk) * chunk;
      work(own, first, std::min(chunk, call.each[own].count - first), at);
    }
  });
}

void sum_squares(const Call &call, const void *const *gradients, void *sums) {
  auto squares = gradient_kernels().squares;
  for_each_chunk(call, [&](int64_t own, int64_t first, int64_t count, int64_t at) {
    double sum = squares(call.dtype, element(gradients[own], call.dtype, call.each[own].offset + first), count);
    if (call.dtype == DType::float64) static_cast<double *>(sums)[call.first_offset + at] = sum;
    else static_cast<float *>(sums)[call.first_offset + at] = float(sum);
  });
}

void scale_all(const Call &call, const void *factor, const void *const *before, void *const *after) {
  auto scale = gradient_kernels().scale;
  double by = call.dtype == DType::float64 ? static_cast<const double *>(factor)[call.first_offset]
                                           : double(static_cast<const float *>(factor)[call.first_offset]);
  for_each_chunk(call, [&](int64_t own, int64_t first, int64_t count, int64_t) {
    const Gradient &gradient = call.each[own];
    scale(call.dtype, by, element(before[own], call.dtype, gradient.offset + first),
          element(after[own], call.dtype, gradient.result_offset + first), count);
  });
}

} // namespace

int32_t orchard_cpu_gradient_squares(const double *block, const void *gradient0, const void *gradient1, const void *gradient2,
                                     const void *gradient3, const void *gradient4, const void *gradient5, const void *gradient6,
                                     const void *gradient7, const void *gradient8, const void *gradient9, const void *gradient10,
                                     const void *gradient11, const void *gradient12, const void *gradient13, void *sums) {
  return guarded([&] {
    const void *gradients[] = {gradient0, gradient1, gradient2, gradient3,  gradient4,  gradient5,  gradient6,
                               gradient7, gradient8, gradient9, gradient10, gradient11, gradient12, gradient13};
    sum_squares(read_call(block), gradients, sums);
  });
}

int32_t orchard_cpu_gradient_scale(const double *block, const void *factor, const void *before0, const void *before1, const void *before2,
                                   const void *before3, const void *before4, const void *before5, const void *before6,
                                   const void *before7, const void *before8, const void *before9, const void *before10,
                                   const void *before11, const void *before12, const void *before13, void *after0, void *after1,
                                   void *after2, void *after3, void *after4, void *after5, void *after6, void *after7, void *after8,
                                   void *after9, void *after10, void *after11, void *after12, void *after13) {
  return guarded([&] {
    const void *before[] = {before0, before1, before2, before3,  before4,  before5,  before6,
                            before7, before8, before9, before10, before11, before12, before13};
    void *after[] = {after0, after1, after2, after3, after4, after5, after6, after7, after8, after9, after10, after11, after12, after13};
    scale_all(read_call(block), factor, before, after);
  });
}
