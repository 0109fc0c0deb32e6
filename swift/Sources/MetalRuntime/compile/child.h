// A program that runs for this process: within limits, and no longer than it.
#pragma once

#include <cstdint>

namespace mrt {

constexpr uint64_t compiler_memory = uint64_t(4) << 30;

struct ChildExit {
  bool started = false, timed_out = false;
  int status = 0; // as waitpid gives it
};

constexpr int stream_count = 4;

// Its first streams are `files`: the standard ones, and one more to read. It takes up to `compiler_memory`, writes
// files of up to `longest_file` bytes, and is ended after `limit` milliseconds.
ChildExit run_child(char *const *arguments, const int *files, uint64_t longest_file, int64_t limit);

} // namespace mrt
