#include "compile/temporary_folder.h"

#include "compile/cached_file.h"

#include <cstdlib>
#include <ctime>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mrt {
namespace {

constexpr std::string_view prefix = "orchard-kernels-";
// The file whose lock shows that the folder's process is still running.
constexpr const char *owner = "/owner";
// A folder without that file is being created, or its process was killed while creating it.
constexpr time_t seconds_of_a_new_folder = 3600;

struct Folder {
  std::string path;
  FileLock lock;
};

// The folder contains only files, no folders.
void remove_folder(const std::string &path) {
  if (DIR *directory = opendir(path.c_str())) {
    while (dirent *entry = readdir(directory)) unlink((path + "/" + entry->d_name).c_str());
    closedir(directory);
  }
  rmdir(path.c_str());
}

bool was_left(const std::string &path) {
  struct stat facts;
  if (lstat(path.c_str(), &facts) || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid()) return false;
  const time_t made = facts.st_mtim.tv_sec;
  if (lstat((path + owner).c_str(), &facts)) return made + seconds_of_a_new_folder < time(nullptr);
  return FileLock(path + owner, LOCK_EX | LOCK_NB).holds();
}

void remove_left_folders(const std::string &base) {
  DIR *directory = opendir(base.c_str());
  while (dirent *entry = directory ? readdir(directory) : nullptr) {
    if (std::string_view(entry->d_name).substr(0, prefix.size()) != prefix) continue;
    std::string path = base + "/" + entry->d_name;
    if (was_left(path)) remove_folder(path);
  }
  if (directory) closedir(directory);
}

// Until the folder is locked, another process may take it for an abandoned one and remove it. Then this function
// creates another one.
bool make_folder(const std::string &base, Folder &folder) {
  for (int attempt = 0; attempt < 16; attempt++) {
    folder.path = base + "/" + std::string(prefix) + "XXXXXX";
    if (!mkdtemp(folder.path.data())) return false;
    const std::string file = folder.path + owner;
    const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor >= 0) close(descriptor);
    folder.lock = FileLock(file, LOCK_EX);
    if (access(file.c_str(), F_OK) == 0) return true;
  }
  return false;
}

} // namespace

std::string make_temporary_folder() {
  const char *named = getenv("TMPDIR");
  const std::string base = named && *named ? named : "/tmp";
  remove_left_folders(base);
  static Folder *folder = new Folder; // its lock is held until the process ends
  if (make_folder(base, *folder)) atexit([] { remove_folder(folder->path); });
  return folder->path;
}

} // namespace mrt
