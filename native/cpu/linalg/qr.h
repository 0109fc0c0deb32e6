#pragma once

#include "matrices.h"

namespace orchard {

struct GeqrfBlock {
  DTypeField dtype;
  Whole batch;
  Whole rows;
  Whole columns;
};

// `width`: the columns of Q, of which there are none where R alone is wanted.
struct QrBlock {
  DTypeField dtype;
  Whole batch;
  Whole rows;
  Whole columns;
  Whole width;
};

// `width`: the columns of the result.
struct HouseholderProductBlock {
  DTypeField dtype;
  Whole batch;
  Whole rows;
  Whole columns;
  Whole reflectors;
  Whole width;
};

struct OrmqrBlock {
  DTypeField dtype;
  Whole batch;
  Whole rows;
  Whole columns;
  Whole reflectors;
  Whole width;
  Flag transpose;
};

} // namespace orchard
