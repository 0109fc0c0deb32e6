// Files of compiled kernels, named by the hash of all their inputs. Several processes may share the folder: a file
// appears atomically and has a checksum, and a damaged file is discarded. If the folder can't be used, this process
// uses a temporary one, and prints a warning once. The setting cache_limit bounds the folder: the least recently used
// files are removed.
#pragma once

#include "compile/cached_file.h"

#include <string>

namespace mrt {

// Returns the current folder for files; never empty.
std::string cache_folder();
// Returns a name for a new file in cache_folder(), unique among all processes.
std::string cache_temporary(const std::string &suffix);
// Called after a failed write: from now on a temporary folder is used. Returns false if it already is.
bool cache_give_up(const std::string &reason);

// Returns the file with this name, in the cache or in an archive, once its checksum has been verified.
CachedFile cache_find(const std::string &name);
// Appends the checksum to the file at `temporary` and moves it to its name. Returns an empty file if that fails.
CachedFile cache_store(const std::string &name, const std::string &temporary);
// The same without a checksum. If another process has stored the file already, that file is kept. Then evicts files
// over the limit.
CachedFile cache_move(const std::string &name, const std::string &temporary);

bool cache_read(const std::string &name, std::string &content);
bool cache_write(const std::string &name, const std::string &content);

// From now on, also searches this folder.
void cache_add_archive(const std::string &folder);
bool cache_copy_to(const std::string &path, const std::string &folder, std::string &problem);

bool read_file(const std::string &path, std::string &content);

} // namespace mrt
