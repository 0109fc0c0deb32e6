// The table of functions, for code that calls them by ordinal.
#pragma once

#include "../functions.h"

namespace orchard {

// Looks up a function by its ordinal. Throws Failure if there is none.
const ExportedFunction &function_of(int32_t ordinal);
// Returns the call for rows; null if the function does not take rows.
ExportedRows::Call rows_of(int32_t ordinal);

} // namespace orchard
