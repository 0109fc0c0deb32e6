// The functions "embeddingBag", "embeddingBagGradient" and "embeddingBagFactors".
#include "embedding.h"

#include "../functions.h"
#include "../indexing/indices.h"
#include "../memory.h"
#include "../parallel.h"
#include "../streamed.h"
#include "../tuning.h"

#include <algorithm>
#include <cstring>

using namespace orchard;

namespace {

using tuning::embedding::task_elements;

ORCHARD_EXPORT_NAMES(BagMode)

int64_t blocks_of(int64_t width) { return (width + bag_columns - 1) / bag_columns; }
int64_t grain_of(int64_t elements) { return std::max<int64_t>(1, task_elements / std::max<int64_t>(1, elements)); }

// The sizes and dtypes common to all calls.
struct Shapes {
  DType dtype, index_dtype, offset_dtype;
  BagMode mode;
  int64_t bags, total, length, rows, width, padding;
  bool has_factors;

  explicit Shapes(const BagHead &head)
      : dtype(head.dtype), index_dtype(head.index_dtype), offset_dtype(head.offset_dtype), mode(head.mode),
        bags(head.bags), total(head.total), length(head.length), rows(head.rows), width(head.width),
        padding(head.padding), has_factors(head.has_factors) {
    if (dtype > DType::bfloat16)
      fail(ORCHARD_CPU_UNSUPPORTED,
           std::string("expected a table of floats, got ") + dtype_names[static_cast<int>(dtype)]);
    int64_t needed;
    bool is_possible = bags >= 0 && total >= 0 && rows >= 0 && width >= 0 && length >= -1;
    if (!is_possible || (length >= 0 && (__builtin_mul_overflow(bags, length, &needed) || needed > total)))
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected bags of some of the indices, got " + std::to_string(bags) +
                                             " bags of " + std::to_string(length) + " of " + std::to_string(total) +
                                             " indices, and a table of " + std::to_string(rows) + " rows of " +
                                             std::to_string(width));
  }

  const EmbeddingKernel &kernel() const { return embeddings().kernels[static_cast<int>(dtype)]; }
  int64_t bytes(int64_t elements) const { return elements * dtype_sizes[static_cast<int>(dtype)]; }
  bool streams_rows(int64_t rows) const { return is_streamed(bytes(rows * width)); }
};

// The indices, with -1 for padding, and the offsets where each bag begins and the last one ends.
class Bags {
public:
  // The indices and offsets are the first two operands. They are copied and the copy is checked, since another thread
  // may change the operands.
  Bags(const Shapes &shapes, const Operands &operands, int64_t indices_offset, int64_t offsets_offset)
      : shapes_(shapes), indices_(shapes.total), starts_(shapes.bags + 1) {
    with_indices(operands, 0, shapes.index_dtype, indices_offset, Extent(shapes.total), [&](auto *given) {
      for (int64_t i = 0; i < shapes.total; i++) indices_.data()[i] = checked_index(given[i]);
    });
    if (shapes.length >= 0)
      for (int64_t bag = 0; bag <= shapes.bags; bag++) starts_.data()[bag] = bag * shapes.length;
    else
      with_indices(operands, 1, shapes.offset_dtype, offsets_offset, Extent(shapes.bags + 1), [&](auto *given) {
        for (int64_t bag = 0; bag <= shapes.bags; bag++) starts_.data()[bag] = given[bag];
      });
    check_starts();
  }

  const int64_t *indices() { return indices_.data(); }
  int64_t begin(int64_t bag) { return starts_.data()[bag]; }
  int64_t end(int64_t bag) { return starts_.data()[bag + 1]; }

  // Writes the bag of each index, or -1 if the index is padding or in no bag.
  void number(int64_t *bags) {
    std::fill_n(bags, shapes_.total, -1);
    for (int64_t bag = 0; bag < shapes_.bags; bag++)
      for (int64_t i = begin(bag); i < end(bag); i++) bags[i] = indices()[i] < 0 ? -1 : bag;
  }

private:
  int64_t checked_index(int64_t index) const {
    if (!is_in_range(index, shapes_.rows)) refuse_index(index, shapes_.rows);
    return index == shapes_.padding ? -1 : index;
  }

  void check_starts() {
    int64_t before = 0;
    for (int64_t bag = 0; bag <= shapes_.bags; before = starts_.data()[bag++])
      if (starts_.data()[bag] < before || starts_.data()[bag] > shapes_.total)
        fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected bags that begin between " + std::to_string(before) + " and " +
                                               std::to_string(shapes_.total) + ", got one that begins at " +
                                               std::to_string(starts_.data()[bag]));
  }

  const Shapes &shapes_;
  Scratch<int64_t> indices_, starts_;
};

// A counting sort: the positions of the indices, grouped by table row, in ascending order within a row.
class NumbersByRow {
public:
  NumbersByRow(const Shapes &shapes, const int64_t *indices, const int64_t *bags)
      : starts_(shapes.rows + 1), numbers_(shapes.total) {
    std::fill_n(starts_.data(), shapes.rows + 1, 0);
    for (int64_t i = 0; i < shapes.total; i++)
      if (bags[i] >= 0) starts_.data()[indices[i] + 1]++;
    for (int64_t row = 0; row < shapes.rows; row++) starts_.data()[row + 1] += starts_.data()[row];
    for (int64_t i = 0; i < shapes.total; i++)
      if (bags[i] >= 0) numbers_.data()[starts_.data()[indices[i]]++] = i; // starts_ becomes the end of each row
  }

  const int64_t *of(int64_t row) { return numbers_.data() + begin(row); }
  int64_t count(int64_t row) { return starts_.data()[row] - begin(row); }

private:
  int64_t begin(int64_t row) { return row == 0 ? 0 : starts_.data()[row - 1]; }
  Scratch<int64_t> starts_, numbers_;
};

// An operand with `rows` rows of the table's width.
struct MatrixOperand {
  int operand;
  int64_t rows, offset;
};

BagMatrix matrix_of(const Shapes &shapes, const Operands &operands, const MatrixOperand &matrix,
                    const Whole (&strides)[2]) {
  const int64_t row = strides[0], column = strides[1];
  const Extent extent = Extent().along(matrix.rows, row).along(shapes.width, column);
  return {operands.input(matrix.operand, shapes.dtype, matrix.offset, extent), row, column};
}

// Returns the factors of the indices; null if all are 1.
const char *factors_of(const Shapes &shapes, const Operands &operands, int64_t offset) {
  return shapes.has_factors ? operands.input(2, shapes.dtype, offset, Extent(shapes.total)) : nullptr;
}
Extent rows_of_width(const Shapes &shapes, int64_t rows) { return Extent(shapes.width).along(rows, shapes.width); }
DType count_dtype(const Shapes &shapes) { return shapes.dtype == DType::float64 ? DType::float64 : DType::float32; }

BagMatrix from(BagMatrix matrix, const Shapes &shapes, int64_t row, int64_t column) {
  matrix.first += shapes.bytes(row * matrix.row + column * matrix.column);
  return matrix;
}

// out [bags, width] = the sum, mean or maximum of each bag's rows; counts [bags] = the number of those rows (float64
// for float64, else float32); best [bags, width] = the position of the index whose row has the maximum, or -1 in an
// empty bag (only for max).
void embedding_bag(const EmbeddingBagBlock &block, Operands operands) {
  const Shapes shapes(block);
  const BagMatrix rows = matrix_of(shapes, operands, {3, shapes.rows, block.starts[3]}, block.table_strides);
  char *out = operands.result(4, shapes.dtype, 0, rows_of_width(shapes, shapes.bags));
  char *counts = operands.result(5, count_dtype(shapes), 0, Extent(shapes.bags));
  const bool finds_largest = shapes.mode == BagMode::max;
  int64_t *best = finds_largest ? operands.results<int64_t>(6, 0, rows_of_width(shapes, shapes.bags)) : nullptr;
  const char *first_factor = factors_of(shapes, operands, block.starts[2]);
  Bags bags(shapes, operands, block.starts[0], block.starts[1]);
  bool is_streamed = shapes.streams_rows(shapes.bags);
  int64_t blocks = blocks_of(shapes.width), per_bag = shapes.total / std::max<int64_t>(1, shapes.bags) + 1;
  parallel_for(shapes.bags * blocks, grain_of(per_bag * std::min(shapes.width, bag_columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; task++) {
                   int64_t bag = task / blocks, column = task % blocks * bag_columns, start = bags.begin(bag),
                           at = bag * shapes.width + column;
                   shapes.kernel().bag({shapes.mode, from(rows, shapes, 0, column), bags.indices() + start,
                                        bags.end(bag) - start, shapes.total - start,
                                        first_factor ? first_factor + shapes.bytes(start) : nullptr,
                                        std::min(bag_columns, shapes.width - column), start, out + shapes.bytes(at),
                                        is_streamed, finds_largest ? best + at : nullptr});
                 }
                 if (is_streamed) streams().finish();
               });
  for (int64_t bag = 0; bag < shapes.bags; bag++) {
    int64_t counted = 0;
    for (int64_t i = bags.begin(bag); i < bags.end(bag); i++) counted += bags.indices()[i] >= 0;
    if (shapes.dtype == DType::float64) reinterpret_cast<double *>(counts)[bag] = double(counted);
    else reinterpret_cast<float *>(counts)[bag] = float(counted);
  }
}

// out [rows, width] = for each row of the table, the sum of the gradients [bags, width] of the bags that contain it, in
// the order of the indices.
void embedding_bag_gradient(const EmbeddingBagGradientBlock &block, Operands operands) {
  const Shapes shapes(block);
  const BagMatrix incoming = matrix_of(shapes, operands, {3, shapes.bags, block.starts[3]}, block.gradient_strides);
  char *out = operands.result(6, shapes.dtype, 0, rows_of_width(shapes, shapes.rows));
  const bool finds_largest = shapes.mode == BagMode::max, is_mean = shapes.mode == BagMode::mean;
  const int64_t *best =
      finds_largest ? operands.inputs<int64_t>(5, block.starts[5], rows_of_width(shapes, shapes.bags)) : nullptr;
  const char *counts = is_mean ? operands.input(4, count_dtype(shapes), block.starts[4], Extent(shapes.bags)) : nullptr;
  const char *first_factor = factors_of(shapes, operands, block.starts[2]);
  Bags bags(shapes, operands, block.starts[0], block.starts[1]);
  Scratch<int64_t> numbers(shapes.total);
  bags.number(numbers.data());
  NumbersByRow by_row(shapes, bags.indices(), numbers.data());
  Scratch<double> shares(is_mean ? shapes.bags : 0);
  for (int64_t bag = 0; is_mean && bag < shapes.bags; bag++)
    shares.data()[bag] = 1 / (shapes.dtype == DType::float64 ? reinterpret_cast<const double *>(counts)[bag]
                                                             : double(reinterpret_cast<const float *>(counts)[bag]));
  int64_t blocks = blocks_of(shapes.width);
  bool is_streamed = shapes.streams_rows(shapes.rows);
  parallel_for(shapes.rows * blocks, grain_of(std::min(shapes.width, bag_columns)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end;) {
      int64_t row = task / blocks, column = task % blocks * bag_columns, rows = 0;
      // Few indices leave most rows of a large table without a gradient.
      while (column == 0 && task + (rows + 1) * blocks <= end && by_row.count(row + rows) == 0) rows++;
      if (rows > 0) {
        std::memset(out + shapes.bytes(row * shapes.width), 0, static_cast<size_t>(shapes.bytes(rows * shapes.width)));
        task += rows * blocks;
        continue;
      }
      shapes.kernel().row({shapes.mode, from(incoming, shapes, 0, column), by_row.of(row), by_row.count(row),
                           numbers.data(), first_factor, shares.data(), finds_largest ? best + column : nullptr,
                           shapes.width, std::min(bag_columns, shapes.width - column),
                           out + shapes.bytes(row * shapes.width + column), is_streamed});
      task++;
    }
    if (is_streamed) streams().finish();
  });
}

// out [indices] = the dot product of each index's row with its bag's gradient.
void embedding_bag_factors(const EmbeddingBagFactorsBlock &block, Operands operands) {
  const Shapes shapes(block);
  const BagMatrix rows = matrix_of(shapes, operands, {2, shapes.rows, block.starts[2]}, block.table_strides);
  const BagMatrix incoming = matrix_of(shapes, operands, {3, shapes.bags, block.starts[3]}, block.gradient_strides);
  char *out = operands.result(4, shapes.dtype, 0, Extent(shapes.total));
  Bags bags(shapes, operands, block.starts[0], block.starts[1]);
  Scratch<int64_t> numbers(shapes.total);
  bags.number(numbers.data());
  parallel_for(shapes.total, grain_of(shapes.width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      bool counts = numbers.data()[i] >= 0;
      int64_t width = counts ? shapes.width : 0; // empty rows: each dot product is 0
      shapes.kernel().factor(from(rows, shapes, counts ? bags.indices()[i] : 0, 0),
                             from(incoming, shapes, counts ? numbers.data()[i] : 0, 0), width, out + shapes.bytes(i));
    }
  });
}

ORCHARD_FUNCTION("embeddingBag", embedding_bag, EmbeddingBagBlock, 7)
ORCHARD_FUNCTION("embeddingBagGradient", embedding_bag_gradient, EmbeddingBagGradientBlock, 7)
ORCHARD_FUNCTION("embeddingBagFactors", embedding_bag_factors, EmbeddingBagFactorsBlock, 5)

} // namespace
