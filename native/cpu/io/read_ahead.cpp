// The function "readAhead": a separate thread reads the pages of an operand from disk and enters them into the
// process's page table, while the caller continues. Otherwise, the first thread that touches a page waits for both
// steps.
//
// A range may be unmapped before the thread reads it. Then the system call fails, or another mapping is at the same
// address and its pages are read instead. Both are harmless, since the thread itself accesses no memory.
#include "read_ahead.h"

#include "../functions.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <system_error>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace orchard;

namespace {

// Ranges are populated in parts of this size: the kernel holds the lock on the address space while it populates a part,
// and the caller maps its next tensor at the same time.
constexpr size_t part_bytes = size_t(1) << 20;

struct Range {
  char *first;
  size_t bytes;
};

struct Queue {
  std::mutex mutex;
  std::deque<Range> ranges;
  bool is_read = false; // whether a thread is reading
};

// Never destroyed: the thread may still run while static destructors run at exit.
Queue &queue() {
  static Queue *const instance = new Queue;
  return *instance;
}

bool populate(char *first, size_t bytes) {
#if defined(MADV_POPULATE_READ)
  if (madvise(first, bytes, MADV_POPULATE_READ) == 0) return true;
#endif
  return madvise(first, bytes, MADV_WILLNEED) == 0;
}

void read(const Range &range) {
  for (size_t done = 0; done < range.bytes; done += part_bytes)
    if (!populate(range.first + done, std::min(part_bytes, range.bytes - done))) return;
}

// Reads until the queue is empty.
void read_all() {
  Queue &pending = queue();
  std::unique_lock<std::mutex> lock(pending.mutex);
  for (; !pending.ranges.empty(); lock.lock()) {
    const Range range = pending.ranges.front();
    pending.ranges.pop_front();
    lock.unlock();
    read(range);
  }
  pending.is_read = false;
}

void read_ahead(const ReadAheadBlock &block, Operands operands) {
  const char *data = operands.input(0, 1, block.offset, Extent(block.bytes));
  const int64_t bytes = block.bytes;
  if (bytes == 0) return;
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t before = reinterpret_cast<uintptr_t>(data) % page;
  Queue &pending = queue();
  const std::lock_guard<std::mutex> lock(pending.mutex);
  pending.ranges.push_back({const_cast<char *>(data) - before, size_t(bytes) + before});
  if (pending.is_read) return;
  try {
    std::thread(read_all).detach();
    pending.is_read = true;
  } catch (const std::system_error &) {
    pending.ranges.clear(); // without a thread, pages are read when they are used
  }
}

ORCHARD_FUNCTION("readAhead", read_ahead, ReadAheadBlock, 1)

} // namespace
