// The functions "attentionStep" and "attentionStepMany": a few new tokens of each sequence attend to one another and to
// earlier tokens, whose keys and values are in rooms: preallocated rows of a cache.
//
// q and k are rotated by their positions, k and v are written to their rows of the room, and out is the attention of q
// to the rows up to its position.
//
// The result has the same bits as the functions "rope", "copy" and "attentionForward" in sequence; for rooms of q8_0
// blocks, the same as "rope", "packQ8", "dequantize" and "attentionForward".
#include "attention.h"
#include "pack_q8.h"

#include "../conversion/conversion.h"
#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../position/rope.h"
#include "tuning.h"

#include <atomic>
#include <cmath>
#include <cstring>

using namespace orchard;

namespace {

using tuning::attention::row_elements;

constexpr int64_t most_rooms = 11;

[[noreturn]] void refuse(const std::string &expected, int64_t got) {
  fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected " + expected + ", got " + std::to_string(got));
}

int64_t checked(const char *name, int64_t size, int64_t least, int64_t most) {
  if (size < least || size > most)
    refuse(std::string(name) + " of " + std::to_string(least) + " to " + std::to_string(most), size);
  return size;
}

int64_t size_of(DType dtype) { return dtype_sizes[static_cast<int>(dtype)]; }

DType float_of(DType dtype) {
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("expected floats for attention, got ") + dtype_names[static_cast<int>(dtype)]);
  return dtype;
}

// A sequence, as described by the caller. It uses `rows` rows of its room, from `first` up to its last new token.
// `keys` and `values` are the room's offset, `head` stride and `row` stride.
struct StepSequence {
  Whole room, position, first, rows;
  Whole keys[3], values[3];
};
constexpr int64_t sequence_numbers = sizeof(StepSequence) / sizeof(Whole);

// The operands are q, k, v, cycles, sequences, out, and the keys and values of each room.
class Step {
public:
  Step(const AttentionStepHead &block, const Operands &operands, int64_t rooms)
      : dtype_(float_of(block.dtype)), room_dtype_(float_of(block.room_dtype)), is_packed_(block.is_packed),
        count_(checked("a number of sequences", block.sequences, 1, 1 << 16)),
        tokens_(checked("tokens", block.tokens, 1, tuning::attention::few_queries)),
        heads_(checked("heads", block.heads, 1, 1 << 16)),
        kv_heads_(checked("heads of keys", block.kv_heads, 1, heads_)), dim_(checked("a row", block.dim, 1, 1 << 16)),
        value_dim_(checked("a row of values", block.value_dim, 1, 1 << 16)), rope_(rope_of(block)),
        phases_(rope_.pairs), queries_(scratch_product({query_count(), size_of(dtype_)})),
        rounded_(is_rounded() ? scratch_product({query_count(), size_of(room_dtype_)}) : 0),
        attended_(is_rounded() ? scratch_product({out_count(), size_of(room_dtype_)}) : 0) {
    if (is_packed_ && (dim_ % q8_values != 0 || value_dim_ % q8_values != 0))
      refuse("rows in blocks of 32", dim_ % q8_values != 0 ? dim_ : value_dim_);
    if (heads_ % kv_heads_ != 0) refuse("heads of keys that " + std::to_string(heads_) + " heads share", kv_heads_);
    read_cycles(operands.inputs<double>(3, 0, Extent(rope_.pairs)));
    for (int at = 0; at < 3; at++) {
      inputs_[at] = {nullptr, block.sequence_strides[at], block.head_strides[at], block.token_strides[at], 1};
      const Extent extent = Extent(at == 2 ? value_dim_ : dim_)
                                .along(count_, inputs_[at].batch)
                                .along(at == 0 ? heads_ : kv_heads_, inputs_[at].head)
                                .along(tokens_, inputs_[at].row);
      inputs_[at].data = const_cast<char *>(operands.input(at, dtype_, block.offsets[at], extent));
    }
    out_ = operands.result(5, dtype_, block.offsets[3], Extent(out_count()));
    read_sequences(operands.inputs<Whole>(4, 0, Extent(count_ * sequence_numbers)), operands, rooms);
    problem_ = problem_of(block);
  }

  void run() {
    write_rows();
    if (!is_finite_)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected finite keys and values, with scales that a float16 has, for a cache "
                                         "in q8_0");
    const char *queries = queries_.data();
    if (is_rounded()) convert(queries, dtype_, rounded_.data(), room_dtype_, query_count());
    problem_.q = {is_rounded() ? rounded_.data() : queries_.data(), 0, dim_, heads_ * dim_, 1};
    problem_.out = {is_rounded() ? attended_.data() : out_, 0, value_dim_, heads_ * value_dim_, 1};
    attention_forward_kernels().run[static_cast<int>(room_dtype_)](problem_);
    if (is_rounded()) convert(attended_.data(), room_dtype_, out_, dtype_, out_count());
  }

private:
  bool is_rounded() const { return dtype_ != room_dtype_; }
  int64_t query_count() const { return scratch_product({count_, tokens_, heads_, dim_}); }
  int64_t out_count() const { return scratch_product({count_, tokens_, heads_, value_dim_}); }

  static Rope rope_of(const AttentionStepHead &block) {
    Rope rope = checked_rope(block.interleaved, block.pairs, block.dim, block.magnitude);
    rope.stride = rope.out_stride = 1;
    return rope;
  }

  void read_cycles(const double *cycles) {
    for (int64_t pair = 0; pair < rope_.pairs; pair++) phases_.data()[pair] = phase_of(cycles[pair]);
    rope_.phases = phases_.data();
  }

  void read_sequences(const Whole *numbers, const Operands &operands, int64_t rooms) {
    for (int64_t at = 0; at < count_; at++, numbers += sequence_numbers) {
      const StepSequence &given = *reinterpret_cast<const StepSequence *>(numbers);
      const int room = int(checked("a room", given.room, 0, rooms - 1));
      const int64_t first = checked("a first row", given.first, 0, largest_whole),
                    rows = checked("rows of a room", given.rows, tokens_, largest_whole);
      positions_.push_back(given.position);
      keys_.push_back(read_room(operands, 6 + 2 * room, given.keys, first, rows, dim_));
      values_.push_back(read_room(operands, 7 + 2 * room, given.values, first, rows, value_dim_));
      sequences_.push_back({at, 0, at * tokens_, tokens_, 0, rows});
    }
    for (int64_t at = 0; at < count_; at++)
      sequences_[size_t(at)].own_keys = &keys_[size_t(at)], sequences_[size_t(at)].own_values = &values_[size_t(at)];
  }

  // Returns the rows of a room from `first` on.
  AttentionOperand read_room(const Operands &operands, int index, const Whole (&layout)[3], int64_t first, int64_t rows,
                             int64_t size) const {
    int64_t skipped, offset;
    if (__builtin_mul_overflow(first, int64_t(layout[2]), &skipped) ||
        __builtin_add_overflow(skipped, int64_t(layout[0]), &offset))
      refuse("a first row inside of a room", first);
    AttentionOperand operand{nullptr, 0, layout[1], layout[2], 1, is_packed_};
    const Extent extent =
        Extent(is_packed_ ? bytes_of(size) : size).along(kv_heads_, operand.head).along(rows, operand.row);
    operand.data = operands.result(index, is_packed_ ? 1 : size_of(room_dtype_), offset, extent);
    return operand;
  }

  AttentionProblem problem_of(const AttentionStepHead &block) const {
    AttentionProblem problem{};
    problem.dtype = room_dtype_;
    problem.batch = 1, problem.heads = heads_, problem.kv_heads = kv_heads_, problem.group = heads_ / kv_heads_;
    problem.queries = count_ * tokens_;
    problem.dim = dim_, problem.value_dim = value_dim_;
    problem.scale = block.scale, problem.softcap = block.softcap;
    if (!(block.left >= 0)) refuse_number(block.left, "a band of at least 0");
    problem.left = static_cast<int64_t>(std::min(double(block.left), double(AttentionProblem::unbounded)));
    problem.right = 0, problem.is_bottom_right = true;
    problem.sequences = sequences_;
    for (const AttentionSequence &sequence : sequences_) problem.keys = std::max(problem.keys, sequence.keys);
    return problem;
  }

  static void convert(const void *from, DType from_dtype, void *to, DType to_dtype, int64_t count) {
    conversions().rows[static_cast<int>(from_dtype)][static_cast<int>(to_dtype)](&from, to, count);
  }

  char *element_of(const AttentionOperand &operand, DType dtype, int64_t sequence, int64_t head, int64_t row) const {
    return operand.data + operand.at(sequence, head, row) * size_of(dtype);
  }

  void write_rows() {
    const int64_t rows = count_ * tokens_, table = 2 * rope_.pairs,
                  at_once = std::max<int64_t>(1, row_elements / (heads_ * dim_ + kv_heads_ * (dim_ + value_dim_)));
    ScratchSlots<double> slots(divided_up(rows, at_once), table + 3 * dim_ + std::max(dim_, value_dim_));
    parallel_for(rows, at_once, [&](int64_t begin, int64_t end) {
      slots.with([&](double *scratch) {
        for (int64_t row = begin; row < end; row++) write_row(row / tokens_, row % tokens_, scratch);
      });
    });
  }

  // Rotates the queries of one token, and writes its keys and values to the room. `scratch` has room for a table of the
  // rotation, two rows to rotate, one row, and one for its conversion.
  void write_row(int64_t sequence, int64_t token, double *scratch) {
    const int dtype = static_cast<int>(dtype_);
    double *cosines = scratch, *sines = scratch + rope_.pairs, *rows = sines + rope_.pairs, *rotated = rows + 2 * dim_,
           *converted = rotated + dim_;
    ropes().table[dtype](rope_, positions_[size_t(sequence)] + token, cosines, sines);
    char *query = queries_.data() + (sequence * tokens_ + token) * heads_ * dim_ * size_of(dtype_);
    for (int64_t head = 0; head < heads_; head++, query += dim_ * size_of(dtype_))
      ropes().rotate[dtype](rope_, cosines, sines, element_of(inputs_[0], dtype_, sequence, head, token), query, rows);
    const AttentionOperand &keys = keys_[size_t(sequence)], &values = values_[size_t(sequence)];
    const int64_t at = sequences_[size_t(sequence)].keys - tokens_ + token;
    for (int64_t head = 0; head < kv_heads_; head++) {
      ropes().rotate[dtype](rope_, cosines, sines, element_of(inputs_[1], dtype_, sequence, head, token), rotated,
                            rows);
      keep(rotated, room_row(keys, head, at), dim_, converted);
      keep(element_of(inputs_[2], dtype_, sequence, head, token), room_row(values, head, at), value_dim_, converted);
    }
  }

  char *room_row(const AttentionOperand &room, int64_t head, int64_t row) const {
    return is_packed_ ? room.data + room.at(0, head, row) : element_of(room, room_dtype_, 0, head, row);
  }

  void keep(const void *row, char *to, int64_t count, double *converted) {
    if (is_packed_) pack(row, to, count, reinterpret_cast<float *>(converted));
    else if (is_rounded()) convert(row, dtype_, to, room_dtype_, count);
    else std::memcpy(to, row, size_t(count * size_of(dtype_)));
  }

  void pack(const void *row, char *to, int64_t count, float *converted) {
    convert(row, dtype_, converted, DType::float32, count);
    if (!pack_q8_row(converted, count, to)) is_finite_ = false;
  }

  static int64_t bytes_of(int64_t values) { return values / q8_values * q8_bytes; }

  const DType dtype_, room_dtype_;
  const bool is_packed_;
  std::atomic<bool> is_finite_{true};
  const int64_t count_, tokens_, heads_, kv_heads_, dim_, value_dim_;
  Rope rope_;
  Scratch<uint64_t> phases_;
  Scratch<char> queries_, rounded_, attended_;
  AttentionOperand inputs_[3];
  char *out_ = nullptr;
  std::vector<int64_t> positions_;
  std::vector<AttentionOperand> keys_, values_;
  std::vector<AttentionSequence> sequences_;
  AttentionProblem problem_{};
};

// Sequences of one room, as one batch.
void attention_step(const AttentionStepBlock &block, Operands operands) { Step(block, operands, 1).run(); }

// Sequences in several rooms.
void attention_step_many(const AttentionStepManyBlock &block, Operands operands) {
  Step(block, operands, most_rooms).run();
}

ORCHARD_FUNCTION("attentionStep", attention_step, AttentionStepBlock, 8)
ORCHARD_FUNCTION("attentionStepMany", attention_step_many, AttentionStepManyBlock, 6 + 2 * most_rooms)

} // namespace
