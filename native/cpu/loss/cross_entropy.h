// The cross entropy of classes along slices of logits, and its gradient.
//
// With p = softmax(x), class weights w, a target y and label smoothing ε:
//   loss = -(1 - ε) w[y] log p[y] - ε / classes · Σ w[c] log p[c]
//   ∂loss / ∂x[c] = A p[c] - ε / classes · w[c] - (1 - ε) w[y] [c = y],   A = (1 - ε) w[y] + ε / classes · Σ w
// Each pass reads the logits once, a tile at a time: Σ exp(x - largest) is rescaled whenever a tile has a larger logit.
#pragma once

// The common first fields of both blocks. Class weights are dense.
// - dtype: of the logits; a float dtype
// - index_dtype: of the targets
// - ignore_index: this target is ignored
#include "../../.build/generated/classes_head.h"

// - slices: logits, targets, and the results, which have one number per slice
#include "../../.build/generated/cross_entropy_block.h"

// - slices: logits, targets, and a dense array of one number per slice
#include "../../.build/generated/cross_entropy_sum_block.h"

// - slices: logits, targets, log_sums, scales, gradient
#include "../../.build/generated/cross_entropy_gradient_block.h"

#include "../short_slices.h"
#include "../slices.h"
#include "tuning.h"

namespace orchard {

using tuning::loss::batch_slices;
using tuning::loss::class_tile;

struct ClassBatch {
  const char *x; // the logits of the first slice
  char *out;     // their gradients
  int64_t slices, classes;
  int64_t along_x, along_out, across_x, across_out; // strides from class to class, and from slice to slice
  const int64_t *targets;                           // one for each slice; -1 if ignored
  const void *factors;                              // class weights in the compute type; null if all are 1
  double factor_sum;
  double smoothing;
  bool is_streamed; // gradients exceed the caches; the caller must call Streams::finish
};

// The results for one slice.
struct ClassLoss {
  double loss, factor, largest, logarithm; // log Σ exp(x) = largest + logarithm
};
struct ClassScale {
  double largest, logarithm, scale; // results of the forward pass; gradient of the slice's loss
};

struct CrossEntropyKernel {
  void (*losses)(const ClassBatch &, ClassLoss *);
  void (*gradients)(const ClassBatch &, const ClassScale *);
};

// A block of slices of few classes. Fields that ClassBatch also has mean the same as there.
struct ShortClasses {
  const char *x;
  char *out;
  ShortSlices logits, gradients;
  const int64_t *targets;
  const void *factors;
  double factor_sum;
  double smoothing;
  bool is_streamed;
};

// Indexed by dtype, as below. The arrays have an element for each slice.
struct ShortCrossEntropies {
  void (*losses[4])(const ShortClasses &, ClassLoss *);
  void (*gradients[4])(const ShortClasses &, const ClassScale *);
};

struct CrossEntropies {
  CrossEntropyKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(CrossEntropies, cross_entropies)
ORCHARD_ISA_TABLE(ShortCrossEntropies, short_cross_entropies)
