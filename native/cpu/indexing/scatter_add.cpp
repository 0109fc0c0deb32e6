// The function "scatterAdd".
//
// Contributions to one element are summed in the order of their indices, floats in float64, and rounded once with x:
// the result is the same on any number of threads. Integers wrap, bools are or-ed. Slices are worked on in tiles of
// adjacent ones, so that rows of an embedding are read as rows.
#include "../functions.h"
#include "../parallel.h"
#include "indices.h"
#include "scatter_add.h"
#include "scratch_slots.h"

using namespace orchard;

namespace {

ScatterAdd scatter_of(const ScatterAddBlock &block) {
  ScatterAdd scatter{block.length, block.size, {}, block.slices};
  for (int operand = 0; operand < 4; operand++) scatter.strides[operand] = block.strides[operand];
  return scatter;
}

// Slices are worth taking together where they are adjacent in memory.
int64_t tile_of(const ScatterAdd &scatter) {
  bool adjacent = scatter.slices.run_stride(scatter_source) == 1;
  return adjacent ? std::min<int64_t>(scatter_tile, scatter.slices.run_length()) : 1;
}

// out = x, plus each element of the source where its index says along an axis.
void scatter_add(const ScatterAddBlock &block, Operands operands) {
  const DType dtype = block.dtype, index_dtype = block.index_dtype;
  const ScatterAdd scatter = scatter_of(block);
  auto extent = [&](ScatterOperand operand, int64_t elements) {
    return scatter.slices.extent(operand).along(elements, scatter.strides[operand]);
  };
  const char *x = operands.input(scatter_x, dtype, block.offsets[scatter_x], extent(scatter_x, scatter.size));
  const char *source =
      operands.input(scatter_source, dtype, block.offsets[scatter_source], extent(scatter_source, scatter.length));
  char *out = operands.result(scatter_out, dtype, block.offsets[scatter_out], extent(scatter_out, scatter.size));
  if (scatter.slices.count() == 0) return;
  const int64_t tile = tile_of(scatter);
  const int64_t run = scatter.slices.run_length();
  const int64_t tiles = (run + tile - 1) / tile;
  const int64_t bodies = scatter.slices.count() / std::max<int64_t>(run, 1) * tiles;
  ScratchSlots<double> sums(bodies, scratch_product({scatter.size, tile}));
  const AddSlices add = scatter_additions().slices[static_cast<int>(dtype)][index_dtype == DType::int32];
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / ((scatter.length + scatter.size) * tile + 1));
  BadIndex bad;
  const ScatterBad on_bad{&bad, [](void *context, int64_t index) { static_cast<BadIndex *>(context)->set(index); }};
  auto add_by = [&](auto *indices) {
    parallel_for(bodies, grain, [&](int64_t begin, int64_t end) {
      sums.with([&](double *slot) {
        for (int64_t body = begin; body < end; body++) {
          int64_t first = body % tiles * tile;
          int64_t offsets[4];
          scatter.slices.find_offsets(body / tiles * run + first, offsets);
          add(scatter, offsets, std::min(tile, run - first), x, indices, source, out, slot, on_bad);
        }
      });
    });
  };
  with_indices(operands, scatter_index, index_dtype, block.offsets[scatter_index],
               extent(scatter_index, scatter.length), add_by);
  bad.check(scatter.size);
}

ORCHARD_FUNCTION("scatterAdd", scatter_add, ScatterAddBlock, 4)

} // namespace
