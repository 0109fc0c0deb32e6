// The functions "attentionForward", "attentionBackward", "attentionDropoutMask" and "attentionScores".
#include "attention.h"

#include "../functions.h"

#include <atomic>
#include <utility>

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

[[noreturn]] void refuse(const std::string &expected, int64_t got) {
  fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected " + expected + ", got " + std::to_string(got));
}

// Upper limits on sizes in a call's block. Beyond them, the memory that a call needs per head would exceed its
// operands.
constexpr int64_t most_heads = int64_t(1) << 24; // in all batches or sequences
constexpr int64_t most_numbers = 1 << 20;        // in one row

void check_size(const char *name, int64_t size, int64_t most) {
  if (size < 0 || size > most) refuse(std::string(name) + " of 0 to " + std::to_string(most), size);
}

// Checks that a part of a packed axis does not overlap the parts before it and ends within the axis.
void check_part(int64_t first, int64_t size, int64_t before, int64_t whole) {
  if (first < before || size < 0 || first > whole - size)
    refuse("sequences that follow one another among " + std::to_string(whole) + " rows", first);
}

// Returns the sequences packed into one batch, in order. The block gives each as queryStart, queries, keyStart, keys.
// Without packing, each batch is one sequence.
template <class Block>
std::vector<AttentionSequence> read_sequences(const Block &block, const AttentionProblem &problem,
                                              const Operands &operands, int packed) {
  std::vector<AttentionSequence> sequences;
  const int64_t count = block.is_packed ? int64_t(block.sequences) : problem.batch;
  check_size("a number of sequences", count, most_heads / std::max<int64_t>(problem.heads, 1));
  if (!block.is_packed) {
    for (int64_t batch = 0; batch < count; batch++)
      sequences.push_back({batch, batch, 0, problem.queries, 0, problem.keys});
    return sequences;
  }
  if (problem.batch < 1) refuse("a batch that sequences are packed into", problem.batch);
  const Whole *numbers = operands.inputs<Whole>(packed, 0, Extent(4 * count));
  int64_t query = 0, key = 0;
  for (int64_t index = 0; index < count; index++, numbers += 4) {
    const AttentionSequence sequence{index, 0, numbers[0], numbers[1], numbers[2], numbers[3]};
    check_part(sequence.query_start, sequence.queries, query, problem.queries);
    check_part(sequence.key_start, sequence.keys, key, problem.keys);
    query = sequence.query_start + sequence.queries, key = sequence.key_start + sequence.keys;
    sequences.push_back(sequence);
  }
  return sequences;
}

template <class Block> AttentionDropout read_dropout(const Block &block) {
  return {{block.key[0], block.key[1]}, block.threshold, block.keep_scale};
}

// Reads the sizes common to the blocks of all attention functions.
template <class Block> AttentionProblem read_sizes(const Block &block) {
  AttentionProblem problem{};
  problem.batch = block.batch, problem.heads = block.heads;
  problem.queries = block.queries, problem.keys = block.keys;
  check_size("a batch", problem.batch, most_heads);
  check_size("a number of heads", problem.heads, most_heads / std::max<int64_t>(problem.batch, 1));
  check_size("a number of queries", problem.queries, largest_whole);
  check_size("a number of keys", problem.keys, largest_whole);
  problem.dropout = read_dropout(block);
  return problem;
}

int64_t bound_of(double distance) {
  constexpr double most = double(AttentionProblem::unbounded);
  if (!(distance >= 0)) refuse_number(distance, "a band of at least 0");
  return static_cast<int64_t>(std::min(distance, most));
}

template <class Block> AttentionProblem read_problem(const Block &block, const Operands &operands, int packed) {
  const DType dtype = block.dtype;
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected floats for attention, got ") + dtype_names[static_cast<int>(dtype)]);
  AttentionProblem problem = read_sizes(block);
  problem.dtype = dtype;
  problem.kv_heads = block.kv_heads;
  problem.dim = block.dim, problem.value_dim = block.value_dim;
  check_size("a row", problem.dim, most_numbers);
  check_size("a row of values", problem.value_dim, most_numbers);
  bool is_shared = problem.kv_heads > 0 ? problem.heads > 0 && problem.heads % problem.kv_heads == 0
                                        : problem.kv_heads == 0 && problem.heads == 0;
  if (!is_shared) refuse("heads of keys that " + std::to_string(problem.heads) + " heads share", problem.kv_heads);
  problem.group = problem.kv_heads > 0 ? problem.heads / problem.kv_heads : 1;
  problem.scale = block.scale, problem.softcap = block.softcap;
  problem.left = bound_of(block.left), problem.right = bound_of(block.right);
  problem.is_bottom_right = block.is_bottom_right;
  problem.sequences = read_sequences(block, problem, operands, packed);
  return problem;
}

// The expected shape of an operand, the size of an element in bytes, and whether the operand is a result.
struct OperandShape {
  int64_t batch, heads, rows, columns, bytes;
  bool is_result, is_needed;
};

template <class Block> class OperandReader {
public:
  OperandReader(const Block &block, const AttentionProblem &problem, const Operands &operands)
      : block_(block), p_(problem), operands_(operands), bytes_(dtype_sizes[static_cast<int>(problem.dtype)]),
        statistic_bytes_(problem.dtype == DType::float64 ? 8 : 4) {}

  // [batch, heads, queries, columns]
  OperandShape of_queries(int64_t columns) const {
    return {p_.batch, p_.heads, p_.queries, columns, bytes_, false, true};
  }
  // [batch, heads of keys, keys, columns]
  OperandShape of_keys(int64_t columns) const { return {p_.batch, p_.kv_heads, p_.keys, columns, bytes_, false, true}; }
  // [batch, heads, queries, keys]
  OperandShape of_pairs(int64_t bytes) const {
    return optional({p_.batch, p_.heads, p_.queries, p_.keys, bytes, false, true});
  }
  OperandShape of_bias() const { return of_pairs(bytes_); }
  // [batch, heads, queries]
  OperandShape of_statistics() const { return {p_.batch, p_.heads, p_.queries, 1, statistic_bytes_, false, true}; }
  // [heads]
  OperandShape of_sinks() const { return optional({1, p_.heads, 1, 1, bytes_, false, true}); }
  // [sequences, heads]
  OperandShape of_slopes() const {
    return optional({int64_t(p_.sequences.size()), p_.heads, 1, 1, statistic_bytes_, false, true});
  }
  static OperandShape optional(OperandShape shape) { return shape.is_needed = false, shape; }
  static OperandShape result(OperandShape shape) { return shape.is_result = true, shape; }

  AttentionOperand read(int at, const OperandShape &shape) const {
    if (!block_.is_present[at]) {
      if (shape.is_needed) refuse("an operand " + std::to_string(at), 0);
      return {};
    }
    AttentionOperand operand = strides_of(at, shape.bytes);
    const Extent extent = Extent()
                              .along(shape.batch, operand.batch)
                              .along(shape.heads, operand.head)
                              .along(shape.rows, operand.row)
                              .along(shape.columns, operand.column);
    operand.data = shape.is_result ? operands_.result(at, shape.bytes, block_.offsets[at], extent)
                                   : const_cast<char *>(operands_.input(at, shape.bytes, block_.offsets[at], extent));
    if (extent.is_empty()) operand.batch = operand.head = operand.row = operand.column = 0;
    return operand;
  }

  // Reads the layout of the bias's gradient. Its distinct elements must be adjacent, with the axes in any order; an
  // axis along which the bias is broadcast has stride 0.
  AttentionOperand read_bias_gradient(int at) const {
    if (!block_.is_present[at]) return {};
    AttentionOperand operand = strides_of(at, bytes_);
    Extent extent;
    for (auto [stride, size] : {std::pair{operand.batch, p_.batch},
                                {operand.head, p_.heads},
                                {operand.row, p_.queries},
                                {operand.column, p_.keys}})
      if (stride != 0 && size != 1) extent.along(size, stride);
    if (!extent.is_empty() && (extent.low() != 0 || extent.high() + 1 != extent.count()))
      refuse("adjacent elements in the gradient of a bias, a distance to the last of " +
                 std::to_string(extent.count() - 1),
             extent.high());
    operand.data = operands_.result(at, bytes_, block_.offsets[at], extent);
    return operand;
  }

private:
  AttentionOperand strides_of(int at, int64_t bytes) const {
    if (block_.element_bytes[at] != bytes)
      refuse("elements of " + std::to_string(bytes) + " bytes in operand " + std::to_string(at),
             block_.element_bytes[at]);
    AttentionOperand operand;
    operand.batch = block_.batch_strides[at], operand.head = block_.head_strides[at];
    operand.row = block_.row_strides[at], operand.column = block_.column_strides[at];
    return operand;
  }

  const Block &block_;
  const AttentionProblem &p_;
  const Operands &operands_;
  const int64_t bytes_, statistic_bytes_;
};

// Reads the operands from q to slopes, which come first in both passes.
template <class Block> void read_inputs(const OperandReader<Block> &reader, AttentionProblem &p) {
  p.q = reader.read(0, reader.of_queries(p.dim));
  p.k = reader.read(1, reader.of_keys(p.dim));
  p.v = reader.read(2, reader.of_keys(p.value_dim));
  p.mask = reader.read(3, reader.of_pairs(1));
  p.bias = reader.read(4, reader.of_bias());
  p.sinks = reader.read(5, reader.of_sinks());
  p.slopes = reader.read(6, reader.of_slopes());
}

// Computes out, and logSumExp and logSumExpLow if present. src/ops/attention/problem.ts has the formulas and describes
// each operand.
void attention_forward(const AttentionForwardBlock &block, Operands operands) {
  AttentionProblem p = read_problem(block, operands, attention_forward_operands);
  const OperandReader<AttentionForwardBlock> reader(block, p, operands);
  read_inputs(reader, p);
  p.out = reader.read(7, reader.result(reader.of_queries(p.value_dim)));
  p.log_sum_exp = reader.read(8, reader.optional(reader.result(reader.of_statistics())));
  p.log_sum_exp_low = reader.read(9, reader.optional(reader.result(reader.of_statistics())));
  if (p.heads > 0 && p.queries > 0) attention_forward_kernels().run[static_cast<int>(p.dtype)](p);
}

// Computes those gradients whose operands are present.
void attention_backward(const AttentionBackwardBlock &block, Operands operands) {
  AttentionProblem p = read_problem(block, operands, attention_backward_operands);
  const OperandReader<AttentionBackwardBlock> reader(block, p, operands);
  auto gradient = [&](int at, const OperandShape &shape) {
    return reader.read(at, reader.optional(reader.result(shape)));
  };
  read_inputs(reader, p);
  p.out = reader.read(7, reader.of_queries(p.value_dim));
  p.log_sum_exp = reader.read(8, reader.of_statistics());
  p.log_sum_exp_low = reader.read(9, reader.of_statistics());
  p.grad_out = reader.read(10, reader.of_queries(p.value_dim));
  p.grad_log_sum_exp = reader.read(11, reader.optional(reader.of_statistics()));
  p.grad_q = gradient(12, reader.of_queries(p.dim));
  p.grad_k = gradient(13, reader.of_keys(p.dim));
  p.grad_v = gradient(14, reader.of_keys(p.value_dim));
  p.grad_bias = reader.read_bias_gradient(15);
  p.grad_sinks = gradient(16, reader.of_sinks());
  if (!p.grad_k.data != !p.grad_v.data) refuse("the gradients of keys and values together", 1);
  if (p.grad_sinks.data && !p.sinks.data) refuse("sinks for their gradient", 0);
  attention_backward_kernels().run[static_cast<int>(p.dtype)](p);
}

// Computes which probabilities dropout keeps, as a row-major bool [batch, heads, queries, keys].
void attention_dropout_mask(const AttentionDropoutMaskBlock &block, Operands operands) {
  AttentionProblem problem = read_sizes(block);
  const Extent row_major = Extent(problem.keys)
                               .along(problem.queries, problem.keys)
                               .along(problem.batch * problem.heads, scratch_product({problem.queries, problem.keys}));
  uint8_t *mask = operands.results<uint8_t>(0, block.offset, row_major);
  problem.sequences = read_sequences(block, problem, operands, 1);
  if (!row_major.is_empty()) orchard::attention_dropout_mask().run(problem, mask);
}

// Returns the number of scores that a pass has computed since the dylib was loaded, as one float64. A tile that is not
// skipped counts in full, including masked pairs and padding rows.
void attention_scores(const AttentionScoresBlock &block, Operands operands) {
  const auto &scores = computed_scores[static_cast<int>(AttentionPass(block.pass))];
  *operands.results<double>(0, 0, Extent()) = double(scores.load(std::memory_order_relaxed));
}

ORCHARD_FUNCTION("attentionForward", attention_forward, AttentionForwardBlock, attention_forward_operands + 1)
ORCHARD_FUNCTION("attentionBackward", attention_backward, AttentionBackwardBlock, attention_backward_operands + 1)
ORCHARD_FUNCTION("attentionDropoutMask", attention_dropout_mask, AttentionDropoutMaskBlock, 2)
ORCHARD_FUNCTION("attentionScores", attention_scores, AttentionScoresBlock, 1)

} // namespace
