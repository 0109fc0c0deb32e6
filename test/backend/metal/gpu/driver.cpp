// A stand-in for NVIDIA's driver: it runs no kernel, but checks the order of the calls, their arguments, and that
// memory stays alive while work uses it. As on a GPU, work happens after the calls that issue it: copies and fills are
// done, and launches are checked, when an event is reached. STANDIN_LOG names the file of calls and violations.
// STANDIN_GPUS is the number of GPUs, by default 2. STANDIN_PTX is the folder for the modules that are loaded.
// STANDIN_ANY allows kernels other than the test's. STANDIN_FAIL is `function:error` for a call that must fail,
// `kernel:error` for an error of the first kernel, which all later calls return, or `kernel:600` for a kernel that
// never ends.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

std::mutex &mutex = *new std::mutex;

void log(const std::string &line) {
  static FILE *file = fopen(getenv("STANDIN_LOG"), "a");
  fprintf(file, "%s\n", line.c_str());
  fflush(file);
}

int violation(const std::string &what) {
  log("violation: " + what);
  return 1; // CUDA_ERROR_INVALID_VALUE
}

struct Work {
  uintptr_t used[5] = {}; // allocations
  std::function<void()> run;
};

// Work that was issued; the first `done` of it have run.
struct Stream {
  std::vector<Work> work;
  size_t done = 0;
};

struct Event {
  Stream *stream = nullptr;
  size_t position = 0; // in the stream's work
  int polls = 0;
};

bool is_started = false;
thread_local bool has_context = false;
std::map<uintptr_t, size_t> &memory = *new std::map<uintptr_t, size_t>;     // allocated
std::map<uintptr_t, size_t> &registered = *new std::map<uintptr_t, size_t>; // the host's
std::set<Stream *> &streams = *new std::set<Stream *>;
std::map<void *, std::string> &modules = *new std::map<void *, std::string>;   // texts
std::map<void *, std::string> &functions = *new std::map<void *, std::string>; // names

std::map<void *, size_t> &pinned = *new std::map<void *, size_t>; // the host's
std::set<Event *> &events = *new std::set<Event *>;
int kernel_error = 0; // of a kernel that has run

int injected(const char *name) {
  const char *fail = getenv("STANDIN_FAIL");
  const std::string start = std::string(name) + ":";
  return fail && !strncmp(fail, start.c_str(), start.size()) ? atoi(fail + start.size()) : 0;
}

constexpr int never_ends = 600;
int failure_of(const char *name) { return kernel_error && kernel_error != never_ends ? kernel_error : injected(name); }

void run_until(Stream &stream, size_t position) {
  while (stream.done < position && !kernel_error) stream.work[stream.done++].run();
}

int issue(Stream *stream, Work work) {
  if (!streams.count(stream)) return violation("work on an unknown stream");
  stream->work.push_back(std::move(work));
  return 0;
}

// Returns the start of the allocation that contains [address, address + bytes); 0 if there is none.
uintptr_t allocation_of(uintptr_t address, size_t bytes) {
  for (auto *all : {&memory, &registered})
    for (const auto &[start, length] : *all)
      if (address >= start && address + bytes <= start + length) return start;
  return 0;
}

} // namespace

// Each function holds the lock, and fails if the test asks for it.
#define ENTER(name)                                                                                                    \
  std::lock_guard<std::mutex> lock(mutex);                                                                             \
  if (int failure = failure_of(#name)) return failure;
#define ENTER_IN_CONTEXT(name)                                                                                         \
  ENTER(name)                                                                                                          \
  if (!has_context) return violation(#name " without a context");

extern "C" {

int cuInit(unsigned flags) {
  ENTER(cuInit)
  is_started = true;
  log("cuInit " + std::to_string(flags));
  return 0;
}
int cuDriverGetVersion(int *version) {
  ENTER(cuDriverGetVersion)
  return *version = 12040, 0;
}
int cuDeviceGetCount(int *count) {
  ENTER(cuDeviceGetCount)
  const char *visible = getenv("STANDIN_GPUS"); // default 2
  return is_started ? (*count = visible ? atoi(visible) : 2, 0) : violation("a call before cuInit");
}
int cuDeviceGet(int *device, int ordinal) {
  ENTER(cuDeviceGet)
  return *device = ordinal, 0;
}
int cuDeviceGetName(char *name, int length, int device) {
  ENTER(cuDeviceGetName)
  return snprintf(name, size_t(length), "Stand-in %d", device), 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int) {
  ENTER(cuDeviceTotalMem_v2)
  return *bytes = size_t(1) << 30, 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER(cuDeviceGetAttribute)
  return *value = attribute == 75 ? 9 : attribute == 89 ? 1 : 0, 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER(cuDevicePrimaryCtxRetain)
  *context = reinterpret_cast<void *>(uintptr_t(device) + 1);
  log("retain " + std::to_string(device));
  return 0;
}
int cuCtxSetCurrent(void *context) {
  ENTER(cuCtxSetCurrent)
  has_context = context != nullptr;
  return 0;
}

int cuMemAlloc_v2(uintptr_t *address, size_t bytes) {
  ENTER_IN_CONTEXT(cuMemAlloc_v2)
  memory[ *address = uintptr_t(aligned_alloc(256, (bytes + 255) / 256 * 256))] = bytes;
  memset(reinterpret_cast<void *>(*address), 0xab, bytes);
  return 0;
}
int cuMemAllocManaged(uintptr_t *address, size_t bytes, unsigned flags) {
  ENTER_IN_CONTEXT(cuMemAllocManaged)
  if (flags != 1) return violation("managed memory that is not attached globally");
  memory[ *address = uintptr_t(aligned_alloc(256, (bytes + 255) / 256 * 256))] = bytes;
  memset(reinterpret_cast<void *>(*address), 0xab, bytes);
  return 0;
}
int cuMemFree_v2(uintptr_t address) {
  ENTER_IN_CONTEXT(cuMemFree_v2)
  if (!memory.count(address)) return violation("memory is freed that was not allocated, or twice");
  for (Stream *stream : streams)
    for (size_t i = stream->done; i < stream->work.size(); i++)
      for (uintptr_t used : stream->work[i].used)
        if (used == address) return violation("memory is freed while work uses it");
  memory.erase(address);
  free(reinterpret_cast<void *>(address));
  return 0;
}
int cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned) {
  ENTER_IN_CONTEXT(cuMemHostRegister_v2)
  registered[uintptr_t(pointer)] = bytes;
  log("register");
  return 0;
}
int cuMemHostUnregister(void *pointer) {
  ENTER_IN_CONTEXT(cuMemHostUnregister)
  log("unregister");
  return registered.erase(uintptr_t(pointer)) ? 0 : violation("memory is unregistered that was not registered");
}

int cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  ENTER_IN_CONTEXT(cuMemHostAlloc)
  pinned[ *pointer = aligned_alloc(256, (bytes + 255) / 256 * 256)] = bytes;
  return 0;
}
int cuMemFreeHost(void *pointer) {
  ENTER_IN_CONTEXT(cuMemFreeHost)
  return pinned.erase(pointer) ? 0 : violation("host memory is freed that was not allocated");
}

int cuMemcpyAsync(uintptr_t destination, uintptr_t source, size_t bytes, Stream *stream) {
  ENTER_IN_CONTEXT(cuMemcpyAsync)
  return issue(stream, {{allocation_of(destination, bytes), allocation_of(source, bytes)}, [=] {
                          memcpy(reinterpret_cast<void *>(destination), reinterpret_cast<void *>(source), bytes);
                        }});
}
// The bytes are read when the copy runs, so a change before that is seen.
int cuMemcpyHtoDAsync_v2(uintptr_t destination, const void *source, size_t bytes, Stream *stream) {
  ENTER_IN_CONTEXT(cuMemcpyHtoDAsync_v2)
  if (!allocation_of(destination, bytes)) return violation("a copy to memory that is not allocated");
  return issue(stream, {{allocation_of(destination, bytes)},
                        [=] { memcpy(reinterpret_cast<void *>(destination), source, bytes); }});
}
int cuMemsetD8Async(uintptr_t address, unsigned char value, size_t count, Stream *stream) {
  ENTER_IN_CONTEXT(cuMemsetD8Async)
  if (!allocation_of(address, count)) return violation("a fill of memory that is not allocated");
  return issue(stream,
               {{allocation_of(address, count)}, [=] { memset(reinterpret_cast<void *>(address), value, count); }});
}

int cuStreamCreate(Stream **stream, unsigned) {
  ENTER_IN_CONTEXT(cuStreamCreate)
  streams.insert(*stream = new Stream);
  return 0;
}
int cuStreamWaitEvent(Stream *stream, Event *event, unsigned) {
  ENTER_IN_CONTEXT(cuStreamWaitEvent)
  if (!events.count(event)) return violation("a stream waits for an unknown event");
  const Event seen = *event;
  return issue(stream, {{}, [=] { run_until(*seen.stream, seen.position); }});
}
int cuStreamDestroy_v2(Stream *stream) {
  ENTER_IN_CONTEXT(cuStreamDestroy_v2)
  return streams.erase(stream) ? 0 : violation("an unknown stream is destroyed");
}

int cuEventCreate(Event **event, unsigned) {
  ENTER_IN_CONTEXT(cuEventCreate)
  events.insert(*event = new Event);
  return 0;
}
int cuEventRecord(Event *event, Stream *stream) {
  ENTER_IN_CONTEXT(cuEventRecord)
  if (!events.count(event) || !streams.count(stream)) return violation("an unknown event or stream is recorded");
  return *event = {stream, stream->work.size(), 0}, 0;
}
// Two queries report that the work is unfinished; the third one finishes it.
int cuEventQuery(Event *event) {
  ENTER_IN_CONTEXT(cuEventQuery)
  if (!events.count(event)) return violation("a question about an unknown event");
  if (++event->polls < 3 && event->stream->done < event->position) return 600;
  run_until(*event->stream, event->position);
  return kernel_error;
}
int cuEventDestroy_v2(Event *event) {
  ENTER_IN_CONTEXT(cuEventDestroy_v2)
  return events.erase(event) ? 0 : violation("an unknown event is destroyed");
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned, int *, void **) {
  ENTER_IN_CONTEXT(cuModuleLoadDataEx)
  const std::string text = static_cast<const char *>(image);
  if (text.find(".version") == std::string::npos || text.find("\norchard\n") != std::string::npos)
    return violation("no PTX is loaded");
  if (const char *folder = getenv("STANDIN_PTX"))
    std::ofstream(std::string(folder) + "/" + std::to_string(modules.size()) + ".ptx") << text;
  modules[ *module = new char] = text;
  log("module");
  return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  ENTER_IN_CONTEXT(cuModuleGetFunction)
  if (!modules.count(module)) return violation("a function of an unknown module");
  if (modules[module].find(std::string(".entry ") + name) == std::string::npos) return 500;
  functions[ *function = new char] = name;
  return 0;
}
int cuFuncGetAttribute(int *value, int, void *function) {
  ENTER_IN_CONTEXT(cuFuncGetAttribute)
  return *value = 0, functions.count(function) ? 0 : 400;
}
int cuFuncSetAttribute(void *function, int, int) {
  ENTER_IN_CONTEXT(cuFuncSetAttribute)
  return functions.count(function) ? 0 : 400;
}

// The kernel of the test has two buffers and a float at the first three positions.
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned width, unsigned height, unsigned depth,
                   unsigned shared, Stream *stream, void **parameters, void **extra) {
  ENTER_IN_CONTEXT(cuLaunchKernel)
  if (!functions.count(function)) return violation("an unknown function is launched");
  if (!streams.count(stream)) return violation("a launch on an unknown stream");
  if (!x || !y || !z || y > 65535 || z > 65535) return violation("a grid that no GPU has");
  if (!width || !height || !depth || depth > 64 || width * height * depth > 1024)
    return violation("a block that no GPU has");
  if (extra) return violation("parameters are passed twice");
  Work work;
  std::vector<uint32_t> head(10);
  memcpy(head.data(), parameters[0], 4 * head.size());
  uintptr_t arguments[3] = {};
  const int count = getenv("STANDIN_ANY") ? 0 : 3;
  memcpy(arguments, static_cast<const char *>(parameters[0]) + 40, size_t(count) * sizeof *arguments);
  for (int i = 0; i < count; i++)
    if (!(work.used[i] = allocation_of(arguments[i], 4)))
      return violation("an argument of " + functions[function] + " is not in the GPU's memory");
  const auto *scalar = reinterpret_cast<const float *>(arguments[2]);
  work.run = [=] {
    char line[256];
    snprintf(line, sizeof line, "launch %ux%ux%u of %ux%ux%u, threads %u %u %u, shared %u, first %u %u %u, scalar %g",
             x, y, z, width, height, depth, head[0], head[1], head[2], shared, head[6], head[7], head[8],
             scalar ? double(*scalar) : 0.0);
    log(line);
    kernel_error = injected("kernel");
  };
  return issue(stream, std::move(work));
}

int cuGetErrorName(int result, const char **name) {
  return *name = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER", 0;
}
int cuGetErrorString(int, const char **text) { return *text = "an error of the stand-in", 0; }

} // extern "C"
