// The functions "gradientNorms" and "gradientScale".
#include "gradients.h"

#include "../functions.h"
#include "../parallel.h"

#include <algorithm>
#include <cmath>

using namespace orchard;

namespace {

struct Gradient {
  int64_t size, offset, first_chunk;
};

struct Call {
  DType dtype;
  int64_t gradients, chunk, chunks = 0;
  Gradient each[max_gradients];
};

template <class Block> Call read_call(const Block &block) {
  Call call;
  call.dtype = block.dtype;
  call.gradients = block.gradients;
  call.chunk = block.chunk;
  if (call.dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected gradients that are floats, got ") + dtype_names[static_cast<int>(call.dtype)]);
  if (call.gradients < 1 || call.gradients > max_gradients)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected 1 to 14 gradients, got " + std::to_string(call.gradients));
  for (int64_t at = 0; at < call.gradients; at++) {
    call.each[at] = {block.sizes[at], block.offsets[at], call.chunks};
    call.chunks += (call.each[at].size + call.chunk - 1) / call.chunk;
  }
  return call;
}

// Calls work(gradient, first element, elements, number of the chunk) for every chunk of every gradient.
template <class Work> void for_each_chunk(const Call &call, Work work) {
  parallel_for(call.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin, own = 0; at < end; at++) {
      while (own + 1 < call.gradients && at >= call.each[own + 1].first_chunk) own++;
      int64_t first = (at - call.each[own].first_chunk) * call.chunk;
      work(static_cast<int>(own), first, std::min(call.chunk, call.each[own].size - first), at);
    }
  });
}

// norms[i] = √ Σ g² of chunk i: those of the first gradient before those of the second, and so on. float32, float64 of
// float64.
void gradient_norms(const GradientNormsBlock &block, Operands operands) {
  const Call call = read_call(block);
  const int64_t norms_offset = block.norms_offset;
  void *norms = operands[max_gradients];
  auto squares = gradient_kernels().squares;
  for_each_chunk(call, [&](int own, int64_t first, int64_t count, int64_t at) {
    double norm =
        std::sqrt(squares(call.dtype, element(operands[own], call.dtype, call.each[own].offset + first), count));
    if (call.dtype == DType::float64) static_cast<double *>(norms)[norms_offset + at] = norm;
    else static_cast<float *>(norms)[norms_offset + at] = float(norm);
  });
}

// result = gradient · factor, rounded once. The factor is one float32 number, float64 of float64 gradients.
void gradient_scale(const GradientScaleBlock &block, Operands operands) {
  constexpr int first_gradient = 1, first_result = first_gradient + max_gradients;
  const Call call = read_call(block);
  const int64_t factor_offset = block.factor_offset;
  auto scale = gradient_kernels().scale;
  double factor = call.dtype == DType::float64 ? static_cast<const double *>(operands[0])[factor_offset]
                                               : double(static_cast<const float *>(operands[0])[factor_offset]);
  for_each_chunk(call, [&](int own, int64_t first, int64_t count, int64_t) {
    const char *gradient = element(operands[first_gradient + own], call.dtype, call.each[own].offset + first);
    scale(call.dtype, factor, gradient,
          element(operands[first_result + own], call.dtype, block.result_offsets[own] + first), count);
  });
}

ORCHARD_FUNCTION("gradientNorms", gradient_norms, GradientNormsBlock, max_gradients + 1)
ORCHARD_FUNCTION("gradientScale", gradient_scale, GradientScaleBlock, 1 + 2 * max_gradients)

} // namespace
