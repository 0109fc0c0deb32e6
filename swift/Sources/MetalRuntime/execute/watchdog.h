// Ends dispatches that run too long.
#pragma once

#include "execute/launch.h"

#include <chrono>
#include <pthread.h>

namespace mrt {

// While it lives, the launch is watched: once its time is over, it is marked as timed out, and the threads that run it
// are interrupted repeatedly until they have left.
class Watch {
public:
  explicit Watch(Launch &launch);
  ~Watch();
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

private:
  Launch &launch_;
};

// While it lives, the calling thread runs threadgroups of the launch.
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
