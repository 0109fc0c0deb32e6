// A stand-in for NCCL and for the part of NVIDIA's driver that orders its work. It exchanges host memory between
// processes through a file, and checks what NCCL leaves undefined: that all ranks make the same calls in the same order
// with equal counts, that handles exist, and that groups are closed. As on a GPU, calls only issue work: a thread per
// stream runs it in order. STANDIN_LOG is a file for calls and violations, STANDIN_GPU the identity of this process's
// GPU (default: its local rank), and STANDIN_FAIL the name of a call that fails with ncclSystemError.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr int ncclSystemError = 2, ncclInvalidArgument = 4, cudaInvalid = 400, cudaNotReady = 600;
constexpr size_t slot_bytes = 1 << 22;

void log(const std::string &line) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  static FILE *file = getenv("STANDIN_LOG")
                          ? fopen((std::string(getenv("STANDIN_LOG")) + "." + std::to_string(getpid())).c_str(), "a")
                          : nullptr;
  if (file) fprintf(file, "%s\n", line.c_str()), fflush(file);
}

int violation(const std::string &what, int code = ncclInvalidArgument) {
  log("violation: " + what);
  return code;
}

bool fails(const char *name) { return getenv("STANDIN_FAIL") && std::string(getenv("STANDIN_FAIL")) == name; }

// Work in order, on a thread.
struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool ends = false;
  std::thread thread{[this] { run(); }};

  void push(std::function<void()> job) {
    std::lock_guard lock(mutex);
    work.push_back(std::move(job));
    changed.notify_all();
  }
  void run() {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return ends || !work.empty(); });
      if (work.empty()) return;
      auto job = std::move(work.front());
      work.pop_front();
      lock.unlock();
      job();
    }
  }
  ~Stream() {
    {
      std::lock_guard lock(mutex);
      if (!work.empty()) violation("a stream is destroyed with work");
      ends = true;
      changed.notify_all();
    }
    thread.join();
  }
};

struct Event {
  std::atomic<bool> recorded{false}, reached{false};
};

struct Header {
  char call[24];
  uint64_t count;
  int32_t type, operation, root;
};

// State that the ranks of a communicator share.
struct Shared {
  std::atomic<uint64_t> arrived;
  char slots[];
};

struct Communicator {
  int rank, size;
  Shared *shared;
  uint64_t passed = 0;

  char *slot(int of) { return shared->slots + size_t(of) * (slot_bytes + sizeof(Header)); }
  // Waits until every rank has arrived as often as this one.
  void barrier() {
    passed += size;
    shared->arrived.fetch_add(1);
    while (shared->arrived.load() < passed) usleep(20);
  }
};

std::set<void *> &handles = *new std::set<void *>; // live ones; only the program's main thread calls
int open_groups = 0;
std::vector<std::function<void()>> &grouped = *new std::vector<std::function<void()>>;

size_t size_of(int type) {
  return type <= 1 ? 1 : type == 6 || type == 9 ? 2 : type == 4 || type == 5 || type == 8 ? 8 : 4;
}

template <typename Number> void add(void *into, const void *from, size_t count) {
  for (size_t at = 0; at < count; at++) static_cast<Number *>(into)[at] += static_cast<const Number *>(from)[at];
}

void sum(int type, void *into, const void *from, size_t count) {
  if (type == 7) add<float>(into, from, count);
  else if (type == 8) add<double>(into, from, count);
  else violation("sum of type " + std::to_string(type));
}

// Exchanges the operands through the slots; the sum is in the order of ranks, so it is the same on all of them.
void exchange(Communicator &on, Header header, const void *from, void *to) {
  const size_t bytes = header.count * size_of(header.type);
  if (bytes > slot_bytes) return void(violation("too many bytes for the stand-in"));
  memcpy(on.slot(on.rank), &header, sizeof header);
  memcpy(on.slot(on.rank) + sizeof header, from, bytes);
  on.barrier();
  for (int rank = 0; rank < on.size; rank++)
    if (memcmp(on.slot(rank), &header, sizeof header))
      violation("ranks make different calls: " + std::string(header.call));
  const bool gathers = !strcmp(header.call, "allGather");
  std::vector<char> result(gathers ? bytes * on.size : bytes);
  for (int rank = 0; rank < on.size; rank++) {
    const char *part = on.slot(rank) + sizeof header;
    if (gathers || rank == 0) memcpy(result.data() + (gathers ? rank * bytes : 0), part, bytes);
    else sum(header.type, result.data(), part, header.count);
  }
  on.barrier();
  if (header.root < 0 || header.root == on.rank) memcpy(to, result.data(), result.size());
}

int issue(const char *call, const void *from, void *to, size_t count, int type, int operation, int root, void *on,
          void *stream) {
  if (fails(call)) return ncclSystemError;
  if (!handles.count(on) || !handles.count(stream)) return violation(std::string(call) + " with an unknown handle");
  if (count && (!from || (!to && (root < 0 || root == static_cast<Communicator *>(on)->rank))))
    return violation(std::string(call) + " of no memory");
  if (operation != 0 || root >= static_cast<Communicator *>(on)->size)
    return violation(std::string(call) + " with a wrong argument");
  Header header = {};
  strncpy(header.call, call, sizeof header.call - 1);
  header.count = count, header.type = type, header.operation = operation, header.root = root;
  log(header.call + std::string(" ") + std::to_string(count) + " of type " + std::to_string(type));
  auto job = [=] { exchange(*static_cast<Communicator *>(on), header, from, to); };
  auto push = [=] { static_cast<Stream *>(stream)->push(job); };
  if (open_groups) grouped.push_back(push);
  else push();
  return 0;
}

template <typename Handle> int make(void **out, Handle *made) {
  handles.insert(made);
  *out = made;
  return 0;
}

const char *local_rank() {
  for (const char *name : {"STANDIN_GPU", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"})
    if (getenv(name)) return getenv(name);
  return "0";
}

} // namespace

extern "C" {

int cuCtxGetDevice(int *device) { return *device = 0, 0; }
int cuDeviceGetUuid_v2(char *uuid, int) { return memset(uuid, 0, 16), uuid[15] = char(16 + atoi(local_rank())), 0; }
int cuDeviceGetCount(int *count) { return *count = 2, 0; }
int cuStreamCreate(void **out, unsigned) { return make(out, new Stream); }
int cuStreamDestroy_v2(Stream *stream) {
  if (!handles.erase(stream)) return violation("an unknown stream is destroyed", cudaInvalid);
  return delete stream, 0;
}
int cuEventCreate(void **out, unsigned) { return make(out, new Event); }
int cuEventRecord(Event *event, Stream *stream) {
  if (!handles.count(event) || !handles.count(stream))
    return violation("cuEventRecord of an unknown handle", cudaInvalid);
  if (open_groups) return violation("an event inside a group", cudaInvalid);
  event->recorded = true;
  return stream->push([event] { event->reached = true; }), 0;
}
int cuEventQuery(Event *event) {
  if (!handles.count(event) || !event->recorded)
    return violation("cuEventQuery of an event without a record", cudaInvalid);
  return event->reached ? 0 : cudaNotReady;
}
int cuEventDestroy_v2(Event *event) {
  if (!handles.erase(event)) return violation("an unknown event is destroyed", cudaInvalid);
  if (!event->reached) return violation("an event is destroyed before it is reached", cudaInvalid);
  return delete event, 0;
}

int ncclGetVersion(int *version) { return *version = 22809, 0; }
const char *ncclGetErrorString(int code) {
  return code == ncclSystemError ? "unhandled system error" : "invalid argument";
}
int ncclGetUniqueId(char *id) {
  memset(id, 0, 128);
  snprintf(id, 128, "/dev/shm/orchard-standin-%d", getpid());
  return 0;
}
int ncclCommInitRankScalable(void **out, int size, int rank, int ids, const char *id, void *) {
  if (fails("ncclCommInitRankScalable")) return ncclSystemError;
  if (ids != 1 || rank < 0 || rank >= size || strnlen(id, 128) == 128) return violation("ncclCommInitRankScalable");
  const size_t bytes = sizeof(Shared) + size_t(size) * (slot_bytes + sizeof(Header));
  const int file = open(id, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, off_t(bytes)) != 0) return ncclSystemError;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  auto *on = new Communicator{rank, size, static_cast<Shared *>(memory)};
  on->barrier();
  if (rank == 0) unlink(id);
  return make(out, on);
}
int ncclCommDestroy(void *on) {
  return handles.erase(on) ? (log("destroyed"), 0) : violation("an unknown communicator is destroyed");
}
int ncclCommGetAsyncError(void *on, int *error) {
  *error = fails("async") ? ncclSystemError : 0;
  return handles.count(on) ? 0 : violation("ncclCommGetAsyncError of an unknown communicator");
}
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, void *on, void *stream) {
  return issue("allReduce", from, to, count, type, operation, -1, on, stream);
}
int ncclReduce(const void *from, void *to, size_t count, int type, int operation, int root, void *on, void *stream) {
  return issue("reduce", from, to, count, type, operation, root, on, stream);
}
int ncclAllGather(const void *from, void *to, size_t count, int type, void *on, void *stream) {
  return issue("allGather", from, to, count, type, 0, -1, on, stream);
}
int ncclGroupStart() { return open_groups++, 0; }
int ncclGroupEnd() {
  if (open_groups == 0) return violation("a group ends that was not started");
  if (--open_groups == 0) {
    for (auto &push : grouped) push();
    grouped.clear();
  }
  return 0;
}

} // extern "C"
