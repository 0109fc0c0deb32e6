// out = x, plus each element of the source at the place along an axis that its index names.
//
// Contributions to one element are summed in the order of their indices, floats in float64, and rounded once with x: the
// result is the same on any number of threads. A line is one index of all other axes; lines are worked on in tiles of neighbours, so that
// rows of an embedding are read as rows.
#include "../parallel.h"
#include "indices.h"
#include "nest.h"
#include "scatter_add.h"
#include "scratch_slots.h"

using namespace orchard;

namespace {

ScatterAdd read_scatter(BlockReader &reader) {
  ScatterAdd scatter;
  scatter.length = reader.whole();
  scatter.size = reader.whole();
  for (int64_t &stride : scatter.strides) stride = reader.whole();
  scatter.lines = read_nest<4>(reader);
  return scatter;
}

// Neighbouring lines are worth taking together where they are neighbours in memory.
int64_t tile_of(const ScatterAdd &scatter) {
  bool adjacent = scatter.lines.run_stride(scatter_source) == 1;
  return adjacent ? std::min<int64_t>(scatter_tile, scatter.lines.run_length()) : 1;
}
} // namespace

int32_t orchard_cpu_scatter_add(const double *block, const void *x, const void *index, const void *source, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    DType dtype = reader.dtype();
    DType index_dtype = reader.dtype();
    const char *x_first = element(x, dtype, reader.whole());
    int64_t index_offset = reader.whole();
    const char *source_first = element(source, dtype, reader.whole());
    char *out_first = element(out, dtype, reader.whole());
    ScatterAdd scatter = read_scatter(reader);
    int64_t tile = tile_of(scatter);
    int64_t run = scatter.lines.run_length();
    int64_t tiles = (run + tile - 1) / tile;
    int64_t bodies = scatter.lines.count() / std::max<int64_t>(run, 1) * tiles;
    ScratchSlots<double> sums(bodies, scatter.size * tile);
    const ScatterLines add = scatter_additions().lines[static_cast<int>(dtype)][index_dtype == DType::int32];
    int64_t grain = std::max<int64_t>(1, (1 << 14) / ((scatter.length + scatter.size) * tile + 1));
    with_indices(index_dtype, index, index_offset, [&](auto *indices) {
      parallel_for(bodies, grain, [&](int64_t begin, int64_t end) {
        sums.with([&](double *slot) {
          for (int64_t body = begin; body < end; body++) {
            int64_t first = body % tiles * tile;
            int64_t places[4];
            find_places(scatter.lines, body / tiles * run + first, places);
            add(scatter, places, std::min(tile, run - first), x_first, indices, source_first, out_first, slot);
          }
        });
      });
    });
  });
}
