// Runs parallel loops of many sizes on several numbers of threads, from several callers, with and without sleep between
// them. Checks that each block ran exactly once, and completely, before parallel_for returned. Prints how many were
// wrong.
//
// With the word "time" it prints instead what fork and join take: the nanoseconds from the call until all threads have
// met in the body and the call returned.
#include "../../native/cpu/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sys/resource.h>
#include <thread>
#include <vector>

using namespace orchard;

namespace {

using Clock = std::chrono::steady_clock;

// Threads write what no other thread may write at the same time, and the caller reads it without synchronization.
int wrong_blocks(int64_t count, int64_t grain) {
  std::vector<int> runs(count, 0);
  std::atomic<int> bad{0};
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    if (begin % grain != 0 || end != std::min(begin + grain, count)) bad++;
    for (int64_t i = begin; i < end; i++) runs[i]++;
  });
  return bad + static_cast<int>(count - std::count(runs.begin(), runs.end(), 1));
}

int wrong_works(int rounds) {
  int wrong = 0;
  for (int round = 0; round < rounds; round++) {
    wrong += wrong_blocks(1 + round * 37 % 900, 1 + round * 11 % 40);
    if (round % 200 == 199) std::this_thread::sleep_for(std::chrono::milliseconds(3)); // helpers sleep too
  }
  return wrong;
}

// Each block waits for the one before it. Inside a body, parallel_for uses a single thread.
int wrong_chains(int rounds) {
  int wrong = 0;
  for (int round = 0; round < rounds; round++) {
    const int64_t blocks = 1 + round % 40;
    std::atomic<int64_t> over{0};
    std::atomic<int> crowded{0};
    parallel_for(blocks, 1, [&](int64_t block, int64_t) {
      while (over < block) std::this_thread::yield();
      over++;
      if (blocks > 1 && threads_at_hand() != 1) crowded++;
    });
    wrong += crowded + static_cast<int>(blocks - over) + (threads_at_hand() != thread_count());
  }
  return wrong;
}

// As many long blocks as threads, and a few more: the caller waits for blocks that other threads are running.
int wrong_waits(int rounds) {
  int wrong = 0;
  for (int round = 0; round < rounds; round++) {
    const int64_t blocks = thread_count() + round % 3;
    std::vector<int> over(blocks, 0);
    parallel_for(blocks, 1, [&](int64_t block, int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(block == 0 ? 100 : 600));
      over[block] = 1;
    });
    wrong += static_cast<int>(blocks - std::count(over.begin(), over.end(), 1));
  }
  return wrong;
}

int64_t switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

// A call of two blocks wakes one helper at most, however many sleep. Each sleep is a voluntary context switch.
int wrong_wakes(int rounds) {
  set_thread_count(12);
  std::atomic<int> ran{0};
  auto call = [&](int64_t blocks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3)); // the caller switches, and helpers fall asleep
    parallel_for(blocks, 1, [&](int64_t, int64_t) { ran++; });
  };
  call(12);
  call(2);
  const int64_t before = switches();
  for (int round = 0; round < rounds; round++) call(2);
  const bool is_counted = switches() > before; // not by every system
  return (ran == 14 + 2 * rounds ? 0 : 1) + (is_counted && switches() - before > 6 * rounds ? 1 : 0);
}

int check() {
  int wrong = wrong_wakes(60);
  for (int threads : {1, 2, 3, 6, 2}) {
    set_thread_count(threads);
    wrong += wrong_works(1000) + wrong_chains(400) + wrong_waits(30);
  }
  std::atomic<int> of_callers{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; caller++) callers.emplace_back([&] { of_callers += wrong_works(1000); });
  for (std::thread &caller : callers) caller.join();
  return wrong + of_callers;
}

int64_t meeting(int threads) {
  std::atomic<int> there{0};
  const auto start = Clock::now();
  parallel_for(threads, 1, [&](int64_t, int64_t) {
    for (there++; there < threads && Clock::now() - start < std::chrono::milliseconds(1);) {
    }
  });
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

void time_meetings() {
  for (int threads = 2; threads <= available_processors(); threads *= 2) {
    set_thread_count(threads);
    std::vector<int64_t> taken;
    for (int round = 0; round < 20000; round++) taken.push_back(meeting(threads));
    std::sort(taken.begin(), taken.end());
    std::printf("%d threads: %lld ns at the median, %lld at the 90th percentile\n", threads,
                static_cast<long long>(taken[taken.size() / 2]), static_cast<long long>(taken[taken.size() * 9 / 10]));
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc > 1 && std::strcmp(argv[1], "time") == 0) return time_meetings(), 0;
  std::printf("%d\n", check());
}
