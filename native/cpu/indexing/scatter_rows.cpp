// Scatter by rows: see scatter_rows.h.
#include "scatter_rows.h"

#include "../memory.h"
#include "../parallel.h"
#include "../streamed.h"
#include "indices.h"

using namespace orchard;

namespace {

using namespace tuning::indexing;

// The indices in the order of their places (a counting sort, which keeps the order of equal indices).
class Grouping {
public:
  // Throws Failure for an index out of range. Each index is read once: another thread may change it.
  template <class Index>
  Grouping(const Scatter &scatter, const Index *indices)
      : length_(scatter.length), places_(scatter.length), order_(scatter.length), starts_(scatter.size + 2) {
    int64_t *places = places_.data(), *order = order_.data(), *starts = starts_.data();
    std::fill_n(starts, scatter.size + 2, int64_t(0));
    for (int64_t at = 0; at < scatter.length; at++) {
      const int64_t given = indices[at * scatter.strides[scatter_index]], place = scatter.place_of(given);
      if (!is_in_range(place, scatter.size)) refuse_index(given, scatter.size);
      places[at] = place;
      starts[place + 2]++;
    }
    for (int64_t place = 0; place < scatter.size; place++) starts[place + 2] += starts[place + 1];
    for (int64_t at = 0; at < scatter.length; at++) order[starts[places[at] + 1]++] = at;
  }

  RowGroups groups() { return {starts_.data(), order_.data(), length_}; }

private:
  int64_t length_;
  Scratch<int64_t> places_, order_, starts_;
};

// How rows are divided into tasks: columns of a task, and places of a task.
struct Division {
  int64_t tile, tiles, places, parts;

  Division(const Scatter &scatter, int64_t columns, int64_t runs) {
    const int64_t wanted = (least_row_tasks * threads_at_hand() - 1) / std::max<int64_t>(1, scatter.size * runs) + 1;
    tile = std::min(columns, std::max(least_tile, (columns - 1) / wanted + 1));
    tiles = (columns - 1) / tile + 1;
    const int64_t per_place = tile * (2 + 2 * scatter.length / scatter.size);
    places = std::clamp<int64_t>(row_elements / per_place, 1, scatter.size);
    parts = (scatter.size - 1) / places + 1;
  }
};

template <class Index> void run(const Scatter &scatter, const ScatterRowsCall &call, const Index *indices) {
  Grouping grouping(scatter, indices);
  if (scatter.size == 0) return;
  const int64_t columns = scatter.slices.run_length(), runs = scatter.slices.count() / columns;
  const Division division(scatter, columns, runs);
  const auto kernel = scatter_row_kernels().kernels[static_cast<int>(call.way)][static_cast<int>(call.dtype)];
  const bool streams_rows =
      is_streamed(scatter.size * scatter.slices.count() * dtype_sizes[static_cast<int>(call.dtype)]);
  parallel_for(runs * division.tiles * division.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      const int64_t part = task % division.parts, tile = task / division.parts % division.tiles,
                    column = tile * division.tile, place = part * division.places;
      int64_t offsets[4];
      scatter.slices.find_offsets(task / division.parts / division.tiles * columns + column, offsets);
      kernel({grouping.groups(), place, std::min(scatter.size, place + division.places),
              std::min(division.tile, columns - column), element(call.x, call.dtype, offsets[scatter_x]),
              element(call.source, call.dtype, offsets[scatter_source]),
              element(call.out, call.dtype, offsets[scatter_out]), scatter.strides[scatter_x],
              scatter.strides[scatter_source], scatter.strides[scatter_out], scatter.includes_self, streams_rows});
    }
  });
}

} // namespace

bool orchard::has_rows(const Scatter &scatter, Scattering way, DType dtype) {
  const Nest<4> &slices = scatter.slices;
  const int64_t columns = slices.run_length(), source = slices.run_stride(scatter_source);
  if (columns < least_columns || slices.run_stride(scatter_x) != 1 || slices.run_stride(scatter_out) != 1) return false;
  const bool is_filled = source == 0 && way == Scattering::last; // one element for a row
  if (!is_filled && (source != 1 || !is_widened(way, dtype))) return false;
  const bool has_few = scatter.length < scatter.size / few_indices;
  if (has_few && columns * dtype_sizes[static_cast<int>(dtype)] < least_row_bytes) return false;
  return std::all_of(slices.strides[scatter_index], slices.strides[scatter_index] + slices.rank,
                     [](int64_t stride) { return stride == 0; });
}

void orchard::scatter_rows(const Scatter &scatter, const ScatterRowsCall &call, const int64_t *indices) {
  run(scatter, call, indices);
}

void orchard::scatter_rows(const Scatter &scatter, const ScatterRowsCall &call, const int32_t *indices) {
  run(scatter, call, indices);
}
