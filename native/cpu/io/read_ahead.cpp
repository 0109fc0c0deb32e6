// The function "readAhead": a thread of its own has the pages of an operand read and entered into the process's table,
// while the caller goes on. Without it each thread that comes to a page first waits for both.
//
// A mapping may be gone before its turn comes. The system then refuses, or finds another one in its place, of which it
// brings the pages: nothing is read or written here.
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

// While a part is populated nothing can be mapped: the caller maps its next tensor at the same time.
constexpr size_t part_bytes = size_t(1) << 20;

struct Range {
  char *first;
  size_t bytes;
};

struct Queue {
  std::mutex mutex;
  std::deque<Range> ranges;
  bool is_read = false; // by a thread
};

// Never destroyed: the thread may outlive what runs at the end of a process.
Queue &queue() {
  static Queue *const own = new Queue;
  return *own;
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

// Until there is nothing left.
void read_all() {
  Queue &own = queue();
  std::unique_lock<std::mutex> lock(own.mutex);
  for (; !own.ranges.empty(); lock.lock()) {
    const Range range = own.ranges.front();
    own.ranges.pop_front();
    lock.unlock();
    read(range);
  }
  own.is_read = false;
}

void read_ahead(const ReadAheadBlock &block, Operands operands) {
  const char *data = operands.input(0, 1, block.offset, Extent(block.bytes));
  const int64_t bytes = block.bytes;
  if (bytes == 0) return;
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t before = reinterpret_cast<uintptr_t>(data) % page;
  Queue &own = queue();
  const std::lock_guard<std::mutex> lock(own.mutex);
  own.ranges.push_back({const_cast<char *>(data) - before, size_t(bytes) + before});
  if (own.is_read) return;
  try {
    std::thread(read_all).detach();
    own.is_read = true;
  } catch (const std::system_error &) {
    own.ranges.clear(); // pages come when they are used
  }
}

ORCHARD_FUNCTION("readAhead", read_ahead, ReadAheadBlock, 1)

} // namespace
