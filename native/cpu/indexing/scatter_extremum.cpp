// The function "scatterExtremum": slices are divided among threads, and each is read once, in its order.
#include "scatter_extremum.h"

#include "../functions.h"
#include "../parallel.h"
#include "indices.h"
#include "scratch_slots.h"

using namespace orchard;

namespace {

// out = x, or the largest or smallest of it and each element of the source whose index says so.
void scatter_extremum(const ScatterExtremumBlock &block, Operands operands) {
  const DType dtype = block.dtype, index_dtype = block.index_dtype;
  ScatterAdd scatter{block.length, block.size, {}, block.slices};
  for (int operand = 0; operand < 4; operand++) scatter.strides[operand] = block.strides[operand];
  const ScatterExtremum which{block.is_largest, block.includes_self};
  auto extent = [&](ScatterOperand operand, int64_t elements) {
    return scatter.slices.extent(operand).along(elements, scatter.strides[operand]);
  };
  const char *x = operands.input(scatter_x, dtype, block.offsets[scatter_x], extent(scatter_x, scatter.size));
  const char *source =
      operands.input(scatter_source, dtype, block.offsets[scatter_source], extent(scatter_source, scatter.length));
  char *out = operands.result(scatter_out, dtype, block.offsets[scatter_out], extent(scatter_out, scatter.size));
  if (scatter.slices.count() == 0) return;
  const bool are_adjacent = scatter.slices.run_stride(scatter_source) == 1;
  const int64_t run = scatter.slices.run_length(), tile = are_adjacent ? std::min(scatter_tile, run) : 1,
                tiles = (run + tile - 1) / tile, bodies = scatter.slices.count() / std::max<int64_t>(run, 1) * tiles;
  ScratchSlots<double> space(bodies, scratch_product({scatter.size, tile, 2}));
  const FindExtrema find = scatter_extrema().slices[static_cast<int>(dtype)][index_dtype == DType::int32];
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / ((scatter.length + scatter.size) * tile + 1));
  BadIndex bad;
  const ScatterBad on_bad{&bad, [](void *context, int64_t index) { static_cast<BadIndex *>(context)->set(index); }};
  const auto find_by = [&](auto *indices) {
    parallel_for(bodies, grain, [&](int64_t begin, int64_t end) {
      space.with([&](double *slot) {
        for (int64_t body = begin; body < end; body++) {
          const int64_t first = body % tiles * tile;
          int64_t offsets[4];
          scatter.slices.find_offsets(body / tiles * run + first, offsets);
          find(scatter, which, offsets, std::min(tile, run - first), x, indices, source, out, slot, on_bad);
        }
      });
    });
  };
  with_indices(operands, scatter_index, index_dtype, block.offsets[scatter_index],
               extent(scatter_index, scatter.length), find_by);
  bad.check(scatter.size);
}

ORCHARD_FUNCTION("scatterExtremum", scatter_extremum, ScatterExtremumBlock, 4)

} // namespace
