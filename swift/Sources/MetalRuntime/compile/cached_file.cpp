#include "compile/cached_file.h"

#include <algorithm>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mrt {
namespace {

// A killed process may leave a temporary file. A compiling process needs its file for less time than this.
constexpr time_t seconds_of_a_new_file = 3600;

struct Candidate {
  std::string path;
  int64_t size;
  timespec used;
};

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// The file names that kernel_cache.h and clang.cpp create. A header's checksum is removed together with its header.
bool is_ours(std::string_view name) {
  constexpr size_t hash_length = 32;
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string_view stem = name.substr(0, dot), suffix = name.substr(dot);
  if (starts_with(name, "prelude-")) return suffix == ".pch";
  if (starts_with(name, "new-")) return true;
  return stem.size() == hash_length && stem.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         (suffix == ".so" || suffix == ".library" || suffix == ".whole");
}

std::vector<Candidate> candidates(const std::string &folder) {
  std::vector<Candidate> found;
  DIR *directory = opendir(folder.c_str());
  while (dirent *entry = directory ? readdir(directory) : nullptr) {
    struct stat facts;
    std::string path = folder + "/" + entry->d_name;
    if (!is_ours(entry->d_name) || lstat(path.c_str(), &facts) || !S_ISREG(facts.st_mode)) continue;
    bool is_being_written =
        starts_with(entry->d_name, "new-") && facts.st_mtim.tv_sec + seconds_of_a_new_file > time(nullptr);
    const timespec used = facts.st_mtim;
    const int64_t size = facts.st_size + (lstat((path + ".sum").c_str(), &facts) == 0 ? facts.st_size : 0);
    if (!is_being_written) found.push_back({path, size, used});
  }
  if (directory) closedir(directory);
  return found;
}

bool was_used_earlier(const Candidate &a, const Candidate &b) {
  return std::make_pair(a.used.tv_sec, a.used.tv_nsec) < std::make_pair(b.used.tv_sec, b.used.tv_nsec);
}

bool remove_unless_in_use(const std::string &path) {
  FileLock lock(path, LOCK_EX | LOCK_NB);
  if (!lock.holds() || unlink(path.c_str())) return false;
  unlink((path + ".sum").c_str());
  return true;
}

bool is_same_file(int descriptor, const std::string &path) {
  struct stat opened, named;
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

} // namespace

FileLock::FileLock(const std::string &path, int operation) : file(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  locked = file >= 0 && flock(file, operation) == 0;
}

FileLock::FileLock(FileLock &&other) noexcept
    : file(std::exchange(other.file, -1)), locked(std::exchange(other.locked, false)) {}

FileLock &FileLock::operator=(FileLock &&other) noexcept {
  std::swap(file, other.file);
  std::swap(locked, other.locked);
  return *this;
}

FileLock::~FileLock() {
  if (file >= 0) close(file);
}

// Another process may remove the file between opening and locking it.
CachedFile::CachedFile(std::string path) : lock(path, LOCK_SH) {
  if (lock.descriptor() < 0 || !is_same_file(lock.descriptor(), path)) return;
  futimens(lock.descriptor(), nullptr); // fails in a folder of another user; then the file's age counts
  path_ = std::move(path);
}

void remove_least_recently_used(const std::string &folder, int64_t limit) {
  if (!limit) return;
  std::vector<Candidate> files = candidates(folder);
  std::sort(files.begin(), files.end(), was_used_earlier);
  int64_t total = 0;
  for (const Candidate &file : files) total += file.size;
  for (const Candidate &file : files) {
    if (total <= limit) return;
    if (remove_unless_in_use(file.path)) total -= file.size;
  }
}

} // namespace mrt
