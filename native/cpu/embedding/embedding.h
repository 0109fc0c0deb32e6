// Bags of rows of a table: their sums, means or largest rows, and the gradients of the table and of factors.
//
// Sums are in float64, over the indices in their order, and rounded once: the result is the same on any number of
// threads. A task takes `bag_columns` adjacent columns of one bag or row of the table.
#pragma once

#include "../block.h"

namespace orchard {

ORCHARD_NAMES(BagMode, sum, mean, max)

// What every block begins with. Indices, offsets and factors are dense.
struct BagHead {
  DTypeField dtype; // of the table, a float
  DTypeField index_dtype, offset_dtype;
  Name<BagMode> mode;
  Whole bags, total; // total: indices
  Whole length;      // indices of each bag, or -1: the offsets say where each begins, and one more where the last ends
  Whole rows, width; // of the table
  Whole padding;     // a row that counts for nothing, or -1
  Flag has_factors;
};

// `starts` has the offsets of the operands in their order, without results, which are dense.
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

// A matrix [bags or rows, width] from one of its columns on; strides count elements.
struct BagMatrix {
  const char *first;
  int64_t row, column;
};

// Some columns of one bag.
struct BagColumns {
  BagMode mode;
  BagMatrix table;
  const int64_t *indices; // of the bag; -1 for padding
  int64_t count, known;   // of the bag; of this bag and those after it
  const char *factors;    // of these indices; null where all are 1
  int64_t columns;
  int64_t position; // of the first index among all
  char *out;
  bool is_streamed; // results are more than caches keep: Streams::finish is the caller's
  int64_t *best;    // of the largest only
};

// Some columns of the gradient of one row of the table.
struct RowColumns {
  BagMode mode;
  BagMatrix gradients;
  const int64_t *numbers; // of the indices that name the row
  int64_t count;
  const int64_t *bags;  // of all indices
  const char *factors;  // of all indices; null where all are 1
  const double *shares; // of all bags: one over their counts, of a mean
  const int64_t *best;  // of all bags, from one of their columns on, `width` apart
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
