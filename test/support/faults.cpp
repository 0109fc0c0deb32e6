// Functions of a small dylib for the tests of `bun run check:sanitize`: each has one fault, which one sanitizer finds.
// Built together with native/cpu/runtime.
#include "../../native/cpu/elementwise/segments.h"
#include "../../native/cpu/functions.h"
#include "../../native/cpu/matmul/product.h"
#include "../../native/cpu/memory.h"
#include "../../native/cpu/parallel.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace orchard {

// Programs of the runtime run products and chains, of which this dylib has none.
void multiply_then(const MatmulBlock &, Operands, int64_t, Epilogue &) {
  fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected no product");
}
Segments::Segments(const Chain &chain, void *const *) : chain_(chain) {
  fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected no chain");
}
void Segments::fill(char *) const {}
void Segments::run(const Segment &, const Piece &, char *) const {}
void Segments::finish() const {}

namespace {

struct CountBlock {
  Whole count;
};

volatile int64_t sink;

template <class T> const T *first_of(Operands operands, int index, int64_t count) {
  return operands.inputs<T>(index, 0, Extent(count));
}

// A function without a fault.
void sum(const CountBlock &block, Operands operands) {
  const auto *x = first_of<int8_t>(operands, 0, block.count);
  int64_t total = 0;
  for (int64_t i = 0; i < block.count; i++) total += x[i];
  sink = total;
}

// Rejects a call unless the first and second operand are the same memory, `shift` bytes after a multiple of 64, and
// contain the numbers 1 to `period`, repeated.
struct PlacedBlock {
  Whole count, shift, period;
};
void placed(const PlacedBlock &block, Operands operands) {
  const auto *x = first_of<uint8_t>(operands, 0, block.count), *y = first_of<uint8_t>(operands, 1, block.count);
  bool is_right = x == y && reinterpret_cast<uintptr_t>(x) % 64 == uintptr_t(int64_t(block.shift));
  for (int64_t i = 0; i < block.count; i++) is_right = is_right && x[i] == uint8_t(i % block.period + 1);
  if (!is_right) fail(ORCHARD_CPU_INVALID_ARGUMENT, "the operands are not placed as they were");
}

void read_one_too_many(const CountBlock &block, Operands operands) {
  const auto *x = first_of<int8_t>(operands, 0, block.count);
  int64_t total = 0;
  for (int64_t i = 0; i <= block.count; i++) total += x[i];
  sink = total;
}

void read_one_before(const CountBlock &, Operands operands) { sink = first_of<int8_t>(operands, 0, 1)[-1]; }

void write_behind_scratch(const CountBlock &block, Operands) {
  Scratch<int8_t> scratch(int64_t(block.count));
  std::memset(scratch.data(), 0, static_cast<size_t>(int64_t(block.count)) + 1);
  sink = scratch.data()[0];
}

void overflow(const CountBlock &block, Operands) {
  volatile int32_t largest = INT32_MAX - static_cast<int32_t>(int64_t(block.count));
  for (int64_t i = 0; i <= block.count; i++) largest = largest + 1;
  sink = largest;
}

// Threads add to one number without a lock. On a busy machine the first thread could finish before a second one wakes:
// it waits for one, without ordering their additions. A caller that finds the pool taken computes alone.
void race(const CountBlock &block, Operands) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const std::thread::id first = std::this_thread::get_id();
  std::atomic<bool> has_second{threads_at_hand() == 1};
  int64_t total = 0;
  parallel_for(block.count, 1, [&](int64_t begin, int64_t end) {
    if (std::this_thread::get_id() != first) has_second.store(true, std::memory_order_relaxed);
    else
      while (!has_second.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < limit)
        std::this_thread::yield();
    total += end - begin;
  });
}

ORCHARD_FUNCTION("sum", sum, CountBlock, 1)
ORCHARD_FUNCTION("placed", placed, PlacedBlock, 2)
ORCHARD_FUNCTION("readOneTooMany", read_one_too_many, CountBlock, 1)
ORCHARD_FUNCTION("readOneBefore", read_one_before, CountBlock, 1)
ORCHARD_FUNCTION("writeBehindScratch", write_behind_scratch, CountBlock, 1)
ORCHARD_FUNCTION("overflow", overflow, CountBlock, 1)
ORCHARD_FUNCTION("race", race, CountBlock, 1)

} // namespace
} // namespace orchard
