#include "compile/kernel_cache.h"

#include "compile/content_hash.h"
#include "compile/temporary_folder.h"
#include "support/settings.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <set>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mrt {
namespace {

// Appended to each file; the loader and the readers here ignore it: a mark, and the checksum of the bytes before it.
constexpr std::string_view mark = "orchard\n";
constexpr size_t trailer_length = mark.size() + 32;

struct State {
  std::mutex mutex;
  std::string temporary; // this process's temporary folder, if it is needed
  std::string refused;   // the value of the setting that could not be used
  std::set<std::string> usable;
  std::vector<std::string> archives;
};
State &state() {
  static State *instance = new State;
  return *instance;
}

bool make_folders(const std::string &path) {
  for (size_t slash = 1; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    if (mkdir(path.substr(0, slash).c_str(), 0777) && errno != EEXIST) return false;
  }
  return true;
}

bool write_file(const std::string &path, std::string_view content, int flags) {
  int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (file < 0) return false;
  while (!content.empty()) {
    ssize_t written = write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return close(file), false;
    content.remove_prefix(size_t(written));
  }
  return close(file) == 0;
}

// Checks that the folder is writable and has room for a small library.
bool accepts_files(const std::string &folder) {
  std::string probe = folder + "/probe-" + std::to_string(getpid());
  bool written = write_file(probe, std::string(1 << 16, 'x'), O_CREAT | O_TRUNC);
  int reason = errno;
  unlink(probe.c_str());
  errno = reason;
  return written;
}

const std::string &temporary_folder(State &state) {
  if (state.temporary.empty()) state.temporary = make_temporary_folder();
  return state.temporary;
}

void say_once(State &state, const std::string &folder, const char *reason) {
  if (state.refused == folder) return;
  state.refused = folder;
  fprintf(stderr,
          "orchard: the folder of compiled kernels %s can't be used (%s); a temporary one takes its place. "
          "Set ORCHARD_METAL_CACHE to a folder that can be written.\n",
          folder.c_str(), reason);
}

bool verified(const std::string &path) {
  std::string content;
  if (!read_file(path, content)) return false;
  size_t length = content.size() < trailer_length ? 0 : content.size() - trailer_length;
  std::string_view view = content;
  bool whole = length && view.substr(length, mark.size()) == mark &&
               view.substr(length + mark.size()) == ContentHash().add(view.substr(0, length)).hexadecimal();
  if (!whole) unlink(path.c_str());
  return whole;
}

} // namespace

bool read_file(const std::string &path, std::string &content) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat facts;
  bool good = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
  content.resize(good ? size_t(facts.st_size) : 0);
  for (size_t done = 0; good && done < content.size();) {
    ssize_t got = read(file, content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) good = false;
    else done += size_t(got);
  }
  close(file);
  return good;
}

std::string cache_folder() {
  State &state = mrt::state();
  std::string folder = setting_text(Setting::cache);
  std::lock_guard<std::mutex> lock(state.mutex);
  if (folder.empty() || folder == state.refused) return temporary_folder(state);
  if (state.usable.count(folder) && access(folder.c_str(), W_OK) == 0) return folder;
  if (make_folders(folder) && accepts_files(folder)) return state.usable.insert(folder), folder;
  say_once(state, folder, strerror(errno));
  return temporary_folder(state);
}

std::string cache_temporary(const std::string &suffix) {
  static std::atomic<unsigned> count;
  return cache_folder() + "/new-" + std::to_string(getpid()) + "-" + std::to_string(count++) + suffix;
}

bool cache_give_up(const std::string &reason) {
  State &state = mrt::state();
  std::string folder = setting_text(Setting::cache);
  std::lock_guard<std::mutex> lock(state.mutex);
  if (folder.empty() || folder == state.refused) return false;
  say_once(state, folder, reason.c_str());
  return true;
}

CachedFile cache_find(const std::string &name) {
  std::vector<std::string> folders{cache_folder()};
  {
    State &state = mrt::state();
    std::lock_guard<std::mutex> lock(state.mutex);
    folders.insert(folders.end(), state.archives.begin(), state.archives.end());
  }
  for (const std::string &folder : folders) {
    CachedFile file(folder + "/" + name);
    if (file.is_there() && verified(file.path())) return file;
  }
  return {};
}

CachedFile cache_store(const std::string &name, const std::string &temporary) {
  std::string content;
  bool whole = read_file(temporary, content) &&
               write_file(temporary, std::string(mark) + ContentHash().add(content).hexadecimal(), O_APPEND);
  if (whole) return cache_move(name, temporary);
  unlink(temporary.c_str());
  return {};
}

// While a file is replaced, the folder's lock is held, so that processes that evict files do not see the name.
CachedFile cache_move(const std::string &name, const std::string &temporary) {
  const std::string folder = temporary.substr(0, temporary.rfind('/')), path = folder + "/" + name;
  FileLock lock(folder, LOCK_EX);
  CachedFile known(path), file(known.is_there() ? std::string() : temporary);
  if (file.is_there() && rename(temporary.c_str(), path.c_str()) == 0) {
    file.moved_to(path);
    if (lock.holds()) remove_least_recently_used(folder, setting_number(Setting::cache_limit));
    return file;
  }
  unlink(temporary.c_str());
  return known;
}

bool cache_read(const std::string &name, std::string &content) {
  CachedFile file = cache_find(name);
  if (!file.is_there() || !read_file(file.path(), content)) return false;
  content.resize(content.size() - trailer_length);
  return true;
}

bool cache_write(const std::string &name, const std::string &content) {
  std::string temporary = cache_temporary(".part");
  if (write_file(temporary, content, O_CREAT | O_EXCL)) return cache_store(name, temporary).is_there();
  unlink(temporary.c_str());
  return false;
}

void cache_add_archive(const std::string &folder) {
  State &state = mrt::state();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (std::find(state.archives.begin(), state.archives.end(), folder) == state.archives.end())
    state.archives.push_back(folder);
}

bool cache_copy_to(const std::string &path, const std::string &folder, std::string &problem) {
  std::string content, name = path.substr(path.rfind('/') + 1),
                       temporary = folder + "/new-" + std::to_string(getpid()) + "-" + name;
  bool copied = make_folders(folder) && read_file(path, content) && write_file(temporary, content, O_CREAT | O_TRUNC) &&
                rename(temporary.c_str(), (folder + "/" + name).c_str()) == 0;
  if (!copied) problem = "cannot write " + folder + "/" + name + ": " + strerror(errno);
  return copied;
}

} // namespace mrt
