// The functions "attentionForward", "attentionBackward", "attentionDropoutMask" and "attentionScores".
#include "attention.h"

#include "../functions.h"

#include <atomic>

namespace orchard {
namespace {

std::atomic<int64_t> computed_scores[static_cast<int>(AttentionPass::count)];

} // namespace

void count_scores(AttentionPass pass, int64_t scores) noexcept {
  computed_scores[static_cast<int>(pass)].fetch_add(scores, std::memory_order_relaxed);
}

} // namespace orchard

using namespace orchard;

namespace {

ORCHARD_EXPORT_NAMES(AttentionPass)

// Sequences that are packed into one batch, each as queryStart, queries, keyStart, keys; or one for each batch.
template <class Block> std::vector<AttentionSequence> read_sequences(const Block &block, const void *packed) {
  std::vector<AttentionSequence> sequences;
  if (!block.is_packed) {
    for (int64_t batch = 0; batch < block.batch; batch++)
      sequences.push_back({batch, batch, 0, block.queries, 0, block.keys});
    return sequences;
  }
  const Whole *numbers = static_cast<const Whole *>(packed);
  for (int64_t index = 0; index < block.sequences; index++, numbers += 4)
    sequences.push_back({index, 0, numbers[0], numbers[1], numbers[2], numbers[3]});
  return sequences;
}

template <class Block> AttentionDropout read_dropout(const Block &block) {
  return {{block.key[0], block.key[1]}, block.threshold, block.keep_scale};
}

int64_t bound_of(double distance) {
  return static_cast<int64_t>(std::min(distance, double(AttentionProblem::unbounded)));
}

template <class Block> AttentionProblem read_problem(const Block &block, const void *packed) {
  AttentionProblem problem{};
  problem.dtype = block.dtype;
  if (problem.dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected floats for attention, got ") + dtype_names[static_cast<int>(problem.dtype)]);
  problem.batch = block.batch, problem.heads = block.heads, problem.kv_heads = block.kv_heads;
  problem.queries = block.queries, problem.keys = block.keys;
  problem.dim = block.dim, problem.value_dim = block.value_dim;
  problem.group = problem.kv_heads > 0 ? problem.heads / problem.kv_heads : 1;
  problem.scale = block.scale, problem.softcap = block.softcap;
  problem.left = bound_of(block.left), problem.right = bound_of(block.right);
  problem.is_bottom_right = block.is_bottom_right;
  problem.dropout = read_dropout(block);
  problem.sequences = read_sequences(block, packed);
  return problem;
}

template <class Block> AttentionOperand read_operand(const Block &block, Operands operands, int at) {
  AttentionOperand operand;
  operand.batch = block.batch_strides[at], operand.head = block.head_strides[at];
  operand.row = block.row_strides[at], operand.column = block.column_strides[at];
  if (block.is_present[at])
    operand.data = static_cast<char *>(operands[at]) + block.offsets[at] * block.element_bytes[at];
  return operand;
}

// out, logSumExp and logSumExpLow. src/ops/attention/problem.ts has the formulas and says what each operand is.
void attention_forward(const AttentionForwardBlock &block, Operands operands) {
  AttentionProblem p = read_problem(block, operands[attention_forward_operands]);
  AttentionOperand *members[] = {&p.q,     &p.k,      &p.v,   &p.mask,        &p.bias,
                                 &p.sinks, &p.slopes, &p.out, &p.log_sum_exp, &p.log_sum_exp_low};
  static_assert(std::size(members) == attention_forward_operands);
  for (int at = 0; at < attention_forward_operands; at++) *members[at] = read_operand(block, operands, at);
  attention_forward_kernels().run[static_cast<int>(p.dtype)](p);
}

// Those gradients that are there. gradBias is row-major.
void attention_backward(const AttentionBackwardBlock &block, Operands operands) {
  AttentionProblem p = read_problem(block, operands[attention_backward_operands]);
  AttentionOperand *members[] = {&p.q,           &p.k,
                                 &p.v,           &p.mask,
                                 &p.bias,        &p.sinks,
                                 &p.slopes,      &p.out,
                                 &p.log_sum_exp, &p.log_sum_exp_low,
                                 &p.grad_out,    &p.grad_log_sum_exp,
                                 &p.grad_q,      &p.grad_k,
                                 &p.grad_v,      &p.grad_bias,
                                 &p.grad_sinks};
  static_assert(std::size(members) == attention_backward_operands);
  for (int at = 0; at < attention_backward_operands; at++) *members[at] = read_operand(block, operands, at);
  attention_backward_kernels().run[static_cast<int>(p.dtype)](p);
}

// Which probabilities dropout keeps: a row-major bool [batch, heads, queries, keys].
void attention_dropout_mask(const AttentionDropoutMaskBlock &block, Operands operands) {
  AttentionProblem problem{};
  problem.batch = block.batch, problem.heads = block.heads;
  problem.queries = block.queries, problem.keys = block.keys;
  problem.dropout = read_dropout(block);
  problem.sequences = read_sequences(block, operands[1]);
  orchard::attention_dropout_mask().run(problem, static_cast<uint8_t *>(operands[0]) + block.offset);
}

// How many scores a pass has computed since the dylib was loaded, one float64 number. A tile that is not skipped counts
// whole, with the pairs in it that do not attend and the rows that fill it up.
void attention_scores(const AttentionScoresBlock &block, Operands operands) {
  const auto &scores = computed_scores[static_cast<int>(AttentionPass(block.pass))];
  *static_cast<double *>(operands[0]) = double(scores.load(std::memory_order_relaxed));
}

ORCHARD_FUNCTION("attentionForward", attention_forward, AttentionForwardBlock, attention_forward_operands + 1)
ORCHARD_FUNCTION("attentionBackward", attention_backward, AttentionBackwardBlock, attention_backward_operands + 1)
ORCHARD_FUNCTION("attentionDropoutMask", attention_dropout_mask, AttentionDropoutMaskBlock, 2)
ORCHARD_FUNCTION("attentionScores", attention_scores, AttentionScoresBlock, 1)

} // namespace
