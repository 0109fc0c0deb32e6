// Measures the peak of one thread: independent fused multiply-adds of whole float32 vectors, with enough of them in
// flight to hide their latency. Prints GFLOP/s, the best of several tries.
#include "../../native/cpu/matmul/simd.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace orchard::ORCHARD_ISA;

namespace {

using V = Vector<float>;
constexpr int rounds = 20000, sums = 10;

double one_try() {
  const V f = V{} + 0.999f;
  V a = f, b = f, c = f, d = f, e = f, g = f, h = f, i = f, j = f, k = f;
  auto add = [&](V &sum) { sum = multiply_add<float>(f, f, sum); };
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds; round++) {
    add(a), add(b), add(c), add(d), add(e), add(g), add(h), add(i), add(j), add(k);
#if defined(__x86_64__)
    asm volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(g), "+v"(h), "+v"(i), "+v"(j), "+v"(k));
#else
    asm volatile("" : "+w"(a), "+w"(b), "+w"(c), "+w"(d), "+w"(e), "+w"(g), "+w"(h), "+w"(i), "+w"(j), "+w"(k));
#endif
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return 2.0 * lanes<float> * sums * rounds / taken.count() / 1e9;
}

} // namespace

int main() {
  double best = 0;
  for (int tries = 0; tries < 100; tries++) best = std::max(best, one_try());
  std::printf("%.1f\n", best);
}
