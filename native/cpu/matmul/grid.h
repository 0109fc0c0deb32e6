// Divides a result into tasks of equal size, so that threads finish together and read little.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace orchard {

// Returns the number of threads that a product is worth. With w µs of work on one thread and 0.15 µs per thread (a
// fork-join takes 2.5 µs on 16), w / n + 0.15 n is least at n = √(w / 0.15): at 100 GFLOP/s, √(operations / 15000).
inline int64_t threads_worth(double operations, int64_t threads) {
  constexpr double least_operations = 1e6, square = 15000;
  if (operations < least_operations) return 1;
  return std::clamp<int64_t>(int64_t(std::sqrt(operations / square)), 1, threads);
}

// A result in units of the kernel: tile heights of rows, and panels of columns.
struct GridShape {
  int64_t rows, panels;
  int64_t most_rows; // of a task
};

struct GridTask {
  int64_t rows, panels;
};

// Returns the task size for which `threads` threads, which claim tasks one by one, take the least time. A task's
// overhead, in units of one tile's time: a fraction to claim it, two for each height of rows, which is packed, and two
// for each panel of columns, which comes from another cache.
inline GridTask best_task(const GridShape &shape, int64_t threads) {
  constexpr double task_cost = 0.2, row_cost = 2, panel_cost = 2;
  constexpr int64_t most_rounds = 4, most_rows = 32; // limits of the search
  auto divided_up = [](int64_t value, int64_t by) { return (value + by - 1) / by; };
  GridTask best{std::min(shape.rows, shape.most_rows), shape.panels};
  double least = INFINITY;
  for (int64_t rows = std::min(best.rows, most_rows); rows > 0 && threads > 1; rows--) {
    const int64_t row_tasks = divided_up(shape.rows, rows);
    for (int64_t rounds = 1; rounds <= most_rounds; rounds++) {
      const int64_t parts = std::clamp<int64_t>(rounds * threads / row_tasks, 1, shape.panels),
                    panels = divided_up(shape.panels, parts), tasks = row_tasks * divided_up(shape.panels, panels);
      const double task = double(rows * panels) + row_cost * double(rows) + panel_cost * double(panels) + task_cost,
                   time = double(divided_up(tasks, threads)) * task;
      if (time < least) least = time, best = {rows, panels};
    }
  }
  return best;
}

} // namespace orchard
