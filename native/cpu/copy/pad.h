// Borders whose elements are copies of a tensor's elements, and the gradient of such a tensor.
#pragma once

// The source of the elements beyond both ends of an axis: a constant, the nearest element, the mirror image without the
// element at the end, or the other end.
#include "../../.build/generated/pad_mode.h"

// The axes of the tensor without its border (`sizes`, with its strides), and the number of elements before and after
// each. The result is dense and row-major.
#include "../../.build/generated/pad_block.h"

// `strides` and `offset` describe the gradient of the result with its border.
#include "../../.build/generated/pad_gradient_block.h"

#include "../nest.h"
