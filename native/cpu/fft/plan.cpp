#include "plan.h"

#include <algorithm>
#include <cmath>

namespace orchard {

namespace {

// Returns the radices of n in the order of the passes: powers of two as 8, 4 and 2, then odd primes.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> radices;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) twos++;
  for (; twos > 4 || twos == 3; twos -= 3) radices.push_back(8);
  for (; twos >= 2; twos -= 2) radices.push_back(4);
  if (twos == 1) radices.push_back(2);
  for (int64_t prime = 3; n > 1; prime += 2)
    for (; n % prime == 0; n /= prime) radices.push_back(prime);
  return radices;
}

// The approximate time of a pass per element, in passes of radix 4.
double cost_of_radix(int64_t radix) {
  if (radix == 2) return 0.7;
  if (radix == 3) return 0.95;
  if (radix == 4) return 1;
  if (radix == 5) return 1.3;
  if (radix == 8) return 1.5;
  return 0.8 + 0.2 * double(radix);
}

double cost_of_passes(int64_t n) {
  double cost = 0;
  for (const int64_t radix : radices_of(n)) cost += cost_of_radix(radix);
  return cost;
}

// The share of lanes in use is 1 / filling(n) if n elements are divided into vectors.
double filling(int64_t n, int64_t lanes) { return double((n + lanes - 1) / lanes * lanes) / double(n); }

// The approximate time of a split transform per element.
double cost_of_split(int64_t a, int64_t b, int64_t lanes) {
  using tuning::fft::moves;
  const double spilled = std::max(0.0, std::log2(double(std::max(a, b)) / 64)) * 0.15;
  return (cost_of_passes(a) + moves) * filling(b, lanes) + (cost_of_passes(b) + moves) * filling(a, lanes) + spilled;
}

// Returns the best first factor of n, or 0 if n is prime.
int64_t best_factor(int64_t n, int64_t lanes) {
  int64_t best = 0;
  double least = 0;
  auto consider = [&](int64_t a) {
    const double cost = cost_of_split(a, n / a, lanes);
    if (best == 0 || cost < least) best = a, least = cost;
  };
  for (int64_t a = 2; a <= n / a; a++)
    if (n % a == 0) {
      consider(a);
      consider(n / a);
    }
  return best;
}

template <class T> void put(std::vector<T> &table, Root root) {
  table.push_back(T(root.re));
  table.push_back(T(root.im));
}

} // namespace

// The angle is reduced to an eighth of a turn, so that its rounding error stays below that of the result.
Root root_of_unity(int64_t k, int64_t n) {
  constexpr double turn = 6.283185307179586476925286766559;
  const int64_t eighths = 8 * k / n; // in [0, 8)
  auto at = [&](int64_t part) { return turn * (double(part) / double(n)) / 8; };
  const int64_t k8 = 8 * k;
  double c, s; // of the angle itself
  auto set = [&](double angle, bool is_swapped, double c_sign, double s_sign) {
    const double x = std::cos(angle), y = std::sin(angle);
    c = c_sign * (is_swapped ? y : x);
    s = s_sign * (is_swapped ? x : y);
  };
  switch (eighths) {
  case 0: set(at(k8), false, 1, 1); break;
  case 1: set(at(2 * n - k8), true, 1, 1); break;
  case 2: set(at(k8 - 2 * n), true, -1, 1); break;
  case 3: set(at(4 * n - k8), false, -1, 1); break;
  case 4: set(at(k8 - 4 * n), false, -1, -1); break;
  case 5: set(at(6 * n - k8), true, -1, -1); break;
  case 6: set(at(k8 - 6 * n), true, 1, -1); break;
  default: set(at(8 * n - k8), false, 1, -1); break;
  }
  return {c, -s};
}

bool is_smooth(int64_t n) {
  for (int64_t factor = 2; factor <= largest_radix && n > 1; factor++)
    while (n % factor == 0) n /= factor;
  return n <= 1;
}

int64_t padded_length(int64_t n, int64_t lanes) {
  int64_t best = 0;
  double least = 0;
  for (int64_t fives = 1; fives <= 2 * n; fives *= 5)
    for (int64_t threes = fives; threes <= 2 * n; threes *= 3) {
      int64_t length = threes;
      while (length < n) length *= 2;
      if (length > 2 * n) continue;
      double each = cost_of_passes(length);
      if (length > longest_in_lanes) {
        const int64_t a = best_factor(length, lanes);
        each = cost_of_split(a, length / a, lanes);
      }
      const double cost = each * double(length);
      if (best == 0 || cost < least) best = length, least = cost;
    }
  return best;
}

template <class T> std::shared_ptr<const Passes<T>> make_passes(int64_t n) {
  auto made = std::make_shared<Passes<T>>();
  made->length = n;
  std::vector<std::pair<size_t, size_t>> places; // of twiddles and roots in the tables
  int64_t s = 1;
  for (const int64_t radix : radices_of(n)) {
    const int64_t m = n / s / radix;
    const size_t twiddles = made->tables.size();
    for (int64_t p = 0; p < m; p++)
      for (int64_t j = 1; j < radix; j++) put(made->tables, root_of_unity(p * j, m * radix));
    const size_t roots = made->tables.size();
    for (int64_t j = 0; j < radix; j++) put(made->tables, root_of_unity(j, radix));
    made->stages.push_back({radix, m, s, nullptr, nullptr});
    places.emplace_back(twiddles, roots);
    s *= radix;
  }
  for (size_t at = 0; at < places.size(); at++) {
    made->stages[at].twiddles = made->tables.data() + places[at].first;
    made->stages[at].roots = made->tables.data() + places[at].second;
  }
  return made;
}

template <class T> std::shared_ptr<const Split<T>> make_split(int64_t n, int64_t lanes) {
  const int64_t a = best_factor(n, lanes);
  if (a == 0) return nullptr;
  const int64_t b = n / a;
  auto made = std::make_shared<Split<T>>();
  made->first = make_passes<T>(a);
  made->second = make_passes<T>(b);
  made->blocks = (b + lanes - 1) / lanes;
  made->twiddles.resize(size_t(a * made->blocks * 2 * lanes));
  for (int64_t k = 0; k < a; k++)
    for (int64_t j = 0; j < b; j++) {
      const Root root = root_of_unity(k * j, n);
      T *block = made->twiddles.data() + (k * made->blocks + j / lanes) * 2 * lanes + j % lanes;
      block[0] = T(root.re);
      block[lanes] = T(root.im);
    }
  return made;
}

template std::shared_ptr<const Passes<float>> make_passes<float>(int64_t);
template std::shared_ptr<const Passes<double>> make_passes<double>(int64_t);
template std::shared_ptr<const Split<float>> make_split<float>(int64_t, int64_t);
template std::shared_ptr<const Split<double>> make_split<double>(int64_t, int64_t);

} // namespace orchard
