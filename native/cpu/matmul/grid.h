// Divides a result into tasks of equal size, so that threads finish at the same time and read little memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace orchard {

// Returns the number of threads that minimizes the time of a product. With w µs of work on one thread and 0.15 µs of
// fork-join cost per thread (2.5 µs for 16 threads), w / n + 0.15 n is least at n = √(w / 0.15); at 100 GFLOP/s that is
// √(operations / 15000).
inline int64_t threads_worth(double operations, int64_t threads) {
  constexpr double least_operations = 1e6, square = 15000;
  if (operations < least_operations) return 1;
  return std::clamp<int64_t>(int64_t(std::sqrt(operations / square)), 1, threads);
}

// The size of a result in units of the kernel: tile heights, and panels of columns.
struct GridShape {
  int64_t rows, panels;
  int64_t most_rows; // limit on the rows of a task
};

struct GridTask {
  int64_t rows, panels;
};

// Returns the task size with which `threads` threads, which claim tasks one by one, finish first. The overhead of a
// task, in units of the time for one tile: 0.2 to claim the task; 2 for each tile height, whose rows are packed; and 2
// for each panel of columns, which is read from another core's cache.
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
