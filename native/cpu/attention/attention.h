// Attention, its gradients and the mask of its dropout. src/ops/attention/problem.ts has the formulas; letters and
// names are the same here.
#pragma once

#include "../block.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace orchard {

ORCHARD_NAMES(AttentionPass, forward, backward)

// Sizes, options, and for each operand in the order of the call whether it is there and how it lies. `left` and `right`
// of the band are infinite where it has no bound.
template <int operands> struct AttentionBlock {
  DTypeField dtype; // of q
  Whole batch, heads, queries, keys;
  Real scale, softcap; // softcap 0: none
  Flag is_bottom_right;
  Word key[2]; // of dropout
  Word threshold;
  Real keep_scale;
  Whole kv_heads, dim, value_dim;
  Real left, right;
  Flag is_packed;
  Whole sequences; // how many are packed
  Flag is_present[operands];
  Whole element_bytes[operands], offsets[operands];
  Whole batch_strides[operands], head_strides[operands], row_strides[operands], column_strides[operands];
};

constexpr int attention_forward_operands = 10, attention_backward_operands = 17;
using AttentionForwardBlock = AttentionBlock<attention_forward_operands>;
using AttentionBackwardBlock = AttentionBlock<attention_backward_operands>;

// Of q, k and v: [sequences, tokens, heads, elements], the elements of a head adjacent.
struct AttentionStepBlock {
  DTypeField dtype, room_dtype; // the latter: what rooms have, or as what blocks are read
  Flag is_packed;               // rooms have blocks of q8_0, and strides of them are bytes
  Whole sequences, tokens, heads, kv_heads, dim, value_dim;
  Real scale, softcap, left; // as above
  Flag interleaved;          // of the rotation, as the function "rope" has it
  Whole pairs;               // 0: no rotation
  Real magnitude;
  Whole offsets[4]; // of q, k, v, out
  Whole sequence_strides[3], token_strides[3], head_strides[3];
};
using AttentionStepManyBlock = AttentionStepBlock;

struct AttentionDropoutMaskBlock {
  Whole batch, heads, queries, keys;
  Word key[2];
  Word threshold;
  Real keep_scale;
  Flag is_packed;
  Whole sequences;
  Whole offset; // of the mask
};

struct AttentionScoresBlock {
  Name<AttentionPass> pass;
};

// Strides in elements, of batch, head, row and column; `data` is the first element, null where there is no such
// operand.
struct AttentionOperand {
  char *data = nullptr;
  int64_t batch = 0, head = 0, row = 0, column = 0;
  bool is_packed = false; // blocks of q8_0, and strides are bytes: keys and values of sequences that have their own

  int64_t at(int64_t b, int64_t h, int64_t r, int64_t c = 0) const {
    return b * batch + h * head + r * row + c * column;
  }
};

// `index` is what dropout and slopes count, `batch` is where the rows lie. Sequences of few queries may have keys and
// values of their own, in place of the problem's.
struct AttentionSequence {
  int64_t index, batch, query_start, queries, key_start, keys;
  const AttentionOperand *own_keys = nullptr, *own_values = nullptr;
};

struct AttentionDropout {
  uint32_t key[2];
  uint32_t threshold; // words below it drop; 0: no dropout
  double keep_scale;
};

// Keys [first, end) of a sequence, or queries of it.
struct AttentionRange {
  int64_t first, end;
};

struct AttentionProblem {
  DType dtype;
  int64_t batch, heads, kv_heads, group, queries, keys, dim, value_dim;
  double scale, softcap; // softcap 0: none
  int64_t left, right;   // of the band; `unbounded`: none
  bool is_bottom_right;
  AttentionDropout dropout;
  std::vector<AttentionSequence> sequences;
  AttentionOperand q, k, v, mask, bias, sinks, slopes, out, log_sum_exp, log_sum_exp_low, grad_out, grad_log_sum_exp;
  AttentionOperand grad_q, grad_k, grad_v, grad_bias, grad_sinks;

  // Of any sequence.
  int64_t most_queries() const {
    int64_t most = 0;
    for (const AttentionSequence &sequence : sequences) most = std::max(most, sequence.queries);
    return most;
  }

  static constexpr int64_t unbounded = int64_t(1) << 52;

  int64_t shift(const AttentionSequence &sequence) const {
    return is_bottom_right ? sequence.keys - sequence.queries : 0;
  }

  // Keys that any of the queries from `i` to `last` attends to by its band.
  AttentionRange keys_of(const AttentionSequence &sequence, int64_t i, int64_t last) const {
    int64_t opposite = shift(sequence), first = std::clamp<int64_t>(i + opposite - left, 0, sequence.keys);
    return {first, std::clamp<int64_t>(last + opposite + right + 1, first, sequence.keys)};
  }

  // Queries that attend to any of the keys from `j` to `last`.
  AttentionRange queries_of(const AttentionSequence &sequence, int64_t j, int64_t last) const {
    int64_t opposite = shift(sequence), first = std::clamp<int64_t>(j - opposite - right, 0, sequence.queries);
    return {first, std::clamp<int64_t>(last - opposite + left + 1, first, sequence.queries)};
  }
};

// Queries of a sequence for which keys are not packed.
constexpr int64_t attention_few_queries = 4;

// Keys whose scores are looked at together.
constexpr int64_t attention_tile_keys = 128;

// Adds to the scores that the function "attentionScores" reports: those of whole tiles, whoever attends.
void count_scores(AttentionPass pass, int64_t scores) noexcept;

// By dtype: float64, float32, float16, bfloat16. They run on all threads, and throw Failure where there is no memory.
struct AttentionForwardKernels {
  void (*run[4])(const AttentionProblem &);
};
struct AttentionBackwardKernels {
  void (*run[4])(const AttentionProblem &);
};

// Sets a row-major bool [batch, heads, queries, keys].
struct AttentionDropoutMask {
  void (*run)(const AttentionProblem &problem, uint8_t *out);
};

// Tasks that are worth a thread's while together, of so many that take so many products of numbers: small heads go
// several at a time.
inline int64_t attention_grain(int64_t tasks, double products) {
  constexpr int64_t worth = 1 << 20; // some 10 µs
  return std::clamp<int64_t>(int64_t(double(worth) * double(tasks) / std::max(products, 1.0)), 1, tasks);
}

inline int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }
inline int64_t rounded_up(int64_t value, int64_t to) { return divided_up(value, to) * to; }
inline int64_t rounded_down(int64_t value, int64_t to) { return value / to * to; }

} // namespace orchard

ORCHARD_ISA_TABLE(AttentionForwardKernels, attention_forward_kernels)
ORCHARD_ISA_TABLE(AttentionBackwardKernels, attention_backward_kernels)
ORCHARD_ISA_TABLE(AttentionDropoutMask, attention_dropout_mask)
