// A stand-in for NVIDIA's driver: it runs no kernel, but checks the order of the calls, their arguments, and that
// memory stays alive while work uses it. As on a GPU, work happens after the calls that issue it: copies and fills are
// done, and launches are checked, when an event is reached. STANDIN_LOG names the file of calls and violations.
// STANDIN_GPUS is the number of GPUs, by default 2. STANDIN_PTX is the folder for the modules that are loaded.
// STANDIN_ANY allows kernels other than the test's. STANDIN_THREADS is the number of threads for which the registers of
// a module suffice that is loaded without a limit of registers. STANDIN_FAIL is `function:error` for a call that must
// fail, `kernel:error` for an error of the first kernel, which all later calls return, or `kernel:600` for a kernel
// that never ends.
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

std::set<void *> &limited = *new std::set<void *>;                // modules and functions with a limit of registers
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

// A kernel and its arguments. The kernel of the test has four parameters, of which the first three are two buffers and
// a float. A launch contains the float, after the arguments, if the third argument is 0 (metal/mrt/gpu/contained.h).
struct Launch {
  void *function = nullptr;
  unsigned grid[3], block[3], shared;
  uint32_t head[10];
  uintptr_t arguments[3] = {};
  float scalar = 0;
};
constexpr size_t scalar_offset = 96; // 40 bytes and 4 arguments, rounded up to a multiple of 32

// CUDA_KERNEL_NODE_PARAMS.
struct KernelNode {
  void *function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra;
};

// A node's handle is its number in the graph, from 1.
struct Graph {
  std::vector<Launch> nodes;
};
struct Executable {
  Graph *graph;
  std::vector<Launch> nodes;
};
std::set<Graph *> &graphs = *new std::set<Graph *>;
std::set<Executable *> &executables = *new std::set<Executable *>;

// Copies what the driver copies.
int read_launch(const KernelNode &given, Launch &launch) {
  const auto &[x, y, z] = given.grid;
  const auto &[width, height, depth] = given.block;
  if (!functions.count(given.function)) return violation("an unknown function is launched");
  if (!x || !y || !z || y > 65535 || z > 65535) return violation("a grid that no GPU has");
  if (!width || !height || !depth || depth > 64 || width * height * depth > 1024)
    return violation("a block that no GPU has");
  if (given.extra) return violation("parameters are passed twice");
  launch.function = given.function;
  launch.shared = given.shared;
  memcpy(launch.grid, given.grid, sizeof launch.grid);
  memcpy(launch.block, given.block, sizeof launch.block);
  memcpy(launch.head, given.parameters[0], sizeof launch.head);
  const auto *arguments = static_cast<const char *>(given.parameters[0]) + sizeof launch.head;
  if (getenv("STANDIN_ANY")) return 0;
  memcpy(launch.arguments, arguments, sizeof launch.arguments);
  if (!launch.arguments[2])
    memcpy(&launch.scalar, static_cast<const char *>(given.parameters[0]) + scalar_offset, sizeof launch.scalar);
  return 0;
}

int issue_launch(Stream *stream, const Launch &launch) {
  Work work;
  const size_t addresses = getenv("STANDIN_ANY") ? 0 : launch.arguments[2] ? 3 : 2;
  for (size_t i = 0; i < addresses; i++)
    if (!(work.used[i] = allocation_of(launch.arguments[i], 4)))
      return violation("an argument of " + functions[launch.function] + " is not in the GPU's memory");
  work.run = [=] {
    const auto &[x, y, z] = launch.grid;
    const auto &[width, height, depth] = launch.block;
    const uint32_t *head = launch.head;
    const auto *first = reinterpret_cast<const float *>(launch.arguments[0]);
    const auto *scalar = reinterpret_cast<const float *>(launch.arguments[2]);
    if (!scalar) scalar = &launch.scalar;
    char line[256];
    snprintf(line, sizeof line,
             "launch %ux%ux%u of %ux%ux%u, threads %u %u %u, shared %u, first %u %u %u, x %g, scalar %g", x, y, z,
             width, height, depth, head[0], head[1], head[2], launch.shared, head[6], head[7], head[8],
             first ? double(*first) : 0.0, double(*scalar));
    log(line);
    kernel_error = injected("kernel");
  };
  return issue(stream, std::move(work));
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

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  ENTER_IN_CONTEXT(cuModuleLoadDataEx)
  const std::string text = static_cast<const char *>(image);
  if (text.find(".version") == std::string::npos || text.find("\norchard\n") != std::string::npos)
    return violation("no PTX is loaded");
  if (const char *folder = getenv("STANDIN_PTX"))
    std::ofstream(std::string(folder) + "/" + std::to_string(modules.size()) + ".ptx") << text;
  modules[ *module = new char] = text;
  for (unsigned i = 0; i < count; i++)
    if (options[i] == 0) { // CU_JIT_MAX_REGISTERS
      limited.insert(*module);
      return log("module of " + std::to_string(uintptr_t(values[i])) + " registers"), 0;
    }
  log("module");
  return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  ENTER_IN_CONTEXT(cuModuleGetFunction)
  if (!modules.count(module)) return violation("a function of an unknown module");
  if (modules[module].find(std::string(".entry ") + name) == std::string::npos) return 500;
  functions[ *function = new char] = name;
  if (limited.count(module)) limited.insert(*function);
  return 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
  ENTER_IN_CONTEXT(cuFuncGetAttribute)
  const char *threads = limited.count(function) ? nullptr : getenv("STANDIN_THREADS");
  *value = attribute ? 0 : threads ? atoi(threads) : 1024; // 0: CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
  return functions.count(function) ? 0 : 400;
}
int cuFuncSetAttribute(void *function, int, int) {
  ENTER_IN_CONTEXT(cuFuncSetAttribute)
  return functions.count(function) ? 0 : 400;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned width, unsigned height, unsigned depth,
                   unsigned shared, Stream *stream, void **parameters, void **extra) {
  ENTER_IN_CONTEXT(cuLaunchKernel)
  if (!streams.count(stream)) return violation("a launch on an unknown stream");
  Launch launch;
  const int result = read_launch({function, {x, y, z}, {width, height, depth}, shared, parameters, extra}, launch);
  return result ? result : issue_launch(stream, launch);
}

int cuGraphCreate(Graph **graph, unsigned flags) {
  ENTER_IN_CONTEXT(cuGraphCreate)
  if (flags) return violation("a graph with flags");
  graphs.insert(*graph = new Graph);
  return 0;
}
int cuGraphAddKernelNode(size_t *node, Graph *graph, const size_t *after, size_t count, const KernelNode *given) {
  ENTER_IN_CONTEXT(cuGraphAddKernelNode)
  if (!graphs.count(graph)) return violation("a node of an unknown graph");
  if (count != !graph->nodes.empty() || (count && *after != graph->nodes.size()))
    return violation("a node that does not follow the previous one");
  Launch launch;
  if (const int result = read_launch(*given, launch)) return result;
  graph->nodes.push_back(launch);
  return *node = graph->nodes.size(), 0;
}
int cuGraphInstantiateWithFlags(Executable **executable, Graph *graph, unsigned long long flags) {
  ENTER_IN_CONTEXT(cuGraphInstantiateWithFlags)
  if (!graphs.count(graph) || flags) return violation("an unknown graph is instantiated, or with flags");
  executables.insert(*executable = new Executable{graph, graph->nodes});
  log("graph of " + std::to_string(graph->nodes.size()));
  return 0;
}
int cuGraphExecKernelNodeSetParams(Executable *executable, size_t node, const KernelNode *given) {
  ENTER_IN_CONTEXT(cuGraphExecKernelNodeSetParams)
  if (!executables.count(executable) || !graphs.count(executable->graph) || !node || node > executable->nodes.size())
    return violation("an unknown node is changed");
  Launch launch;
  if (const int result = read_launch(*given, launch)) return result;
  if (launch.function != executable->nodes[node - 1].function) return violation("a node gets another kernel");
  executable->nodes[node - 1] = launch;
  return log("set"), 0;
}
int cuGraphLaunch(Executable *executable, Stream *stream) {
  ENTER_IN_CONTEXT(cuGraphLaunch)
  if (!executables.count(executable) || !streams.count(stream)) return violation("an unknown graph or stream");
  log("graph");
  for (const Launch &launch : executable->nodes)
    if (const int result = issue_launch(stream, launch)) return result;
  return 0;
}
int cuGraphExecDestroy(Executable *executable) {
  ENTER_IN_CONTEXT(cuGraphExecDestroy)
  return executables.erase(executable) ? 0 : violation("an unknown executable graph is destroyed");
}
int cuGraphDestroy(Graph *graph) {
  ENTER_IN_CONTEXT(cuGraphDestroy)
  return graphs.erase(graph) ? 0 : violation("an unknown graph is destroyed");
}

int cuGetErrorName(int result, const char **name) {
  return *name = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER", 0;
}
int cuGetErrorString(int, const char **text) { return *text = "an error of the stand-in", 0; }

} // extern "C"
