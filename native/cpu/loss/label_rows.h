// The margin loss of a row of scores with several targets, and its gradient: `multilabelMargin` of margin.h.
#pragma once

#include "../isa.h"

#include <cstdint>

namespace orchard {

constexpr int64_t label_lanes = 8; // the most numbers of a vector

struct LabelRow {
  const void *scores;
  const int64_t *targets;
  int64_t classes, count; // of scores, and of targets
  double scale;           // of the gradient
  void *gradient;         // null if only the loss is computed
  double *space;          // the temporary memory
};

// A row's temporary memory is `label_row_arrays` arrays of this many numbers. The first one holds the targets.
constexpr int64_t label_row_arrays = 5;
constexpr int64_t label_row_length(int64_t classes) { return classes + label_lanes; }

// Return the loss of a row, or with `gradient`, write the gradient times `scale` there and return 0.
struct LabelRows {
  double (*float64)(const LabelRow &row);
  double (*float32)(const LabelRow &row);
};

} // namespace orchard

ORCHARD_ISA_TABLE(LabelRows, label_rows)
