// The blocks of the indexing functions. Indices are int64 or int32; indices out of range are rejected.
#pragma once

// The nest is over x, with stride 0 along the indexed axis, the index and the output. `size` is the length of the
// indexed axis, and `stride` is x's stride along it.
// - wraps: whether negative indices count from the end
#include "../../.build/generated/gather_block.h"

// `rows` describes all axes of x but the last, whose length is `columns`. The output is dense.
// - stride: x's stride from one column to the next
#include "../../.build/generated/triangle_block.h"

// The nest is over the index. The output is int64 and dense.
#include "../../.build/generated/one_hot_block.h"

// - except: an index that is accepted although out of range
#include "../../.build/generated/find_out_of_range_block.h"

// - dtype: int64 or int32
// - sizes: for each list: the length of the axis that it indexes
// - offset: of the flat indices
#include "../../.build/generated/index_places_block.h"

// Describes `count` dense offsets.
#include "../../.build/generated/find_descent_block.h"

#include "../nest.h"

namespace orchard {

// Lists of indices, broadcast to one shape, and the flat indices computed from them. The last operand of the nest is
// dense.
constexpr int most_lists = std::extent_v<decltype(IndexPlacesBlock::sizes)>;

} // namespace orchard
