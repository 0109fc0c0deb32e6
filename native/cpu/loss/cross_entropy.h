// The cross entropy of classes along lines of logits, and its gradient.
//
// With p = softmax(x), the factors w of the classes, a target y and a smoothing ε:
//   loss = -(1 - ε) w[y] log p[y] - ε / classes · Σ w[c] log p[c]
//   ∂loss / ∂x[c] = A p[c] - ε / classes · w[c] - (1 - ε) w[y] [c = y],   A = (1 - ε) w[y] + ε / classes · Σ w
// Logits are read once in each pass, a tile at a time: the sum over exp(x - largest) is rescaled where a tile has a larger one.
#pragma once

#include "../block.h"

namespace orchard {

constexpr int64_t class_lines = 16;    // lines that are taken together at most, where they lie side by side
constexpr int64_t class_tile = 512; // classes that are looked at at once where there are as many lines; four times as many of a single one

struct ClassBatch {
  const char *x; // the logits, and the gradients of them; of the first line
  char *out;
  int64_t lines, classes;
  int64_t along_x, along_out, across_x, across_out; // strides: from class to class, from line to line
  const int64_t *targets;                           // of each line; -1 where it counts for nothing
  const void *factors;                              // of the classes, in the compute type; null where all are 1
  double factor_sum;
  double smoothing;
  bool is_streamed; // gradients are more than caches keep: Streams::finish is the caller's
};

// Of one line.
struct ClassLoss {
  double loss, factor, largest, logarithm; // log Σ exp(x) = largest + logarithm
};
struct ClassSlope {
  double largest, logarithm, scale; // the forward's, and the gradient of the line's loss
};

struct CrossEntropyKernel {
  void (*losses)(const ClassBatch &, ClassLoss *);
  void (*gradients)(const ClassBatch &, const ClassSlope *);
};

struct CrossEntropies {
  CrossEntropyKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(CrossEntropies, cross_entropies)
