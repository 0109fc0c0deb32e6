#include "weights.h"

#include <string>

using namespace orchard;

namespace orchard {
namespace {

struct BlockSize {
  int64_t values, bytes;
};

// In the order of `Packing`; 0 for packings with groups.
constexpr BlockSize block_sizes[] = {{32, 18},   {32, 20},   {32, 22},   {32, 24},   {32, 34}, {256, 84},
                                     {256, 110}, {256, 144}, {256, 176}, {256, 210}, {32, 18}, {32, 17},
                                     {1, 2},     {1, 2},     {0, 0},     {0, 0}};
static_assert(sizeof block_sizes / sizeof *block_sizes == size_t(Packing::count));

[[noreturn]] void refuse(const std::string &what) { fail(ORCHARD_CPU_INVALID_ARGUMENT, what); }

bool is_group(int64_t group) { return group == 32 || group == 64 || group == 128; }
bool is_level(int64_t bits) { return (bits >= 2 && bits <= 6) || bits == 8; }

} // namespace

void check_narrow_float(DType dtype) {
  if (dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16) return;
  fail(ORCHARD_CPU_UNSUPPORTED,
       std::string("expected float32, float16 or bfloat16, got ") + dtype_names[static_cast<int>(dtype)]);
}

Weights Weights::part(int64_t first, int64_t count) const {
  Weights selected = *this;
  selected.rows = count;
  selected.packed += first * row_bytes;
  if (group == 0) return selected;
  const auto moved = [&](const void *numbers) -> const void * {
    return numbers ? element(static_cast<const char *>(numbers), scale_dtype, first * (columns / group)) : nullptr;
  };
  selected.scales = moved(scales);
  selected.biases = moved(biases);
  return selected;
}

Weights weights_of(const WeightHead &head, const Operands &operands, int first) {
  Weights weights = {};
  weights.packing = head.packing;
  weights.rows = head.rows;
  weights.columns = head.columns;
  weights.scale_dtype = head.scale_dtype;
  if (weights.rows < 0 || weights.columns < 0) refuse("expected sizes of at least 0");
  const BlockSize size = block_sizes[static_cast<int>(weights.packing)];
  if (size.values > 0) {
    if (weights.columns % size.values != 0) refuse("expected whole blocks in a row");
    weights.row_bytes = weights.columns / size.values * size.bytes;
    weights.packed = reinterpret_cast<const uint8_t *>(
        operands.input(first, 1, head.offsets[0], Extent(weights.row_bytes).along(weights.rows, weights.row_bytes)));
    return weights;
  }
  weights.bits = head.bits;
  weights.group = head.group;
  if (!is_level(weights.bits) || !is_group(weights.group))
    refuse("expected 2 to 6 or 8 bits in groups of 32, 64 or 128");
  if (weights.columns % weights.group != 0) refuse("expected whole groups in a row");
  check_narrow_float(weights.scale_dtype);
  const int64_t words = weights.columns / 32 * weights.bits, groups = weights.columns / weights.group;
  weights.row_bytes = words * 4;
  weights.packed = reinterpret_cast<const uint8_t *>(
      operands.input(first, 4, head.offsets[0], Extent(words).along(weights.rows, words)));
  const Extent all = Extent(groups).along(weights.rows, groups);
  weights.scales = operands.input(first + 1, weights.scale_dtype, head.offsets[1], all);
  if (weights.packing == Packing::affine)
    weights.biases = operands.input(first + 2, weights.scale_dtype, head.offsets[2], all);
  return weights;
}

} // namespace orchard

ORCHARD_EXPORT_NAMES(Packing)
