// Bags of rows of a table: their sums, means or maxima, and the gradients of the table and of the factors.
//
// Sums are accumulated in float64, over the indices in order, and rounded once, so results do not depend on the number
// of threads. A task computes `bag_columns` adjacent columns of one bag or table row.
#pragma once

#include "../../.build/generated/embedding_bag_gradient_block.h"
#include "../../.build/generated/embedding_bag_factors_block.h"

// The common first fields of all blocks. Indices, offsets and factors are dense.
// - dtype: of the table; a float dtype
// - total: number of indices
// - length: indices per bag; or -1: offsets give the start of each bag and the end of the last
// - rows, width: of the table
// - padding: an index that is ignored, or -1
#include "../../.build/generated/bag_head.h"

// `starts` has the offsets of the operands in order. Results have no offsets, since they are dense.
#include "../../.build/generated/embedding_bag_block.h"

#include "../block.h"
#include "../tuning.h"

namespace orchard {

using tuning::embedding::bag_columns;

// A matrix [bags or table rows, width] from one of its columns on; strides are in elements.
struct BagMatrix {
  const char *first;
  int64_t row, column;
};

// A task: some columns of one bag.
struct BagColumns {
  BagMode mode;
  BagMatrix table;
  const int64_t *indices; // of the bag; -1 for padding
  int64_t count, known;   // indices in this bag; indices in this bag and all following ones
  const char *factors;    // one for each of these indices; null if all are 1
  int64_t columns;
  int64_t position; // of the first of these indices among all indices
  char *out;
  bool is_streamed; // results exceed the caches; the caller must call Streams::finish
  int64_t *best;    // for max only
};

// A task: some columns of the gradient of one row of the table.
struct RowColumns {
  BagMode mode;
  BagMatrix gradients;
  const int64_t *numbers; // positions of the indices that select the row
  int64_t count;
  const int64_t *bags;  // the bag of each index
  const char *factors;  // one for each index; null if all are 1
  const double *shares; // for each bag: 1 / count, for the mean
  const int64_t *best;  // of all bags, from one of their columns on, `width` apart
  int64_t width, columns;
  char *out;
  bool is_streamed;
};

struct EmbeddingKernel {
  void (*bag)(const BagColumns &);
  void (*row)(const RowColumns &);
  void (*factor)(const BagMatrix &table, const BagMatrix &gradients, int64_t width, char *out); // dot of two rows
};

struct Embeddings {
  EmbeddingKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Embeddings, embeddings)
