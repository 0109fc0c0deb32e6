// The activations of kernels/formulas/activations.h.
#pragma once

#include "inverse.h"
#include "softplus.h"

#include "../../../kernels/formulas/activations.h"
