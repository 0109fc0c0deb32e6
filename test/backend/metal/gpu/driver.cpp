// A stand-in for NVIDIA's driver: it runs no kernel, but checks the order of the calls, their arguments, and that
// memory stays alive while work uses it. Copies and fills are done. STANDIN_LOG names the file of calls and violations;
// STANDIN_FAIL is `function:error` for a call that must fail.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

struct Stream {
  int polls = 0;
  std::set<uintptr_t> used; // allocations of unfinished work
};

bool is_started = false;
thread_local bool has_context = false;
std::map<uintptr_t, size_t> &memory = *new std::map<uintptr_t, size_t>;     // allocated
std::map<uintptr_t, size_t> &registered = *new std::map<uintptr_t, size_t>; // the host's
std::set<Stream *> &streams = *new std::set<Stream *>;
std::map<void *, std::string> &modules = *new std::map<void *, std::string>;   // texts
std::map<void *, std::string> &functions = *new std::map<void *, std::string>; // names

int failure_of(const char *name) {
  const char *fail = getenv("STANDIN_FAIL");
  const std::string start = std::string(name) + ":";
  return fail && !strncmp(fail, start.c_str(), start.size()) ? atoi(fail + start.size()) : 0;
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
  return is_started ? (*count = 2, 0) : violation("a call before cuInit");
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
    if (stream->used.count(address)) return violation("memory is freed while work uses it");
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

int cuMemcpyAsync(uintptr_t destination, uintptr_t source, size_t bytes, Stream *stream) {
  ENTER_IN_CONTEXT(cuMemcpyAsync)
  if (!streams.count(stream)) return violation("a copy on an unknown stream");
  memcpy(reinterpret_cast<void *>(destination), reinterpret_cast<void *>(source), bytes);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uintptr_t destination, const void *source, size_t bytes, Stream *stream) {
  ENTER_IN_CONTEXT(cuMemcpyHtoDAsync_v2)
  if (!streams.count(stream)) return violation("a copy on an unknown stream");
  if (!allocation_of(destination, bytes)) return violation("a copy to memory that is not allocated");
  memcpy(reinterpret_cast<void *>(destination), source, bytes);
  return 0;
}
int cuMemsetD8Async(uintptr_t address, unsigned char value, size_t count, Stream *stream) {
  ENTER_IN_CONTEXT(cuMemsetD8Async)
  if (!streams.count(stream)) return violation("a fill on an unknown stream");
  if (!allocation_of(address, count)) return violation("a fill of memory that is not allocated");
  memset(reinterpret_cast<void *>(address), value, count);
  return 0;
}

int cuStreamCreate(Stream **stream, unsigned) {
  ENTER_IN_CONTEXT(cuStreamCreate)
  streams.insert(*stream = new Stream);
  return 0;
}
// Work ends with the third question.
int cuStreamQuery(Stream *stream) {
  ENTER_IN_CONTEXT(cuStreamQuery)
  if (!streams.count(stream)) return violation("a question about an unknown stream");
  if (!stream->used.empty() && ++stream->polls < 3) return 600;
  if (!stream->used.empty()) log("finished");
  stream->used.clear();
  stream->polls = 0;
  return 0;
}
int cuStreamDestroy_v2(Stream *stream) {
  ENTER_IN_CONTEXT(cuStreamDestroy_v2)
  return streams.erase(stream) ? 0 : violation("an unknown stream is destroyed");
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned, int *, void **) {
  ENTER_IN_CONTEXT(cuModuleLoadDataEx)
  const std::string text = static_cast<const char *>(image);
  if (text.compare(0, 8, ".version") || text.find("orchard") != std::string::npos) return violation("no PTX is loaded");
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

// The kernels of the test have two buffers and a float at the first three positions.
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned width, unsigned height, unsigned depth,
                   unsigned shared, Stream *stream, void **parameters, void **extra) {
  ENTER_IN_CONTEXT(cuLaunchKernel)
  if (!functions.count(function)) return violation("an unknown function is launched");
  if (!streams.count(stream)) return violation("a launch on an unknown stream");
  if (!x || !y || !z || y > 65535 || z > 65535) return violation("a grid that no GPU has");
  if (!width || !height || !depth || depth > 64 || width * height * depth > 1024)
    return violation("a block that no GPU has");
  if (extra) return violation("parameters are passed twice");
  const auto *head = static_cast<const uint32_t *>(parameters[0]);
  uintptr_t arguments[3];
  memcpy(arguments, head + 10, sizeof arguments);
  for (uintptr_t argument : arguments) {
    const uintptr_t allocation = allocation_of(argument, 4);
    if (!allocation) return violation("an argument of " + functions[function] + " is not in the GPU's memory");
    stream->used.insert(allocation);
  }
  char line[256];
  snprintf(line, sizeof line, "launch %ux%ux%u of %ux%ux%u, threads %u %u %u, shared %u, first %u %u %u, scalar %g", x,
           y, z, width, height, depth, head[0], head[1], head[2], shared, head[6], head[7], head[8],
           double(*reinterpret_cast<float *>(arguments[2])));
  log(line);
  return 0;
}

int cuGetErrorName(int result, const char **name) {
  return *name = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER", 0;
}
int cuGetErrorString(int, const char **text) { return *text = "an error of the stand-in", 0; }

} // extern "C"
