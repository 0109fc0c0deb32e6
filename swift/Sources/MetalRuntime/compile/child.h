// Runs a child program with limits; it ends with this process at the latest.
#pragma once

#include <cstdint>

namespace mrt {

constexpr uint64_t compiler_memory = uint64_t(4) << 30;

struct ChildExit {
  bool started = false, timed_out = false;
  int status = 0; // in waitpid's format
};

constexpr int stream_count = 4;

// Runs a program with `files` as its first file descriptors: the standard streams, and one more to read. It may use
// `compiler_memory` bytes of memory and write files of up to `longest_file` bytes, and is killed after `limit`
// milliseconds.
ChildExit run_child(char *const *arguments, const int *files, uint64_t longest_file, int64_t limit);

} // namespace mrt
