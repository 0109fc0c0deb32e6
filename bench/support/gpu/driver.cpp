// A driver without a GPU (bench/gpu.ts): each call succeeds at once, and work is done when it is issued. What
// remains is the time of Orchard's own code.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int attribute_major = 75, attribute_managed = 89;
uintptr_t allocate(size_t bytes) { return uintptr_t(aligned_alloc(256, (bytes + 255) / 256 * 256)); }
} // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int length, int) { return snprintf(name, size_t(length), "driver without a GPU"), 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = size_t(1) << 30, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int) {
  return *value = attribute == attribute_major ? 9 : attribute == attribute_managed, 0;
}
int cuDevicePrimaryCtxRetain(void **context, int) { return *context = context, 0; }
int cuCtxSetCurrent(void *) { return 0; }

int cuMemAlloc_v2(uintptr_t *address, size_t bytes) { return *address = allocate(bytes), 0; }
int cuMemAllocManaged(uintptr_t *address, size_t bytes, unsigned) { return *address = allocate(bytes), 0; }
int cuMemFree_v2(uintptr_t address) { return free(reinterpret_cast<void *>(address)), 0; }
int cuMemHostRegister_v2(void *, size_t, unsigned) { return 0; }
int cuMemHostUnregister(void *) { return 0; }
int cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  return *pointer = reinterpret_cast<void *>(allocate(bytes)), 0;
}
int cuMemFreeHost(void *pointer) { return free(pointer), 0; }
int cuMemcpyAsync(uintptr_t destination, uintptr_t source, size_t bytes, void *) {
  memcpy(reinterpret_cast<void *>(destination), reinterpret_cast<void *>(source), bytes);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uintptr_t destination, const void *source, size_t bytes, void *) {
  memcpy(reinterpret_cast<void *>(destination), source, bytes);
  return 0;
}
int cuMemsetD8Async(uintptr_t address, unsigned char value, size_t count, void *) {
  memset(reinterpret_cast<void *>(address), value, count);
  return 0;
}

int cuStreamCreate(void **stream, unsigned) { return *stream = stream, 0; }
int cuStreamWaitEvent(void *, void *, unsigned) { return 0; }
int cuStreamDestroy_v2(void *) { return 0; }
int cuEventCreate(void **event, unsigned) { return *event = event, 0; }
int cuEventRecord(void *, void *) { return 0; }
int cuEventQuery(void *) { return 0; }
int cuEventDestroy_v2(void *) { return 0; }

int cuModuleLoadDataEx(void **module, const void *, unsigned, int *, void **) { return *module = module, 0; }
int cuModuleGetFunction(void **function, void *, const char *) { return *function = function, 0; }
int cuFuncGetAttribute(int *value, int attribute, void *) { return *value = attribute ? 0 : 1024, 0; }
int cuFuncSetAttribute(void *, int, int) { return 0; }
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **) {
  return 0;
}
int cuGraphCreate(void **graph, unsigned) { return *graph = graph, 0; }
int cuGraphAddKernelNode(void **node, void *, void *const *, size_t, const void *) { return *node = node, 0; }
int cuGraphInstantiateWithFlags(void **executable, void *, unsigned long long) { return *executable = executable, 0; }
int cuGraphExecKernelNodeSetParams(void *, void *, const void *) { return 0; }
int cuGraphLaunch(void *, void *) { return 0; }
int cuGraphExecDestroy(void *) { return 0; }
int cuGraphDestroy(void *) { return 0; }
int cuGetErrorName(int, const char **name) { return *name = "CUDA_ERROR", 0; }
int cuGetErrorString(int, const char **text) { return *text = "an error", 0; }

} // extern "C"
