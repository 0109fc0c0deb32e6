// Programs: lists of recorded calls that run as one native call (src/compile).
//
// A fused instruction computes a chain of elementwise calls in pieces that stay in the L1 cache. Each element gets the
// same operations as without fusion (elementwise/segments.h), so every result has the same bits. The calls after a
// product are its epilogue: they compute parts of rows, as soon as a thread has completed a part of the product's
// result.
#include "../elementwise/segments.h"
#include "../include/orchard_cpu_program.h"
#include "../matmul/product.h"
#include "../parallel.h"
#include "../tuning.h"
#include "table.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

using namespace orchard;

namespace {

enum class Code : int32_t { call = 0, check = 1, fused = 2, product = 3 };
constexpr int64_t most_fused_doubles = 64;
using tuning::program::parallel_elements;
constexpr int64_t no_epilogue = -1; // rows of no result

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

// The failure of the first part that failed, in the order of places.
class FirstFailure {
public:
  template <class Do> void guard(int64_t place, Do &&run) {
    try {
      run();
    } catch (const Failure &thrown) {
      keep(place, thrown);
    } catch (const std::bad_alloc &) {
      keep(place, {ORCHARD_CPU_OUT_OF_MEMORY, "the machine has no memory left"});
    }
  }
  void rethrow() const {
    if (failure_.status != ORCHARD_CPU_OK) throw failure_;
  }

private:
  void keep(int64_t place, const Failure &thrown) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.status == ORCHARD_CPU_OK || place < place_) failure_ = thrown, place_ = place;
  }

  std::mutex mutex_;
  int64_t place_ = 0;
  Failure failure_{ORCHARD_CPU_OK, ""};
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
    const auto code = static_cast<Code>(reader_.below(4));
    if (code == Code::check) return check();
    if (code == Code::call) call();
    else if (code == Code::product) product();
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

  // Computes a piece. A block ends with the operands' sizes.
  void run_call(const FusedCall &call, const Chain &chain, const Piece &piece, char *locals) const {
    double block[most_fused_doubles];
    std::memcpy(block, call.block, size_t(call.doubles) * sizeof(double));
    double *sizes = block + call.doubles - call.operands, *shape = block + call.count;
    const bool is_part = piece.columns != chain.width;
    shape[0] = double(piece.count);
    if (is_part) shape[1] = double(piece.columns);
    void *operands[most_fused_operands];
    for (int64_t at = 0; at < call.operands; at++) {
      const FusedOperand &operand = call.operand[at];
      double *strides = shape + max_rank * (at + 1);
      if (operand.kind == OperandKind::local) {
        operands[at] = locals + operand.place * chain.local_bytes();
        sizes[at] = double(chain.local_bytes());
        block[operand.offset] = 0;
        if (is_part) strides[0] = double(piece.columns), strides[1] = 1;
      } else if (operand.place < 0) {
        operands[at] = nullptr;
      } else {
        operands[at] = addresses_[size_t(operand.place)];
        block[operand.offset] += double(operand.step * piece.start);
        if (is_part) block[operand.offset] += strides[1] * double(piece.column);
      }
    }
    call.function->call(block, Operands(operands, reinterpret_cast<const Whole *>(sizes)));
  }

  // Passes units through all calls, some at a time.
  void run_pieces(const Segments &segments, int64_t start, int64_t end, int64_t column, int64_t columns) const {
    const Chain &chain = chain_;
    thread_local std::vector<char> buffers;
    const size_t needed = size_t(segments.local_bytes() + 64);
    if (buffers.size() < needed) buffers.resize(needed);
    char *aligned = buffers.data() + (64 - reinterpret_cast<uintptr_t>(buffers.data()) % 64) % 64;
    // parts of several rows are not dense, so that calls would copy them
    const int64_t units = columns == chain.width ? chain.piece : 1;
    segments.fill(aligned);
    for (int64_t at = start; at < end; at += units)
      for (const Segment &segment : segments.all()) {
        const Piece piece{at, std::min(units, end - at), column, columns};
        if (segment.kind != Segment::Kind::other) segments.run(segment, piece, aligned);
        else run_call(chain.calls[size_t(segment.call)], chain, piece, aligned);
      }
    segments.finish();
  }

  void run_chain(const Segments &segments) const {
    const int64_t elements = chain_.piece * chain_.width;
    const int64_t grain = std::max<int64_t>(1, parallel_elements / elements) * chain_.piece;
    FirstFailure failure;
    parallel_for(chain_.units, grain, [&](int64_t begin, int64_t end) {
      failure.guard(begin, [&] { run_pieces(segments, begin, end, 0, chain_.width); });
    });
    failure.rethrow();
  }

  void read_chain() {
    const int64_t calls = reader_.below(1 << 20);
    chain_.units = reader_.whole(), chain_.piece = reader_.below(1 << 20, 1);
    chain_.width = reader_.below(1 << 20, 1), chain_.locals = reader_.below(1 << 10);
    if (chain_.units < 0 || chain_.piece * chain_.width >= 1 << 20)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected at least 0 units, and pieces of less than 2^20 elements");
    chain_.calls.clear();
    for (int64_t at = 0; at < calls; at++) chain_.calls.push_back(read_fused_call(chain_.locals));
  }

  void fused() {
    read_chain();
    run_chain(Segments(chain_, addresses_.data()));
  }

  void product() {
    const ExportedFunction &function = function_of(static_cast<int32_t>(reader_.whole()));
    if (std::strcmp(function.name, "matmul") != 0)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, std::string(function.name) + ": expected a matrix product");
    const double *block = block_of(doubles_of(function));
    void *operands[matmul_operands];
    for (void *&operand : operands) {
      const int64_t slot = reader_.below(slots_, -1);
      operand = slot < 0 ? nullptr : addresses_[size_t(slot)];
    }
    read_chain();
    for (const FusedCall &call : chain_.calls) check_nest(call);
    const Segments segments(chain_, addresses_.data());
    struct Context {
      const Program &program;
      const Segments &segments;
      FirstFailure failure;
    } context{*this, segments, {}};
    Epilogue epilogue{[](void *given, const ResultPart &part) {
                        auto &own = *static_cast<Context *>(given);
                        const Program &all = own.program;
                        own.failure.guard(part.row * all.chain_.width + part.column, [&] {
                          all.run_pieces(own.segments, part.row, part.end_row, part.column,
                                         part.end_column - part.column);
                        });
                      },
                      &context};
    const auto &of = *reinterpret_cast<const MatmulBlock *>(block);
    if (of.n != chain_.width) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected units of a row of the product's result");
    const auto *bytes = reinterpret_cast<const Whole *>(reinterpret_cast<const char *>(block) + function.block_bytes);
    // On one thread, the calls are 1 to 2 % faster after the product, since they evict its packed operands. On two, a
    // fork-join less makes 512 x 512 x 128 with gelu 7 % faster.
    const int64_t rows = threads_at_hand() > 1 ? chain_.units : no_epilogue;
    multiply_then(of, Operands(operands, bytes), rows, epilogue);
    context.failure.rethrow();
    if (!epilogue.is_taken) run_chain(segments);
  }

  // Checks that a call's nest has room for two axes.
  static void check_nest(const FusedCall &call) {
    if (call.count + max_rank * (call.operands + 1) > call.doubles - call.operands)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, std::string(call.function->name) + " can't follow a product");
  }

  Reader reader_;
  const double *blocks_;
  int64_t doubles_, slots_;
  std::vector<void *> addresses_, operands_;
  Chain chain_{};
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
