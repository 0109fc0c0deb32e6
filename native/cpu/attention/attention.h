// Attention, its gradients and its dropout mask. Names follow the formulas in src/ops/attention/problem.ts.
#pragma once

#include "../../.build/generated/attention_backward_block.h"
#include "../../.build/generated/attention_step_many_block.h"
#include "../../.build/generated/attention_scores_block.h"

// Sizes, options, and for each operand in the order of the call: whether it is present, and its layout. `left` and
// `right` of the band are infinite if unbounded.
// - dtype: of q
// - scale, softcap: a softcap of 0: none
// - key: of dropout's random numbers
// - sequences: number of packed sequences
#include "../../.build/generated/attention_forward_block.h"

// A decoding step. q, k and v have shape [sequences, tokens, heads, elements], with adjacent elements in a head.
// - room_dtype: of rooms, or of decoded q8_0 blocks
// - is_packed: rooms are q8_0 blocks, and their strides are in bytes
// - scale, softcap, left: as above
// - interleaved: of the rotation, as in the function "rope"
// - pairs: 0: no rotation
// - offsets: of q, k, v, out
#include "../../.build/generated/attention_step_block.h"

// - offset: of the mask
#include "../../.build/generated/attention_dropout_mask_block.h"

#include "../block.h"
#include "tuning.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace orchard {

constexpr int attention_forward_operands = std::extent_v<decltype(AttentionForwardBlock::offsets)>;
constexpr int attention_backward_operands = std::extent_v<decltype(AttentionBackwardBlock::offsets)>;

// An operand's address and its strides in elements, of batch, head, row and column. `data` points to the first element;
// it is null if the operand is absent.
struct AttentionOperand {
  char *data = nullptr;
  int64_t batch = 0, head = 0, row = 0, column = 0;
  bool is_packed = false; // q8_0 blocks, with strides in bytes: for own_keys and own_values

  int64_t at(int64_t b, int64_t h, int64_t r, int64_t c = 0) const {
    return b * batch + h * head + r * row + c * column;
  }
};

// One sequence of a batch. Dropout and slopes depend on `index`; `batch` says where the rows are stored. In calls with
// few queries, a sequence may have keys and values that replace the problem's.
struct AttentionSequence {
  int64_t index, batch, query_start, queries, key_start, keys;
  const AttentionOperand *own_keys = nullptr, *own_values = nullptr;
};

struct AttentionDropout {
  uint32_t key[2];
  uint32_t threshold; // words below this threshold drop their element; 0: no dropout
  double keep_scale;
};

// A range [first, end) of a sequence's keys or queries.
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

  // Returns the largest number of queries of any sequence.
  int64_t most_queries() const {
    int64_t most = 0;
    for (const AttentionSequence &sequence : sequences) most = std::max(most, sequence.queries);
    return most;
  }

  static constexpr int64_t unbounded = int64_t(1) << 52;

  int64_t shift(const AttentionSequence &sequence) const {
    return is_bottom_right ? sequence.keys - sequence.queries : 0;
  }

  // Returns the keys within the band of at least one query from `i` to `last`.
  AttentionRange keys_of(const AttentionSequence &sequence, int64_t i, int64_t last) const {
    int64_t opposite = shift(sequence), first = std::clamp<int64_t>(i + opposite - left, 0, sequence.keys);
    return {first, std::clamp<int64_t>(last + opposite + right + 1, first, sequence.keys)};
  }

  // Returns the queries whose band includes at least one key from `j` to `last`.
  AttentionRange queries_of(const AttentionSequence &sequence, int64_t j, int64_t last) const {
    int64_t opposite = shift(sequence), first = std::clamp<int64_t>(j - opposite - right, 0, sequence.queries);
    return {first, std::clamp<int64_t>(last - opposite + left + 1, first, sequence.queries)};
  }
};

// Adds to the number of scores that the function "attentionScores" returns: whole tiles, regardless of masking.
void count_scores(AttentionPass pass, int64_t scores) noexcept;

// Arrays are indexed by dtype: float64, float32, float16, bfloat16. The kernels run on all threads, and throw Failure
// if memory can't be allocated.
struct AttentionForwardKernels {
  void (*run[4])(const AttentionProblem &);
};
struct AttentionBackwardKernels {
  void (*run[4])(const AttentionProblem &);
};

// Computes which probabilities dropout keeps, as a row-major bool [batch, heads, queries, keys].
struct AttentionDropoutMask {
  void (*run)(const AttentionProblem &problem, uint8_t *out);
};

// Returns how many of `tasks` tasks, with `products` products in all, a thread should take at once to outweigh the
// fork-join cost. Small heads are grouped.
inline int64_t attention_grain(int64_t tasks, double products, int64_t least = tuning::attention::task_products) {
  return std::clamp<int64_t>(int64_t(double(least) * double(tasks) / std::max(products, 1.0)), 1,
                             std::max<int64_t>(tasks, 1));
}

inline int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }
inline int64_t rounded_up(int64_t value, int64_t to) { return divided_up(value, to) * to; }
inline int64_t rounded_down(int64_t value, int64_t to) { return value / to * to; }

} // namespace orchard

ORCHARD_ISA_TABLE(AttentionForwardKernels, attention_forward_kernels)
ORCHARD_ISA_TABLE(AttentionBackwardKernels, attention_backward_kernels)
ORCHARD_ISA_TABLE(AttentionDropoutMask, attention_dropout_mask)
