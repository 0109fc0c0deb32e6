// Files that several processes share, some of which may remove them.
#pragma once

#include <cstdint>
#include <string>

namespace mrt {

// An advisory lock (flock) on a file or a folder, against other processes and other threads of this one. It ends with
// its holder, however that ends. On a file system without such locks, nothing is locked and nothing waits.
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

// A cache file in use: as long as this lives, no process that evicts files removes it. Its modification time says when
// it was last used.
class CachedFile {
public:
  CachedFile() = default;
  explicit CachedFile(std::string path); // empty if the file is missing, or is just being removed

  bool is_there() const { return !path_.empty(); }
  const std::string &path() const { return path_; } // empty if it is missing
  void moved_to(std::string path) { path_ = std::move(path); }

private:
  std::string path_;
  FileLock lock;
};

// Removes the cache's least recently used files until the others use at most `limit` bytes; 0: no limit. Keeps files in
// use and files that are not the cache's. The caller holds the folder's lock.
void remove_least_recently_used(const std::string &folder, int64_t limit);

} // namespace mrt
