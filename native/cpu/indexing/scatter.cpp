// The functions "scatter" and "scatterOthers".
//
// The contributions to an element are combined in the order of the indices. Sums and products of floats are accumulated
// in float64 and rounded once, so results do not depend on the number of threads. Integers wrap around, and bools are
// combined by or. Slices are processed in tiles of adjacent slices, so that an embedding is read row by row, or if they
// share their indices by rows of the result (scatter_rows.h).
#include "scatter.h"
#include "scatter_rows.h"

#include "../copy/copy.h"
#include "../functions.h"
#include "../parallel.h"
#include "indices.h"
#include "scratch_slots.h"
#include "tuning.h"

#include <cstring>

using namespace orchard;

namespace {

using tuning::indexing::most_together;
using tuning::indexing::slices_together;

using tuning::indexing::few_indices;

// The operands of a call and the parameters of its kernels. A slice of the result has the length of a slice of x, or of
// the source.
class ScatterProblem {
public:
  Scatter scatter;

  template <class Block>
  ScatterProblem(const Block &block, Operands operands, ScatterOperand result_is_as)
      : scatter{block.length, block.size, {}, block.slices, block.includes_self, false, 0}, dtype_(block.dtype),
        index_dtype_(block.index_dtype), index_offset_(block.offsets[scatter_index]), operands_(operands) {
    for (int operand = 0; operand < 4; operand++) scatter.strides[operand] = block.strides[operand];
    x_ = operands.input(scatter_x, dtype_, block.offsets[scatter_x], extent(scatter_x, scatter.size));
    source_ =
        operands.input(scatter_source, dtype_, block.offsets[scatter_source], extent(scatter_source, scatter.length));
    out_ = operands.result(scatter_out, dtype_, block.offsets[scatter_out],
                           extent(scatter_out, result_is_as == scatter_x ? scatter.size : scatter.length));
    const int64_t source = scatter.slices.run_stride(scatter_source);
    const bool is_adjacent = scatter.slices.run_stride(scatter_out) == 1 && (source == 1 || source == 0);
    run_ = scatter.slices.run_length();
    is_adjacent_ = is_adjacent;
    set_tile(scatter.size);
  }

  // Computes short slices in tiles although they are not adjacent: their sums are.
  void set_tile_of_sums() {
    if (is_adjacent_ || run_ < 2 || scatter.size + scatter.length > most_together || copies_slices_) return;
    tile_ = std::min(run_, slices_together);
    tiles_of_run_ = (run_ + tile_ - 1) / tile_;
    tiles_ = scatter.slices.count() / std::max<int64_t>(run_, 1) * tiles_of_run_;
  }

  // `elements` is the number of elements or sums per slice that should stay in the caches. Contributions are read once,
  // but a wide tile reads longer rows of them, which are far apart; each thread still gets a tile.
  void set_tile(int64_t elements) {
    const int64_t of_thread = scatter.slices.count() / threads_at_hand() + 1;
    const int64_t in_caches = scatter_tile_elements / std::max<int64_t>(elements, 1);
    const int64_t most = std::max(scatter_tile, std::min(in_caches, of_thread));
    tile_ = is_adjacent_ ? std::min(most, run_) : 1;
    tiles_of_run_ = (run_ + tile_ - 1) / tile_;
    tiles_ = scatter.slices.count() / std::max<int64_t>(run_, 1) * tiles_of_run_;
  }

  DType dtype() const { return dtype_; }
  int index_ordinal() const { return index_dtype_ == DType::int32; }

  void run_by_rows(Scattering way) const {
    const auto run = [&](auto *indices) { scatter_rows(scatter, {way, dtype_, x_, source_, out_}, indices); };
    with_indices(operands_, scatter_index, index_dtype_, index_offset_, index_extent(), run);
  }

  // Copies x to the result. Kernels then visit only the elements that indices select, instead of all.
  void copy_x() {
    Nest<2> nest;
    for (int axis = 0; axis < scatter.slices.rank; axis++) {
      nest.shape[axis] = scatter.slices.shape[axis];
      nest.strides[0][axis] = scatter.slices.strides[scatter_x][axis];
      nest.strides[1][axis] = scatter.slices.strides[scatter_out][axis];
    }
    nest.rank = scatter.slices.rank + 1;
    nest.shape[nest.rank - 1] = scatter.size;
    nest.strides[0][nest.rank - 1] = scatter.strides[scatter_x];
    nest.strides[1][nest.rank - 1] = scatter.strides[scatter_out];
    copy_nest(nest, dtype_sizes[static_cast<int>(dtype_)], x_, out_);
    scatter.is_copied = true;
  }

  // Lets each task copy its slices of x, so that the elements that indices select are still in its caches. Returns
  // false for slices that are not runs of adjacent elements, and for a few long ones, which all threads should copy.
  bool copy_x_by_slices() {
    if (scatter.size > scatter_tile_elements && tiles_ < threads_at_hand()) return false;
    if (tile_ > 1 || scatter.strides[scatter_x] != 1 || scatter.strides[scatter_out] != 1) return false;
    scatter.is_copied = copies_slices_ = true;
    return true;
  }

  // Returns whether copying x first is faster: always for adjacent slices without sums, whose rows are then written at
  // once, else with few indices.
  bool copies_first(bool is_wide) const {
    const bool has_few = scatter.length < scatter.size / few_indices;
    return scatter.slices.rank < max_rank && ((is_adjacent_ && !is_wide) || has_few);
  }

  // Runs a kernel on each tile. Slices share a tile if their results are adjacent in memory, and their contributions
  // are adjacent too or are the same elements. `sums` and `flags` are the numbers of sums and flags per slice.
  void run(ScatterSlices kernel, int64_t sums, int64_t flags) const {
    if (scatter.slices.count() == 0) return;
    const int64_t flags_begin = scratch_product({sums, tile_});
    ScratchSlots<double> slots(tiles_, flags_begin + (scratch_product({flags, tile_}) + 7) / 8);
    const int64_t visited = scatter.length + (scatter.is_copied && !copies_slices_ ? 0 : scatter.size);
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / (visited * tile_ + 1));
    BadIndex bad;
    const auto run_by = [&](auto *indices) {
      parallel_for(tiles_, grain, [&](int64_t begin, int64_t end) {
        slots.with([&](double *slot) {
          bool *is_named = flags > 0 ? reinterpret_cast<bool *>(slot + flags_begin) : nullptr;
          for (int64_t tile = begin; tile < end; tile++) {
            const ScatterPart part = part_of(tile, indices, slot, is_named, bad);
            if (copies_slices_)
              std::memmove(part.out, part.x, static_cast<size_t>(scatter.size * dtype_sizes[static_cast<int>(dtype_)]));
            kernel(scatter, part);
          }
        });
      });
    };
    with_indices(operands_, scatter_index, index_dtype_, index_offset_, index_extent(), run_by);
    bad.check(scatter.size);
  }

private:
  Extent index_extent() const { return extent(scatter_index, scatter.length); }
  Extent extent(ScatterOperand operand, int64_t elements) const {
    return scatter.slices.extent(operand).along(elements, scatter.strides[operand]);
  }

  template <class Index>
  ScatterPart part_of(int64_t tile, const Index *indices, double *sums, bool *is_named, BadIndex &bad) const {
    const int64_t first = tile % tiles_of_run_ * tile_;
    int64_t offsets[4];
    scatter.slices.find_offsets(tile / tiles_of_run_ * run_ + first, offsets);
    return {std::min(tile_, run_ - first),
            element(x_, dtype_, offsets[scatter_x]),
            indices + offsets[scatter_index],
            element(source_, dtype_, offsets[scatter_source]),
            element(out_, dtype_, offsets[scatter_out]),
            sums,
            is_named,
            &bad,
            [](void *context, int64_t index) { static_cast<BadIndex *>(context)->set(index); }};
  }

  DType dtype_, index_dtype_;
  int64_t index_offset_;
  Operands operands_;
  const char *x_, *source_;
  char *out_;
  int64_t run_, tile_, tiles_of_run_, tiles_;
  bool is_adjacent_, copies_slices_ = false;
};

// out = x, with each element of the source combined into the element that its index selects along an axis.
void scatter(const ScatterBlock &block, Operands operands) {
  const Scattering way = block.way;
  ScatterProblem problem(block, operands, scatter_x);
  const int64_t size = problem.scatter.size;
  problem.scatter.added = block.wraps ? size : 0;
  const bool is_wide = is_widened(way, problem.dtype());
  const ScatterSlices kernel =
      scatterings().slices[static_cast<int>(way)][static_cast<int>(problem.dtype())][problem.index_ordinal()];
  if (!kernel) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected bools to be summed or replaced");
  if (has_rows(problem.scatter, way, problem.dtype())) return problem.run_by_rows(way);
  if (problem.copies_first(is_wide)) {
    if (!problem.copy_x_by_slices()) problem.copy_x();
    if (!is_wide) problem.set_tile(0);
  } else if (is_wide) problem.set_tile_of_sums();
  problem.run(kernel, is_wide ? size : 0, problem.scatter.includes_self ? 0 : size);
}

// out = for each element of the source, the product of all other elements with the same index.
void scatter_others(const ScatterOthersBlock &block, Operands operands) {
  const ScatterProblem problem(block, operands, scatter_source);
  if (problem.dtype() != DType::float32 && problem.dtype() != DType::float64)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected factors of float32 or float64");
  const bool is_double = problem.dtype() == DType::float64;
  problem.run(scatter_others_kernels().slices[is_double][problem.index_ordinal()],
              problem.scatter.size + problem.scatter.length, 0);
}

ORCHARD_EXPORT_NAMES(Scattering)
ORCHARD_FUNCTION("scatter", scatter, ScatterBlock, 4)
ORCHARD_FUNCTION("scatterOthers", scatter_others, ScatterOthersBlock, 4)

} // namespace
