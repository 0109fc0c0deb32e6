// The part of NVIDIA's driver interface (libcuda.so.1) that the engine calls, declared here so that no header of CUDA
// is needed. Names and values are from cuda.h; the header's macros select the names that end in _v2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mrt::cuda {

typedef int Result;
constexpr Result success = 0, out_of_memory = 2, not_ready = 600, launch_timeout = 702;
// After these errors the context is unusable (CUDA Driver API, CUresult).
constexpr Result ecc_uncorrectable = 214, illegal_address = 700, assert_failed = 710, hardware_stack_error = 714,
                 illegal_instruction = 715, misaligned_address = 716, invalid_address_space = 717, invalid_pc = 718,
                 launch_failed = 719;

typedef int Device;
typedef struct ContextObject *Context;
typedef struct StreamObject *Stream;
typedef struct EventObject *Event;
typedef struct ModuleObject *Module;
typedef struct FunctionObject *Function;
typedef struct GraphObject *Graph;
typedef struct GraphNodeObject *GraphNode;
typedef struct GraphExecutableObject *GraphExecutable;
typedef unsigned long long Address;

// CUDA_KERNEL_NODE_PARAMS_v2. The functions below read its first version, which lacks the last two members.
struct KernelNode {
  Function function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void **parameters, **extra;
  void *kernel, *context;
};

enum DeviceAttribute {
  compute_capability_major = 75,
  compute_capability_minor = 76,
  managed_memory = 83,
  concurrent_managed_access = 89,
  is_integrated = 18
};
enum FunctionAttribute { max_threads = 0, static_shared_bytes = 1, max_dynamic_shared_bytes = 8 };
enum JitOption { max_registers = 0, error_log_buffer = 5, error_log_buffer_bytes = 6 };
constexpr unsigned attach_global = 1, stream_non_blocking = 1, host_register_portable = 1, host_register_mapped = 2,
                   event_disable_timing = 2, plain_wait = 0;

// Every function of the table: its result, its name in the library, and its parameters.
#define MRT_CUDA_FUNCTIONS(F)                                                                                          \
  F(init, cuInit, (unsigned flags))                                                                                    \
  F(driver_version, cuDriverGetVersion, (int *version))                                                                \
  F(device_count, cuDeviceGetCount, (int *count))                                                                      \
  F(device_get, cuDeviceGet, (Device * device, int ordinal))                                                           \
  F(device_name, cuDeviceGetName, (char *name, int length, Device device))                                             \
  F(device_memory, cuDeviceTotalMem_v2, (size_t *bytes, Device device))                                                \
  F(device_attribute, cuDeviceGetAttribute, (int *value, DeviceAttribute attribute, Device device))                    \
  F(context_retain, cuDevicePrimaryCtxRetain, (Context * context, Device device))                                      \
  F(context_set, cuCtxSetCurrent, (Context context))                                                                   \
  F(memory_allocate, cuMemAlloc_v2, (Address * address, size_t bytes))                                                 \
  F(memory_allocate_managed, cuMemAllocManaged, (Address * address, size_t bytes, unsigned flags))                     \
  F(memory_free, cuMemFree_v2, (Address address))                                                                      \
  F(host_allocate, cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags))                                     \
  F(host_free, cuMemFreeHost, (void *pointer))                                                                         \
  F(host_register, cuMemHostRegister_v2, (void *pointer, size_t bytes, unsigned flags))                                \
  F(host_unregister, cuMemHostUnregister, (void *pointer))                                                             \
  F(copy, cuMemcpyAsync, (Address destination, Address source, size_t bytes, Stream stream))                           \
  F(copy_from_host, cuMemcpyHtoDAsync_v2, (Address destination, const void *source, size_t bytes, Stream stream))      \
  F(fill, cuMemsetD8Async, (Address destination, unsigned char value, size_t count, Stream stream))                    \
  F(stream_create, cuStreamCreate, (Stream * stream, unsigned flags))                                                  \
  F(stream_destroy, cuStreamDestroy_v2, (Stream stream))                                                               \
  F(stream_wait, cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                                      \
  F(event_create, cuEventCreate, (Event * event, unsigned flags))                                                      \
  F(event_record, cuEventRecord, (Event event, Stream stream))                                                         \
  F(event_query, cuEventQuery, (Event event))                                                                          \
  F(event_destroy, cuEventDestroy_v2, (Event event))                                                                   \
  F(module_load, cuModuleLoadDataEx,                                                                                   \
    (Module * module, const void *image, unsigned count, JitOption *options, void **values))                           \
  F(module_function, cuModuleGetFunction, (Function * function, Module module, const char *name))                      \
  F(function_attribute, cuFuncGetAttribute, (int *value, FunctionAttribute attribute, Function function))              \
  F(function_set_attribute, cuFuncSetAttribute, (Function function, FunctionAttribute attribute, int value))           \
  F(launch, cuLaunchKernel,                                                                                            \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,         \
     unsigned block_z, unsigned shared_bytes, Stream stream, void **parameters, void **extra))                         \
  F(graph_create, cuGraphCreate, (Graph * graph, unsigned flags))                                                      \
  F(graph_add_kernel, cuGraphAddKernelNode,                                                                            \
    (GraphNode * node, Graph graph, const GraphNode *after, size_t count, const KernelNode *parameters))               \
  F(graph_instantiate, cuGraphInstantiateWithFlags,                                                                    \
    (GraphExecutable * executable, Graph graph, unsigned long long flags))                                             \
  F(graph_set_kernel, cuGraphExecKernelNodeSetParams,                                                                  \
    (GraphExecutable executable, GraphNode node, const KernelNode *parameters))                                        \
  F(graph_launch, cuGraphLaunch, (GraphExecutable executable, Stream stream))                                          \
  F(graph_executable_destroy, cuGraphExecDestroy, (GraphExecutable executable))                                        \
  F(graph_destroy, cuGraphDestroy, (Graph graph))                                                                      \
  F(error_name, cuGetErrorName, (Result result, const char **name))                                                    \
  F(error_text, cuGetErrorString, (Result result, const char **text))

struct Functions {
#define MRT_CUDA_MEMBER(member, name, parameters) Result(*member) parameters;
  MRT_CUDA_FUNCTIONS(MRT_CUDA_MEMBER)
#undef MRT_CUDA_MEMBER
};

} // namespace mrt::cuda
