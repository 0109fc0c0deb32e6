#include "softmax.h"

#include "../memory.h"
#include "../parallel.h"

#include <algorithm>

using namespace orchard;

namespace {

constexpr int64_t task_elements = 1 << 13;  // exponentials cost more than memory
constexpr int64_t batch_elements = 1 << 15; // of adjacent lines: what is gathered stays in the second-level cache

int64_t batch_lines(int64_t across, int64_t length) {
  return across == 1 ? std::clamp<int64_t>(batch_elements / std::max<int64_t>(length, 1), 1, softmax_lines) : 1;
}

} // namespace

int32_t orchard_cpu_softmax(const double *block, const void *x, const void *y, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t code = reader.whole();
    if (code < 0 || code >= softmax_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no softmax with the code " + std::to_string(code));
    DType dtype = reader.dtype();
    if (dtype > DType::bfloat16) fail(ORCHARD_CPU_UNSUPPORTED, std::string("softmax is for floats, not ") + dtype_names[static_cast<int>(dtype)]);
    const char *x_start = element(x, dtype, reader.whole()), *y_start = element(y, dtype, reader.whole());
    char *out_start = element(out, dtype, reader.whole());
    SoftmaxBatch whole{};
    whole.length = reader.whole();
    for (int64_t &stride : whole.along) stride = reader.whole();
    int64_t rank = reader.whole(), shape[softmax_max_rank], strides[3][softmax_max_rank];
    if (rank < 1 || rank > softmax_max_rank) fail(ORCHARD_CPU_INVALID_ARGUMENT, "lines over " + std::to_string(rank) + " axes came, 1 to 8 are possible");
    for (int64_t axis = 0; axis < rank; axis++) shape[axis] = reader.whole();
    for (auto &own : strides)
      for (int64_t axis = 0; axis < rank; axis++) own[axis] = reader.whole();
    for (int operand = 0; operand < 3; operand++) whole.across[operand] = strides[operand][rank - 1];
    int64_t lines = shape[rank - 1], width = std::min(lines, batch_lines(whole.across[0], whole.length));
    int64_t batches = width > 0 ? (lines - 1) / width + 1 : 0, tasks = batches;
    for (int64_t axis = 0; axis + 1 < rank; axis++) tasks *= shape[axis];
    int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, width * whole.length));
    bool in_place = dtype <= DType::float32 && width == 1 && whole.along[0] == 1 && whole.along[1] == 1 && whole.along[2] == 1;
    size_t number_bytes = dtype == DType::float64 ? sizeof(double) : sizeof(float);
    size_t scratch_bytes = in_place ? 0 : static_cast<size_t>(2 * width * whole.length) * number_bytes;
    int64_t blocks = tasks > 0 ? (tasks - 1) / grain + 1 : 0;
    constexpr size_t small = 1 << 14;
    Scratch<char> large(scratch_bytes > small ? scratch_bytes * blocks : 0);
    auto kernel = softmaxes().kernels[static_cast<int>(dtype)];
    parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
      alignas(64) char own[small];
      for (int64_t task = begin; task < end; task++) {
        SoftmaxBatch batch = whole;
        int64_t first = task % batches * width, rest = task / batches, places[3];
        for (int operand = 0; operand < 3; operand++) places[operand] = first * whole.across[operand];
        for (int64_t axis = rank - 2; axis >= 0; axis--) {
          for (int operand = 0; operand < 3; operand++) places[operand] += rest % shape[axis] * strides[operand][axis];
          rest /= shape[axis];
        }
        batch.lines = std::min(width, lines - first);
        batch.x = element(x_start, dtype, places[0]);
        batch.y = element(y_start, dtype, places[1]);
        batch.out = element(out_start, dtype, places[2]);
        batch.scratch = scratch_bytes > small ? large.data() + begin / grain * scratch_bytes : own;
        kernel(Softmax(code), batch);
      }
    });
  });
}
