// Divides a result into tasks of equal size, so that threads finish at the same time and read little memory.
#pragma once

#include "tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace orchard {

// Returns the number of threads that minimizes the time of a product.
inline int64_t threads_worth(double operations, int64_t threads) {
  if (operations < tuning::matmul::least_operations) return 1;
  return std::clamp<int64_t>(int64_t(std::sqrt(operations / tuning::matmul::operations_of_threads)), 1, threads);
}

// The size of a result in units of the kernel: tile heights, and panels of columns.
struct GridShape {
  int64_t rows, panels;
  int64_t most_rows; // limit on the rows of a task
};

struct GridTask {
  int64_t rows, panels;
};

// Returns the task size with which `threads` threads, which claim tasks one by one, finish first.
inline GridTask best_task(const GridShape &shape, int64_t threads) {
  using namespace tuning::matmul;
  auto divided_up = [](int64_t value, int64_t by) { return (value + by - 1) / by; };
  GridTask best{std::min(shape.rows, shape.most_rows), shape.panels};
  double least = INFINITY;
  for (int64_t rows = std::min(best.rows, most_task_rows); rows > 0 && threads > 1; rows--) {
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
