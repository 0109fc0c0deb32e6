// Files of compiled kernels, named by the hash of all that they depend on. Several processes may share the folder: a
// file appears whole or not at all, carries a checksum, and one that is damaged is discarded. Where the folder can't be
// used, a temporary one takes its place for this process, and a warning is printed once. The setting cache_limit bounds
// the folder: the least recently used files go.
#pragma once

#include "compile/cached_file.h"

#include <string>

namespace mrt {

// The folder for files now; never empty.
std::string cache_folder();
// A name for a new file in cache_folder(), unique among all processes.
std::string cache_temporary(const std::string &suffix);
// After a write that failed: use a temporary folder from now on. False where that is the case already.
bool cache_give_up(const std::string &reason);

// The file with this name, in the cache or in an archive, once its checksum has been verified.
CachedFile cache_find(const std::string &name);
// Puts the checksum to the file at `temporary` and moves it to its name; not there where that fails.
CachedFile cache_store(const std::string &name, const std::string &temporary);
// The same without the checksum. Where another process was faster, its file stays. Evicts files over the limit
// afterwards.
CachedFile cache_move(const std::string &name, const std::string &temporary);

bool cache_read(const std::string &name, std::string &content);
bool cache_write(const std::string &name, const std::string &content);

// Looks into this folder too from now on.
void cache_add_archive(const std::string &folder);
bool cache_copy_to(const std::string &path, const std::string &folder, std::string &problem);

bool read_file(const std::string &path, std::string &content);

} // namespace mrt
