// Bags of rows of a table: their sums, means or largest rows, and the gradients of the table and of factors.
//
// Sums are in float64, over the indices in order, and rounded once: the result is the same for any number of threads. A
// task has `bag_columns` adjacent columns of one bag or table row.
#pragma once

#include "../block.h"

namespace orchard {

ORCHARD_NAMES(BagMode, sum, mean, max)

// The start of every block. Indices, offsets and factors are dense.
struct BagHead {
  DTypeField dtype; // of the table, a float
  DTypeField index_dtype, offset_dtype;
  Name<BagMode> mode;
  Whole bags, total; // total: number of indices
  Whole length;      // indices per bag, or -1: the offsets are the start of each bag and the end of the last
  Whole rows, width; // of the table
  Whole padding;     // a row that is ignored, or -1
  Flag has_factors;
};

// `starts` has the offsets of the operands in order, except results, which are dense.
struct EmbeddingBagBlock : BagHead {
  Whole starts[4];
  Whole table_strides[2];
};
struct EmbeddingBagGradientBlock : BagHead {
  Whole starts[6];
  Whole gradient_strides[2];
};
struct EmbeddingBagFactorsBlock : BagHead {
  Whole starts[4];
  Whole table_strides[2], gradient_strides[2];
};

constexpr int64_t bag_columns = 1024;

// A matrix [bags or rows, width], starting at one of its columns; strides are in elements.
struct BagMatrix {
  const char *first;
  int64_t row, column;
};

// Some columns of one bag.
struct BagColumns {
  BagMode mode;
  BagMatrix table;
  const int64_t *indices; // of the bag; -1 for padding
  int64_t count, known;   // of the bag; of this bag and the following ones
  const char *factors;    // of these indices; null if all are 1
  int64_t columns;
  int64_t position; // of the first index among all
  char *out;
  bool is_streamed; // results exceed the caches; the caller calls Streams::finish
  int64_t *best;    // for max only
};

// Some columns of the gradient of one row of the table.
struct RowColumns {
  BagMode mode;
  BagMatrix gradients;
  const int64_t *numbers; // of the indices that name the row
  int64_t count;
  const int64_t *bags;  // of all indices
  const char *factors;  // of all indices; null if all are 1
  const double *shares; // of all bags: 1 / count, for the mean
  const int64_t *best;  // of all bags, starting at one of their columns, `width` apart
  int64_t width, columns;
  char *out;
  bool is_streamed;
};

struct EmbeddingKernel {
  void (*bag)(const BagColumns &);
  void (*row)(const RowColumns &);
  void (*factor)(const BagMatrix &table, const BagMatrix &gradients, int64_t width, char *out); // of one row each
};

struct Embeddings {
  EmbeddingKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Embeddings, embeddings)
