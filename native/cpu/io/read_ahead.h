// Reads pages of mapped files into memory before they are used.
#pragma once

#include "../../.build/generated/read_ahead_block.h"

#include "../block.h"
