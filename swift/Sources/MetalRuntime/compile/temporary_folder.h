// A folder that only one process uses.
#pragma once

#include <string>

namespace mrt {

// Makes a folder for this process below TMPDIR, or /tmp, and returns its path. It is removed when the process ends.
// Some programs end without `atexit`'s handlers, and others are killed: folders that such processes left are removed
// here. If no folder can be made, the path does not exist.
std::string make_temporary_folder();

} // namespace mrt
