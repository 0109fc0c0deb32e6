// A temporary folder for one process.
#pragma once

#include <string>

namespace mrt {

// Creates a folder for this process in TMPDIR, or /tmp, and returns its path. It is removed when the process ends.
// Processes that were killed, or ended without running `atexit` handlers, leave their folders behind; this function
// removes those. If no folder can be created, the path does not exist.
std::string make_temporary_folder();

} // namespace mrt
