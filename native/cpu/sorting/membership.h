// Tests whether elements are among others.
#pragma once

// Dense tensors of one dtype. The result is bool; `invert` negates it.
#include "../../.build/generated/isin_block.h"

#include "../bounds.h"
