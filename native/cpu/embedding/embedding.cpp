// The functions "embeddingBag", "embeddingBagGradient" and "embeddingBagFactors".
#include "embedding.h"

#include "../functions.h"
#include "../indexing/indices.h"
#include "../memory.h"
#include "../parallel.h"
#include "../streamed.h"

#include <algorithm>

using namespace orchard;

namespace {

ORCHARD_EXPORT_NAMES(BagMode)

constexpr int64_t task_elements = 1 << 14;

int64_t blocks_of(int64_t width) { return (width + bag_columns - 1) / bag_columns; }
int64_t grain_of(int64_t elements) { return std::max<int64_t>(1, task_elements / std::max<int64_t>(1, elements)); }

// What every call is given.
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
  }

  const EmbeddingKernel &kernel() const { return embeddings().kernels[static_cast<int>(dtype)]; }
  int64_t bytes(int64_t elements) const { return elements * dtype_sizes[static_cast<int>(dtype)]; }
  bool streams_rows(int64_t rows) const { return is_streamed(bytes(rows * width)); }
};

// The indices, -1 for padding, and where the bags begin and the last one ends.
class Bags {
public:
  Bags(const Shapes &shapes, const void *indices, int64_t indices_offset, const void *offsets, int64_t offsets_offset)
      : shapes_(shapes), indices_(shapes.total), starts_(shapes.bags + 1) {
    with_indices(shapes.index_dtype, indices, indices_offset, [&](auto *own) {
      for (int64_t i = 0; i < shapes.total; i++) indices_.data()[i] = own[i] == shapes.padding ? -1 : int64_t(own[i]);
    });
    if (shapes.length >= 0)
      for (int64_t bag = 0; bag <= shapes.bags; bag++) starts_.data()[bag] = bag * shapes.length;
    else
      with_indices(shapes.offset_dtype, offsets, offsets_offset, [&](auto *own) {
        for (int64_t bag = 0; bag < shapes.bags; bag++) starts_.data()[bag] = own[bag];
        starts_.data()[shapes.bags] = own[shapes.bags];
      });
  }

  const int64_t *indices() { return indices_.data(); }
  int64_t begin(int64_t bag) { return starts_.data()[bag]; }
  int64_t end(int64_t bag) { return starts_.data()[bag + 1]; }

  // Writes the bag of each index, -1 for what is in none or counts for nothing.
  void number(int64_t *bags) {
    std::fill_n(bags, shapes_.total, -1);
    for (int64_t bag = 0; bag < shapes_.bags; bag++)
      for (int64_t i = begin(bag); i < end(bag); i++) bags[i] = indices()[i] < 0 ? -1 : bag;
  }

private:
  const Shapes &shapes_;
  Scratch<int64_t> indices_, starts_;
};

// The numbers of the indices by row, those of a row in ascending order: a counting sort.
class NumbersByRow {
public:
  NumbersByRow(const Shapes &shapes, const int64_t *indices, const int64_t *bags)
      : starts_(shapes.rows + 1), numbers_(shapes.total) {
    std::fill_n(starts_.data(), shapes.rows + 1, 0);
    for (int64_t i = 0; i < shapes.total; i++)
      if (bags[i] >= 0) starts_.data()[indices[i] + 1]++;
    for (int64_t row = 0; row < shapes.rows; row++) starts_.data()[row + 1] += starts_.data()[row];
    for (int64_t i = 0; i < shapes.total; i++)
      if (bags[i] >= 0)
        numbers_.data()[starts_.data()[indices[i]]++] = i; // leaves the end of each row where its beginning was
  }

  const int64_t *of(int64_t row) { return numbers_.data() + begin(row); }
  int64_t count(int64_t row) { return starts_.data()[row] - begin(row); }

private:
  int64_t begin(int64_t row) { return row == 0 ? 0 : starts_.data()[row - 1]; }
  Scratch<int64_t> starts_, numbers_;
};

BagMatrix matrix_of(const Shapes &shapes, const void *base, int64_t offset, const Whole (&strides)[2]) {
  return {element(base, shapes.dtype, offset), strides[0], strides[1]};
}

BagMatrix from(BagMatrix matrix, const Shapes &shapes, int64_t row, int64_t column) {
  matrix.first += shapes.bytes(row * matrix.row + column * matrix.column);
  return matrix;
}

// out [bags, width] = the sum, mean or largest of the rows of each bag; counts [bags] = how many rows that are (float64
// for float64, float32 for all others); best [bags, width] = the number of the index whose row is the largest, -1 in an
// empty bag (largest only).
void embedding_bag(const EmbeddingBagBlock &block, Operands operands) {
  auto [indices, offsets, factors, table, out_first, counts, best] = operands.first<7>();
  char *out = static_cast<char *>(out_first); // lambdas capture no structured bindings
  int64_t *best_indices = static_cast<int64_t *>(best);
  const Shapes shapes(block);
  const BagMatrix rows = matrix_of(shapes, table, block.starts[3], block.table_strides);
  Bags bags(shapes, indices, block.starts[0], offsets, block.starts[1]);
  const char *first_factor = shapes.has_factors ? element(factors, shapes.dtype, block.starts[2]) : nullptr;
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
                                        is_streamed, best_indices + at});
                 }
                 if (is_streamed) streams().finish();
               });
  for (int64_t bag = 0; bag < shapes.bags; bag++) {
    int64_t counted = 0;
    for (int64_t i = bags.begin(bag); i < bags.end(bag); i++) counted += bags.indices()[i] >= 0;
    if (shapes.dtype == DType::float64) static_cast<double *>(counts)[bag] = double(counted);
    else static_cast<float *>(counts)[bag] = float(counted);
  }
}

// out [rows, width] = for each row the sum of the gradients [bags, width] of the bags that it is in, in the order of
// the indices.
void embedding_bag_gradient(const EmbeddingBagGradientBlock &block, Operands operands) {
  auto [indices, offsets, factors, gradients, counts, best, out_first] = operands.first<7>();
  char *out = static_cast<char *>(out_first); // lambdas capture no structured bindings
  const int64_t *best_indices = static_cast<const int64_t *>(best);
  const int64_t counts_offset = block.starts[4], best_offset = block.starts[5];
  const Shapes shapes(block);
  const BagMatrix incoming = matrix_of(shapes, gradients, block.starts[3], block.gradient_strides);
  Bags bags(shapes, indices, block.starts[0], offsets, block.starts[1]);
  Scratch<int64_t> numbers(shapes.total);
  bags.number(numbers.data());
  NumbersByRow by_row(shapes, bags.indices(), numbers.data());
  Scratch<double> shares(shapes.mode == BagMode::mean ? shapes.bags : 0);
  if (shapes.mode == BagMode::mean)
    for (int64_t bag = 0; bag < shapes.bags; bag++)
      shares.data()[bag] =
          1 / (shapes.dtype == DType::float64 ? static_cast<const double *>(counts)[counts_offset + bag]
                                              : double(static_cast<const float *>(counts)[counts_offset + bag]));
  const char *first_factor = shapes.has_factors ? element(factors, shapes.dtype, block.starts[2]) : nullptr;
  int64_t blocks = blocks_of(shapes.width);
  bool is_streamed = shapes.streams_rows(shapes.rows);
  parallel_for(shapes.rows * blocks, grain_of(std::min(shapes.width, bag_columns)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      int64_t row = task / blocks, column = task % blocks * bag_columns;
      shapes.kernel().row({shapes.mode, from(incoming, shapes, 0, column), by_row.of(row), by_row.count(row),
                           numbers.data(), first_factor, shares.data(), best_indices + best_offset + column,
                           shapes.width, std::min(bag_columns, shapes.width - column),
                           out + shapes.bytes(row * shapes.width + column), is_streamed});
    }
    if (is_streamed) streams().finish();
  });
}

// out [indices] = the product of each index' row with the gradient of its bag.
void embedding_bag_factors(const EmbeddingBagFactorsBlock &block, Operands operands) {
  auto [indices, offsets, table, gradients, out_first] = operands.first<5>();
  char *out = static_cast<char *>(out_first); // lambdas capture no structured bindings
  const Shapes shapes(block);
  const BagMatrix rows = matrix_of(shapes, table, block.starts[2], block.table_strides);
  const BagMatrix incoming = matrix_of(shapes, gradients, block.starts[3], block.gradient_strides);
  Bags bags(shapes, indices, block.starts[0], offsets, block.starts[1]);
  Scratch<int64_t> numbers(shapes.total);
  bags.number(numbers.data());
  parallel_for(shapes.total, grain_of(shapes.width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      bool counts = numbers.data()[i] >= 0;
      int64_t width = counts ? shapes.width : 0; // of nothing: 0
      shapes.kernel().factor(from(rows, shapes, counts ? bags.indices()[i] : 0, 0),
                             from(incoming, shapes, counts ? numbers.data()[i] : 0, 0), width, out + shapes.bytes(i));
    }
  });
}

ORCHARD_FUNCTION("embeddingBag", embedding_bag, EmbeddingBagBlock, 7)
ORCHARD_FUNCTION("embeddingBagGradient", embedding_bag_gradient, EmbeddingBagGradientBlock, 7)
ORCHARD_FUNCTION("embeddingBagFactors", embedding_bag_factors, EmbeddingBagFactorsBlock, 5)

} // namespace
