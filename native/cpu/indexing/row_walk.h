// The runs of a loop nest, whose offsets follow from those of the run before. Divisions would take longer than moving a
// few elements.
#pragma once

#include "../nest.h"

namespace orchard {

// Calls use(offsets, first, length, next) for the runs that make up the elements [begin, end), in order, like
// for_each_run. `next` has the offsets of the run after it, if there is one that begins before `end`.
template <int operands, class Use> void walk_runs(const Nest<operands> &nest, int64_t begin, int64_t end, Use &&use) {
  const int64_t run = nest.run_length();
  int64_t index[max_rank] = {}, offsets[operands], next[operands];
  if (begin >= end) return;
  const int64_t inside = begin % run;
  int64_t rest = begin / run;
  for (int axis = nest.rank - 2; axis >= 0; axis--) index[axis] = rest % nest.shape[axis], rest /= nest.shape[axis];
  nest.find_offsets(begin - inside, next);
  for (int64_t first = begin; first < end;) {
    const int64_t skipped = first == begin ? inside : 0, part = std::min(end - first, run - skipped);
    for (int operand = 0; operand < operands; operand++)
      offsets[operand] = next[operand] + skipped * nest.run_stride(operand);
    for (int axis = nest.rank - 2; axis >= 0; axis--) {
      const bool goes_on = ++index[axis] < nest.shape[axis];
      const int64_t steps = goes_on ? 1 : 1 - nest.shape[axis];
      for (int operand = 0; operand < operands; operand++) next[operand] += steps * nest.strides[operand][axis];
      if (goes_on) break;
      index[axis] = 0;
    }
    use(offsets, first, part, next);
    first += part;
  }
}

} // namespace orchard
