// The mean of losses.
#pragma once

// Dense losses and the weights of their targets, both of float32 or float64.
#include "../../.build/generated/mean_loss_block.h"

#include "../bounds.h"
