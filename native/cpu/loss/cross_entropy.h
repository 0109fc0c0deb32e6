// The cross entropy of classes along slices of logits, and its gradient.
//
// With p = softmax(x), the factors w of the classes, a target y and a smoothing ε:
//   loss = -(1 - ε) w[y] log p[y] - ε / classes · Σ w[c] log p[c]
//   ∂loss / ∂x[c] = A p[c] - ε / classes · w[c] - (1 - ε) w[y] [c = y],   A = (1 - ε) w[y] + ε / classes · Σ w
// Logits are read once in each pass, a tile at a time: the sum over exp(x - largest) is rescaled if a tile has a larger
// logit.
#pragma once

#include "../slices.h"

namespace orchard {

// The head of both blocks. Factors of the classes are dense.
struct ClassesBlock {
  DTypeField dtype;       // of the logits, a float
  DTypeField index_dtype; // of the targets
  Whole ignore_index;     // this target is ignored
  Real label_smoothing;
  Flag has_factors;
  Whole factors_offset;
  Real factor_sum;
};

struct CrossEntropyBlock : ClassesBlock {
  SlicesBlock<3> slices; // logits, targets, and the results, which have one number for each slice
};

struct CrossEntropyGradientBlock : ClassesBlock {
  SlicesBlock<5> slices; // logits, targets, log_sums, scales, gradient
};

constexpr int64_t batch_slices = 16; // the most slices that are computed together, if they are adjacent
constexpr int64_t class_tile = 512;  // classes of a tile of several slices; a tile of one slice has four times as many

struct ClassBatch {
  const char *x; // the logits of the first slice
  char *out;     // their gradients
  int64_t slices, classes;
  int64_t along_x, along_out, across_x, across_out; // strides: from class to class, from slice to slice
  const int64_t *targets;                           // of each slice; -1 if ignored
  const void *factors;                              // of the classes, in the compute type; null if all are 1
  double factor_sum;
  double smoothing;
  bool is_streamed; // gradients exceed the caches: the caller calls Streams::finish
};

// Results of one slice.
struct ClassLoss {
  double loss, factor, largest, logarithm; // log Σ exp(x) = largest + logarithm
};
struct ClassScale {
  double largest, logarithm, scale; // from the forward pass, and the gradient of the slice's loss
};

struct CrossEntropyKernel {
  void (*losses)(const ClassBatch &, ClassLoss *);
  void (*gradients)(const ClassBatch &, const ClassScale *);
};

struct CrossEntropies {
  CrossEntropyKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(CrossEntropies, cross_entropies)
