// Makes a kernel function an entry of a PTX module; entry.h does the same for the software device. The host takes the
// positions of arguments from the software device's module.
#ifndef MRT_GPU_ENTRY_H
#define MRT_GPU_ENTRY_H

#include "../argument_source.h"
#include "../vec.h"
#include "constants.h"
#include "contained.h"

namespace mrt {

// The arguments of a launch. `arguments` has an entry for each parameter of the kernel: an address, or the offset of a
// threadgroup argument in the launch's threadgroup memory. `contained` are bytes of the host (contained.h).
// (gpu/launch.cpp writes the same layout.)
template <unsigned count, unsigned contained_bytes> struct GpuLaunch {
  mrt_u32 threads_per_grid[3];
  mrt_u32 threads_per_threadgroup[3];
  mrt_u32 first_group[3];
  mrt_u32 reserved;
  void *arguments[count ? count : 1];
  alignas(contained_alignment) mrt_u8 contained[contained_bytes ? contained_bytes : 1];
};

extern "C" MRT_SHARED mrt_u8 mrt_threadgroup_arguments[];

// The position of a thread. At the grid's edge a threadgroup is smaller: its threads are numbered without gaps.
struct GpuThread {
  mrt_u32 group[3], size[3], position[3], index;
  bool exists;

  template <typename Launch> MRT_METHOD explicit GpuThread(const Launch &launch) {
    group[0] = launch.first_group[0] + mrt_u32(__nvvm_read_ptx_sreg_ctaid_x());
    group[1] = launch.first_group[1] + mrt_u32(__nvvm_read_ptx_sreg_ctaid_y());
    group[2] = launch.first_group[2] + mrt_u32(__nvvm_read_ptx_sreg_ctaid_z());
    bool is_whole = true;
    for (int axis = 0; axis < 3; axis++) {
      const mrt_u32 full = launch.threads_per_threadgroup[axis],
                    rest = launch.threads_per_grid[axis] - group[axis] * full;
      size[axis] = rest < full ? rest : full;
      is_whole &= size[axis] == full;
    }
    const mrt_u32 width = mrt_u32(__nvvm_read_ptx_sreg_ntid_x()), height = mrt_u32(__nvvm_read_ptx_sreg_ntid_y());
    position[0] = mrt_u32(__nvvm_read_ptx_sreg_tid_x());
    position[1] = mrt_u32(__nvvm_read_ptx_sreg_tid_y());
    position[2] = mrt_u32(__nvvm_read_ptx_sreg_tid_z());
    index = position[0] + width * (position[1] + height * position[2]);
    if (!is_whole) {
      position[0] = index % size[0];
      position[1] = index / size[0] % size[1];
      position[2] = index / (size[0] * size[1]);
    }
    exists = index < size[0] * size[1] * size[2];
  }
};

template <ArgumentSource source, typename Launch>
MRT_FUNC mrt_u32 builtin(const Launch &launch, const GpuThread &thread, unsigned axis) {
  const mrt_u32 threads = thread.size[0] * thread.size[1] * thread.size[2], full = launch.threads_per_threadgroup[0] *
                                                                                   launch.threads_per_threadgroup[1] *
                                                                                   launch.threads_per_threadgroup[2];
  switch (source) {
  case ArgumentSource::thread_position_in_grid:
    return thread.group[axis] * launch.threads_per_threadgroup[axis] + thread.position[axis];
  case ArgumentSource::thread_position_in_threadgroup: return thread.position[axis];
  case ArgumentSource::thread_index_in_threadgroup: return thread.index;
  case ArgumentSource::threadgroup_position_in_grid: return thread.group[axis];
  case ArgumentSource::threads_per_grid:
  case ArgumentSource::grid_size: return launch.threads_per_grid[axis];
  case ArgumentSource::threads_per_threadgroup: return thread.size[axis];
  case ArgumentSource::threadgroups_per_grid:
    return (launch.threads_per_grid[axis] - 1) / launch.threads_per_threadgroup[axis] + 1;
  case ArgumentSource::dispatch_threads_per_threadgroup: return launch.threads_per_threadgroup[axis];
  case ArgumentSource::thread_index_in_simdgroup: return thread.index % 32;
  case ArgumentSource::simdgroup_index_in_threadgroup: return thread.index / 32;
  case ArgumentSource::simdgroups_per_threadgroup: return (threads + 31) / 32;
  case ArgumentSource::dispatch_simdgroups_per_threadgroup: return (full + 31) / 32;
  case ArgumentSource::threads_per_simdgroup:
  case ArgumentSource::thread_execution_width: return 32;
  case ArgumentSource::thread_index_in_quadgroup: return thread.index % 4;
  case ArgumentSource::quadgroup_index_in_threadgroup: return thread.index / 4;
  case ArgumentSource::quadgroups_per_threadgroup: return (threads + 3) / 4;
  case ArgumentSource::dispatch_quadgroups_per_threadgroup: return (full + 3) / 4;
  default: return 0; // grid_origin
  }
}

template <typename P> struct Argument { // passed by value
  template <ArgumentSource source, typename Launch>
  static MRT_METHOD P get(const Launch &launch, const GpuThread &thread, void *) {
    return P(builtin<source>(launch, thread, 0));
  }
};
template <typename T, int N> struct Argument<metal::vec<T, N>> {
  template <ArgumentSource source, typename Launch>
  static MRT_METHOD metal::vec<T, N> get(const Launch &launch, const GpuThread &thread, void *) {
    metal::vec<T, N> value;
    for (int axis = 0; axis < N; axis++) value[axis] = T(builtin<source>(launch, thread, unsigned(axis)));
    return value;
  }
};
template <typename T> struct Argument<T *> {
  template <ArgumentSource source, typename Launch>
  static MRT_METHOD T *get(const Launch &, const GpuThread &, void *argument) {
    if constexpr (source == ArgumentSource::threadgroup)
      return (T *)(mrt_threadgroup_arguments + (__UINTPTR_TYPE__)argument);
    else return (T *)argument;
  }
};
template <typename T> struct Argument<T &> {
  template <ArgumentSource source, typename Launch>
  static MRT_METHOD T &get(const Launch &launch, const GpuThread &thread, void *argument) {
    return *Argument<T *>::template get<source>(launch, thread, argument);
  }
};

template <unsigned... I> struct Indices {};
template <typename T, T... I> struct MakeIndices {
  typedef Indices<unsigned(I)...> type;
};

// The size of a parameter's value if a launch can contain it.
template <typename P> struct ContainedSize {
  static constexpr mrt_u32 of(const ParameterSpec &) { return 0; }
};
template <typename T> struct ContainedSize<T &> {
  static constexpr mrt_u32 of(const ParameterSpec &spec) {
    return spec.source == ArgumentSource::buffer && spec.space == MRT_IN_CONSTANT ? sizeof(T) : 0;
  }
};

// `contains_bytes` is defined before the program, as the function constants are.
template <auto kernel, typename Spec, bool contains_bytes> struct Entry;
template <typename... P, void (*kernel)(P...), typename Spec, bool contains_bytes>
struct Entry<kernel, Spec, contains_bytes> {
  typedef typename __make_integer_seq<MakeIndices, unsigned, sizeof...(P)>::type All;

  struct Contained {
    mrt_u32 places[sizeof...(P) + 1];
    ContainedBytes bytes;

    template <unsigned... I> constexpr explicit Contained(Indices<I...>) : places{} {
      ((places[I] = bytes.place(contains_bytes ? ContainedSize<P>::of(Spec::parameters[I]) : 0)), ...);
    }
  };
  static constexpr Contained contained = Contained(All());
  typedef GpuLaunch<sizeof...(P), contained.bytes.count> Launch;

  template <unsigned position> static MRT_METHOD void *argument(const Launch &launch) {
    constexpr mrt_u32 place = contained.places[position];
    if constexpr (place != not_contained) return (void *)(launch.contained + place);
    else return launch.arguments[position];
  }
  template <unsigned... I> static MRT_METHOD void call(const Launch &launch, const GpuThread &thread, Indices<I...>) {
    kernel(Argument<P>::template get<Spec::parameters[I].source>(launch, thread, argument<I>(launch))...);
  }
  static MRT_METHOD void run(const Launch &launch) {
    const GpuThread thread(launch);
    if (thread.exists) call(launch, thread, All());
  }
};

} // namespace mrt

#define MRT_IDENTIFY(...)

// A variable of the kernel's threadgroup memory. Like all such memory it has no initial value.
#define MRT_THREADGROUP_VARIABLE(type, name, alignment, line)                                                          \
  (*({                                                                                                                 \
    __attribute__((loader_uninitialized,                                                                               \
                   aligned(alignment < 16 ? 16 : alignment))) static MRT_SHARED mrt_u8 mrt_variable[sizeof(type)];     \
    (MRT_THREADGROUP type *)mrt_variable;                                                                              \
  }))

#define MRT_ENTRY(number, kernel, spec, name, line)                                                                    \
  extern "C" __attribute__((nvptx_kernel)) void mrt_entry_##number(                                                    \
      mrt::Entry<kernel, spec, mrt::contains_bytes>::Launch launch) {                                                  \
    mrt::Entry<kernel, spec, mrt::contains_bytes>::run(launch);                                                        \
  }

#endif
