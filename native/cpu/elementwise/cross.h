// The block of the function "cross".
#pragma once

// The nest covers all axes except the vectors' axis. `strides` are the strides of a, b and the result along that axis.
#include "../../.build/generated/cross_block.h"

#include "../nest.h"
