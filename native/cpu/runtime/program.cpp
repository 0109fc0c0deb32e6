// Programs: lists of recorded calls that run as one native call (src/compile).
//
// A fused instruction computes a chain of elementwise calls in pieces that stay in the L1 cache. It calls the same
// functions on each piece, so every result has the same bits as without fusion.
#include "../include/orchard_cpu_program.h"
#include "../parallel.h"
#include "table.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace orchard;

namespace {

enum class Code : int32_t { call = 0, check = 1, fused = 2 };
enum class OperandKind : int32_t { memory = 0, local = 1 };

// The largest element has 8 bytes.
constexpr int64_t largest_element = 8;
constexpr int64_t most_fused_operands = 4;
constexpr int64_t most_fused_doubles = 64;
// Pieces are given to threads in groups with this many elements.
constexpr int64_t parallel_elements = 1 << 14;

// Reads the words of a program. Every index is checked.
class Reader {
public:
  Reader(const int32_t *words, int64_t count) : words_(words), count_(count) {}
  bool at_end() const { return next_ == count_; }
  int64_t whole() {
    if (next_ >= count_) fail(ORCHARD_CPU_INVALID_ARGUMENT, "the program ends within an instruction");
    return words_[next_++];
  }
  int64_t below(int64_t limit, int64_t least = 0) {
    const int64_t value = whole();
    if (value < least || value >= limit)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a number from " + std::to_string(least) + " to " +
                                             std::to_string(limit - 1) + " in the program, got " +
                                             std::to_string(value));
    return value;
  }

private:
  const int32_t *words_;
  int64_t count_, next_ = 0;
};

struct FusedOperand {
  OperandKind kind;
  int64_t place;  // a slot or a local buffer; -1 if the operand is omitted
  int64_t offset; // the index of its offset in the block
  int64_t step;   // the elements from one unit to the next
};

// A call in a fused instruction, whose block each thread copies.
struct FusedCall {
  const ExportedFunction *function;
  const double *block;
  int64_t doubles, operands, count; // `count`: the index of the number of units in the block
  FusedOperand operand[most_fused_operands];
};

class Program {
public:
  Program(Reader reader, const double *blocks, int64_t doubles, const double *addresses, int64_t slots)
      : reader_(reader), blocks_(blocks), doubles_(doubles), slots_(slots), addresses_(size_t(slots)) {
    for (int64_t at = 0; at < slots; at++)
      addresses_[size_t(at)] =
          reinterpret_cast<void *>(static_cast<uintptr_t>(static_cast<int64_t>(Whole{addresses[at]})));
  }

  bool at_end() const { return reader_.at_end(); }

  // Runs an instruction. Returns false if it is a check that stops the program.
  bool step() {
    const auto code = static_cast<Code>(reader_.below(3));
    if (code == Code::check) return check();
    if (code == Code::call) call();
    else fused();
    return true;
  }

private:
  const double *block_of(int64_t length) {
    if (length > doubles_) fail(ORCHARD_CPU_INVALID_ARGUMENT, "a block of the program is out of bounds");
    return blocks_ + reader_.below(doubles_ - length + 1);
  }

  static int64_t doubles_of(const ExportedFunction &function) {
    return static_cast<int64_t>(function.block_bytes / sizeof(double)) + function.operands;
  }

  void call() {
    const auto ordinal = static_cast<int32_t>(reader_.whole());
    const ExportedFunction &function = function_of(ordinal);
    const int64_t rows = reader_.below(1 << 24);
    const double *block = block_of(doubles_of(function) * std::max<int64_t>(rows, 1));
    const int64_t operands = function.operands * std::max<int64_t>(rows, 1);
    operands_.resize(size_t(operands));
    for (void *&operand : operands_) {
      const int64_t slot = reader_.below(slots_, -1);
      operand = slot < 0 ? nullptr : addresses_[size_t(slot)];
    }
    if (rows == 0) {
      const auto *bytes = reinterpret_cast<const Whole *>(reinterpret_cast<const char *>(block) + function.block_bytes);
      function.call(block, Operands(operands_.data(), bytes));
      return;
    }
    const ExportedRows::Call by_rows = rows_of(ordinal);
    if (!by_rows) fail(ORCHARD_CPU_INVALID_ARGUMENT, std::string(function.name) + ": expected no rows");
    by_rows({reinterpret_cast<const char *>(block), operands_.data(), rows});
  }

  bool check() {
    const void *found = addresses_[size_t(reader_.below(slots_))];
    const void *expected = addresses_[size_t(reader_.below(slots_))];
    const int64_t bytes = reader_.whole();
    if (bytes < 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a number of bytes of at least 0");
    return std::memcmp(found, expected, size_t(bytes)) == 0;
  }

  FusedCall read_fused_call(int64_t locals) {
    FusedCall call;
    call.function = &function_of(static_cast<int32_t>(reader_.whole()));
    call.operands = call.function->operands;
    call.doubles = doubles_of(*call.function);
    if (call.operands > most_fused_operands || call.doubles > most_fused_doubles)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, std::string(call.function->name) + " can't be fused");
    call.block = block_of(call.doubles);
    const int64_t fields = call.doubles - call.operands;
    call.count = reader_.below(fields);
    for (int64_t at = 0; at < call.operands; at++) {
      FusedOperand &operand = call.operand[at];
      operand.kind = static_cast<OperandKind>(reader_.below(2));
      operand.place = operand.kind == OperandKind::local ? reader_.below(locals) : reader_.below(slots_, -1);
      operand.offset = reader_.below(fields);
      operand.step = reader_.below(1 << 20);
    }
    return call;
  }

  // Computes `count` units from `start` on. The block ends with the operands' sizes.
  void run_piece(const FusedCall &call, int64_t start, int64_t count, char *locals, int64_t local_bytes) const {
    double block[most_fused_doubles];
    std::memcpy(block, call.block, size_t(call.doubles) * sizeof(double));
    double *sizes = block + call.doubles - call.operands;
    block[call.count] = double(count);
    void *operands[most_fused_operands];
    for (int64_t at = 0; at < call.operands; at++) {
      const FusedOperand &operand = call.operand[at];
      if (operand.kind == OperandKind::local) {
        operands[at] = locals + operand.place * local_bytes;
        sizes[at] = double(local_bytes);
        block[operand.offset] = 0;
      } else if (operand.place < 0) {
        operands[at] = nullptr;
      } else {
        operands[at] = addresses_[size_t(operand.place)];
        block[operand.offset] += double(operand.step * start);
      }
    }
    call.function->call(block, Operands(operands, reinterpret_cast<const Whole *>(sizes)));
  }

  void fused() {
    const int64_t calls = reader_.below(1 << 20), count = reader_.whole(), piece = reader_.below(1 << 20, 1);
    const int64_t width = reader_.below(1 << 20, 1);
    const int64_t locals = reader_.below(1 << 10), local_bytes = piece * width * largest_element;
    if (count < 0 || piece * width >= 1 << 20)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected at least 0 units, and pieces of less than 2^20 elements");
    chain_.clear();
    for (int64_t at = 0; at < calls; at++) chain_.push_back(read_fused_call(locals));
    const int64_t grain = std::max<int64_t>(1, parallel_elements / (piece * width));
    const int64_t pieces = (count + piece - 1) / piece, blocks = (pieces + grain - 1) / grain;
    std::vector<Failure> failures(size_t(blocks), Failure{ORCHARD_CPU_OK, ""});
    parallel_for(pieces, grain, [&](int64_t begin, int64_t end) {
      Failure &failure = failures[size_t(begin / grain)];
      try {
        thread_local std::vector<char> buffers;
        const size_t needed = size_t(locals * local_bytes + 64);
        if (buffers.size() < needed) buffers.resize(needed);
        char *aligned = buffers.data() + (64 - reinterpret_cast<uintptr_t>(buffers.data()) % 64) % 64;
        for (int64_t at = begin; at < end; at++) {
          const int64_t start = at * piece;
          for (const FusedCall &call : chain_)
            run_piece(call, start, std::min(piece, count - start), aligned, local_bytes);
        }
      } catch (const Failure &thrown) {
        failure = thrown;
      } catch (const std::bad_alloc &) {
        failure = {ORCHARD_CPU_OUT_OF_MEMORY, "the machine has no memory left"};
      }
    });
    for (const Failure &failure : failures)
      if (failure.status != ORCHARD_CPU_OK) throw failure;
  }

  Reader reader_;
  const double *blocks_;
  int64_t doubles_, slots_;
  std::vector<void *> addresses_, operands_;
  std::vector<FusedCall> chain_;
};

} // namespace

int32_t orchard_cpu_run_program(const int32_t *program, int32_t words, const double *blocks, int32_t doubles,
                                const double *addresses, int32_t slots, double *stopped) {
  return guarded([&] {
    if (!program || !blocks || !addresses || !stopped || words < 0 || doubles < 0 || slots < 0)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a program, blocks and addresses");
    *stopped = 0;
    Program run(Reader(program, words), blocks, doubles, addresses, slots);
    while (!run.at_end() && run.step()) *stopped += 1;
  });
}
