// Ends dispatches that run too long.
#pragma once

#include "execute/launch.h"

#include <chrono>
#include <pthread.h>

namespace mrt {

// Watches the launch while it exists: after the time limit, marks the launch as timed out, and interrupts the threads
// that run it repeatedly until they have left.
class Watch {
public:
  explicit Watch(Launch &launch);
  ~Watch();
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

private:
  Launch &launch_;
};

// While it exists, the calling thread runs threadgroups of the launch.
class WatchedThread {
public:
  explicit WatchedThread(Launch &launch);
  ~WatchedThread();
  WatchedThread(const WatchedThread &) = delete;
  WatchedThread &operator=(const WatchedThread &) = delete;

private:
  Launch &launch_;
};

} // namespace mrt
