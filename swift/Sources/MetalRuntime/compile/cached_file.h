// Files that several processes share and may remove.
#pragma once

#include <cstdint>
#include <string>

namespace mrt {

// An advisory lock (flock) on a file or a folder, against other processes and other threads of this one. It is released
// when the process ends, even if it is killed. On a file system without such locks, it has no effect.
class FileLock {
public:
  FileLock() = default;
  FileLock(const std::string &path, int operation); // LOCK_SH, LOCK_EX, with LOCK_NB
  FileLock(FileLock &&other) noexcept;
  FileLock &operator=(FileLock &&other) noexcept;
  ~FileLock();

  bool holds() const { return locked; }
  int descriptor() const { return file; } // -1 if the file can't be opened

private:
  int file = -1;
  bool locked = false;
};

// A cache file in use: while this object exists, no process that evicts files removes it. Its modification time is the
// time of its last use.
class CachedFile {
public:
  CachedFile() = default;
  explicit CachedFile(std::string path); // empty if the file is missing, or is being removed

  bool is_there() const { return !path_.empty(); }
  const std::string &path() const { return path_; } // empty if it is missing
  void moved_to(std::string path) { path_ = std::move(path); }

private:
  std::string path_;
  FileLock lock;
};

// Removes the least recently used files of the cache until the rest uses at most `limit` bytes; 0: no limit. Keeps
// files in use, and files that do not belong to the cache. The caller must hold the folder's lock.
void remove_least_recently_used(const std::string &folder, int64_t limit);

} // namespace mrt
