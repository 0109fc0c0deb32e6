// A file with the progress of a replay and the record that each thread is running. A sanitizer that finds something
// ends the process; then the parent process reads this file.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace replay {

constexpr int most_callers = 15;

// A thread's current work: the number of a record, or -1, and the function's name.
struct Running {
  std::atomic<int64_t> record;
  char name[56];

  void begin(int64_t number, std::string_view function) {
    size_t length = function.copy(name, sizeof name - 1);
    name[length] = '\0';
    record = number;
  }
  void end() { record = -1; }
};

// scripts/sanitize/replay.ts reads it: 64 bytes for the counts, and 64 for each thread.
struct State {
  std::atomic<int64_t> total, done;
  char unused[48];
  Running running[most_callers];
};
static_assert(sizeof(State) == 64 * (1 + most_callers));

inline State &open_state(const std::string &path) {
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  void *memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(State)) == 0)
    memory = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) throw std::runtime_error(path + " can't be written");
  State *state = new (memory) State;
  for (Running &running : state->running) running.end();
  return *state;
}

} // namespace replay
