// A folder that one process has for itself.
#pragma once

#include <string>

namespace mrt {

// Makes a folder for this process below TMPDIR, or /tmp, and says which; it goes when the process ends. Some programs
// end without `atexit`'s handlers, and others are killed: folders that such processes left are removed here. Where no
// folder can be made, the name is one that does not exist.
std::string make_temporary_folder();

} // namespace mrt
