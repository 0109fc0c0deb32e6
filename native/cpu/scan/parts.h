// Scans of a long slice on several threads.
#pragma once

#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <atomic>
#include <memory>
#include <thread>

namespace orchard {

// The carried values before each part of a slice, which become available once the previous parts are done.
template <class Number> class Prefixes {
public:
  Prefixes(int64_t parts) : numbers_(parts), known_(new std::atomic<bool>[static_cast<size_t>(parts)]()) {}

  void set(int64_t part, Number number) {
    numbers_.data()[part] = number;
    known_[static_cast<size_t>(part)].store(true, std::memory_order_release);
  }
  // Waits for the previous part, which another thread has already started.
  Number wait_for(int64_t part) {
    while (!known_[static_cast<size_t>(part)].load(std::memory_order_acquire)) std::this_thread::yield();
    return numbers_.data()[part];
  }

private:
  Scratch<Number> numbers_;
  std::unique_ptr<std::atomic<bool>[]> known_;
};

// Scans a slice, reading memory once. A thread sums its part, waits for the prefix, passes the total on to the next
// part, and scans its part while that is still in its cache (Merrill and Garland, "Single-pass Parallel Prefix Scan
// with Decoupled Look-back", 2016). The parts depend on the length only, so the results do too.
//
// total(begin, count) is the sum of a part, joined(before, next) the sum of two totals, and run(begin, count, before)
// scans a part.
template <class Number, class Total, class Joined, class Run>
void run_parts(int64_t length, Total &&total, Joined &&joined, Run &&run) {
  using tuning::scan::part_elements;
  const int64_t parts = (length - 1) / part_elements + 1;
  Prefixes<Number> prefixes(parts);
  parallel_for(length, part_elements, [&](int64_t begin, int64_t end) {
    const int64_t part = begin / part_elements, count = end - begin;
    const Number own = total(begin, count), before = part > 0 ? prefixes.wait_for(part) : total(0, 0);
    if (part + 1 < parts) prefixes.set(part + 1, joined(before, own));
    run(begin, count, before);
  });
}

} // namespace orchard
