// The functions "gradientNorms" and "gradientScale".
#include "gradients.h"

#include "../functions.h"
#include "../parallel.h"

#include <algorithm>
#include <cmath>

using namespace orchard;

namespace {

struct Gradient {
  int64_t size;
  const char *first;
  int64_t first_chunk;
};

struct Call {
  DType dtype;
  int64_t gradients, chunk, chunks = 0;
  Gradient each[max_gradients];
};

// `first_gradient` is the index of the first gradient among the operands.
template <class Block> Call read_call(const Block &block, const Operands &operands, int first_gradient) {
  Call call;
  call.dtype = block.dtype;
  call.gradients = block.gradients;
  call.chunk = block.chunk;
  if (call.dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected gradients that are floats, got ") + dtype_names[static_cast<int>(call.dtype)]);
  if (call.gradients < 1 || call.gradients > max_gradients)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected 1 to 14 gradients, got " + std::to_string(call.gradients));
  if (call.chunk < 1)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected chunks of at least 1 element, got " + std::to_string(call.chunk));
  for (int at = 0; at < call.gradients; at++) {
    const int64_t size = block.sizes[at];
    call.each[at] = {size, operands.input(first_gradient + at, call.dtype, block.offsets[at], Extent(size)),
                     call.chunks};
    call.chunks += (call.each[at].size + call.chunk - 1) / call.chunk;
  }
  return call;
}

// Calls work(gradient, first element, number of elements, index of the chunk) for every chunk of every gradient.
template <class Work> void for_each_chunk(const Call &call, Work work) {
  parallel_for(call.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin, gradient = 0; at < end; at++) {
      while (gradient + 1 < call.gradients && at >= call.each[gradient + 1].first_chunk) gradient++;
      int64_t first = (at - call.each[gradient].first_chunk) * call.chunk;
      work(static_cast<int>(gradient), first, std::min(call.chunk, call.each[gradient].size - first), at);
    }
  });
}

// norms[i] = √ Σ g² over chunk i: first the chunks of the first gradient, then those of the second, and so on. The
// result is float64 for float64 gradients, else float32.
void gradient_norms(const GradientNormsBlock &block, Operands operands) {
  const Call call = read_call(block, operands, 0);
  const DType dtype = call.dtype == DType::float64 ? DType::float64 : DType::float32;
  char *norms = operands.result(max_gradients, dtype, block.norms_offset, Extent(call.chunks));
  auto squares = gradient_kernels().squares;
  for_each_chunk(call, [&](int gradient, int64_t first, int64_t count, int64_t at) {
    double norm = std::sqrt(squares(call.dtype, element(call.each[gradient].first, call.dtype, first), count));
    if (call.dtype == DType::float64) reinterpret_cast<double *>(norms)[at] = norm;
    else reinterpret_cast<float *>(norms)[at] = float(norm);
  });
}

// result = gradient · factor, rounded once. The factor is a single float64 for float64 gradients, else a float32.
void gradient_scale(const GradientScaleBlock &block, Operands operands) {
  constexpr int first_gradient = 1, first_result = first_gradient + max_gradients;
  const Call call = read_call(block, operands, first_gradient);
  const int64_t factor_offset = block.factor_offset;
  char *results[max_gradients];
  for (int at = 0; at < call.gradients; at++)
    results[at] = operands.result(first_result + at, call.dtype, block.result_offsets[at], Extent(call.each[at].size));
  auto scale = gradient_kernels().scale;
  double factor = call.dtype == DType::float64 ? *operands.inputs<double>(0, factor_offset, Extent())
                                               : double(*operands.inputs<float>(0, factor_offset, Extent()));
  for_each_chunk(call, [&](int gradient, int64_t first, int64_t count, int64_t) {
    scale(call.dtype, factor, element(call.each[gradient].first, call.dtype, first),
          element(results[gradient], call.dtype, first), count);
  });
}

ORCHARD_FUNCTION("gradientNorms", gradient_norms, GradientNormsBlock, max_gradients + 1)
ORCHARD_FUNCTION("gradientScale", gradient_scale, GradientScaleBlock, 1 + 2 * max_gradients)

} // namespace
