#include "attention.h"

#include <atomic>

namespace orchard {
namespace {

std::atomic<int64_t> computed_scores[2]; // by pass

} // namespace

void count_scores(AttentionPass pass, int64_t scores) noexcept {
  computed_scores[static_cast<int>(pass)].fetch_add(scores, std::memory_order_relaxed);
}

} // namespace orchard

using namespace orchard;

namespace {

// Sequences that are packed into one batch, or one for each batch.
std::vector<AttentionSequence> read_sequences(BlockReader &reader, const AttentionProblem &problem) {
  std::vector<AttentionSequence> sequences;
  int64_t packed = reader.whole();
  for (int64_t index = 0; index < packed; index++) {
    AttentionSequence sequence{index, 0, 0, 0, 0, 0};
    for (int64_t *number : {&sequence.query_start, &sequence.queries, &sequence.key_start, &sequence.keys}) *number = reader.whole();
    sequences.push_back(sequence);
  }
  for (int64_t index = 0; packed < 0 && index < problem.batch; index++)
    sequences.push_back({index, index, 0, problem.queries, 0, problem.keys});
  return sequences;
}

AttentionDropout read_dropout(BlockReader &reader) {
  AttentionDropout dropout;
  for (uint32_t *word : {&dropout.key[0], &dropout.key[1], &dropout.threshold}) *word = static_cast<uint32_t>(reader.whole());
  dropout.keep_scale = reader.real();
  return dropout;
}

AttentionProblem read_problem(BlockReader &reader) {
  AttentionProblem problem{};
  problem.dtype = reader.dtype();
  if (problem.dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("attention is for floats, not ") + dtype_names[static_cast<int>(problem.dtype)]);
  for (int64_t *number : {&problem.batch, &problem.heads, &problem.kv_heads, &problem.queries, &problem.keys, &problem.dim, &problem.value_dim})
    *number = reader.whole();
  problem.group = problem.kv_heads > 0 ? problem.heads / problem.kv_heads : 1;
  for (double *number : {&problem.scale, &problem.softcap}) *number = reader.real();
  for (int64_t *number : {&problem.left, &problem.right})
    *number = static_cast<int64_t>(std::min(reader.real(), double(AttentionProblem::unbounded)));
  problem.is_bottom_right = reader.whole() != 0;
  problem.dropout = read_dropout(reader);
  problem.sequences = read_sequences(reader, problem);
  return problem;
}

// Whether it is there, the bytes of an element, offset, strides.
AttentionOperand read_operand(BlockReader &reader, const void *base) {
  AttentionOperand operand;
  bool is_there = reader.whole() != 0;
  int64_t bytes = reader.whole(), offset = reader.whole();
  for (int64_t *stride : {&operand.batch, &operand.head, &operand.row, &operand.column}) *stride = reader.whole();
  if (is_there) operand.data = const_cast<char *>(static_cast<const char *>(base)) + offset * bytes;
  return operand;
}

} // namespace

int32_t orchard_cpu_attention(const double *block, const void *q, const void *k, const void *v, const void *mask, const void *bias,
                              const void *sinks, const void *slopes, void *out, void *log_sum_exp) {
  return guarded([&] {
    BlockReader reader(block);
    AttentionProblem problem = read_problem(reader);
    AttentionOperand *operands[] = {&problem.q,     &problem.k,      &problem.v,   &problem.mask,       &problem.bias,
                                    &problem.sinks, &problem.slopes, &problem.out, &problem.log_sum_exp};
    const void *bases[] = {q, k, v, mask, bias, sinks, slopes, out, log_sum_exp};
    for (size_t at = 0; at < std::size(operands); at++) *operands[at] = read_operand(reader, bases[at]);
    attention_forward_kernels().run[static_cast<int>(problem.dtype)](problem);
  });
}

int32_t orchard_cpu_attention_backward(const double *block, const void *q, const void *k, const void *v, const void *mask,
                                       const void *bias, const void *sinks, const void *slopes, const void *out,
                                       const void *log_sum_exp, const void *grad_out, const void *grad_log_sum_exp, void *grad_q,
                                       void *grad_k, void *grad_v, void *grad_bias, void *grad_sinks) {
  return guarded([&] {
    BlockReader reader(block);
    AttentionProblem problem = read_problem(reader);
    AttentionOperand *operands[] = {&problem.q,        &problem.k,      &problem.v,      &problem.mask,        &problem.bias,     &problem.sinks,
                                    &problem.slopes,   &problem.out,    &problem.log_sum_exp, &problem.grad_out, &problem.grad_log_sum_exp,
                                    &problem.grad_q,   &problem.grad_k, &problem.grad_v, &problem.grad_bias,   &problem.grad_sinks};
    const void *bases[] = {q,   k,           v,        mask,             bias,   sinks,  slopes, out,
                           log_sum_exp, grad_out, grad_log_sum_exp, grad_q, grad_k, grad_v, grad_bias, grad_sinks};
    for (size_t at = 0; at < std::size(operands); at++) *operands[at] = read_operand(reader, bases[at]);
    attention_backward_kernels().run[static_cast<int>(problem.dtype)](problem);
  });
}

int32_t orchard_cpu_attention_dropout_mask(const double *block, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    AttentionProblem problem{};
    for (int64_t *number : {&problem.batch, &problem.heads, &problem.queries, &problem.keys}) *number = reader.whole();
    problem.dropout = read_dropout(reader);
    problem.sequences = read_sequences(reader, problem);
    int64_t offset = reader.whole();
    attention_dropout_mask().run(problem, static_cast<uint8_t *>(out) + offset);
  });
}

int32_t orchard_cpu_attention_scores(double *out) {
  for (AttentionPass pass : {AttentionPass::forward, AttentionPass::backward})
    out[static_cast<int>(pass)] = double(computed_scores[static_cast<int>(pass)].load(std::memory_order_relaxed));
  return ORCHARD_CPU_OK;
}
