// The blocks of the functions "fold" and "unfold".
#pragma once

#include "convolution.h"

namespace orchard {

constexpr int fold_axes = 2;

// Windows [planes, …kernel, …output] and images [planes, …input], both contiguous. Along an axis, element k of window p
// belongs to element p · stride + k · dilation of the image; elements beyond its end are ignored.
struct FoldBlock {
  DTypeField dtype;
  Whole planes;
  Whole input[fold_axes], output[fold_axes], kernel_size[fold_axes];
  Whole stride[fold_axes], dilation[fold_axes];
  Whole offsets[2];
};

// The inverse: images [planes, …input] and windows [planes, …kernel, …output], both contiguous. Element k of window p
// is element p · stride + k · dilation − before of the image; 0 outside of it.
struct UnfoldBlock {
  DTypeField dtype;
  Whole planes;
  Whole input[fold_axes], output[fold_axes], kernel_size[fold_axes];
  Whole stride[fold_axes], dilation[fold_axes], before[fold_axes];
  Whole offsets[2];
};

} // namespace orchard
