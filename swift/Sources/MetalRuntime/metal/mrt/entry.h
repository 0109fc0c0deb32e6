// Makes a kernel function an entry of the module. The types of its parameters are deduced from the function itself; the
// rewriter passes names and attributes in a struct `Spec`:
//
//   struct Spec {
//     static constexpr const char *source_name, *file;
//     static constexpr mrt_u32 line, uses, count;
//     static constexpr ParameterSpec parameters[];   // count of them
//     static constexpr mrt_u8 constants_used[];      // see MrtEntry
//   };
#ifndef MRT_ENTRY_H
#define MRT_ENTRY_H

#include "argument_source.h"
#include "tensor.h"
#include "texture.h"
#include "types.h"
#include "vec.h"

namespace mrt {

// ---------------------------------------------------------------- types, with MTLDataType's numbers
template <typename T> constexpr mrt_u32 scalar_data_type = 0;
template <> constexpr mrt_u32 scalar_data_type<float> = 3;
template <> constexpr mrt_u32 scalar_data_type<half> = 16;
template <> constexpr mrt_u32 scalar_data_type<int> = 29;
template <> constexpr mrt_u32 scalar_data_type<uint> = 33;
template <> constexpr mrt_u32 scalar_data_type<short> = 37;
template <> constexpr mrt_u32 scalar_data_type<ushort> = 41;
template <> constexpr mrt_u32 scalar_data_type<char> = 45;
template <> constexpr mrt_u32 scalar_data_type<signed char> = 45;
template <> constexpr mrt_u32 scalar_data_type<uchar> = 49;
template <> constexpr mrt_u32 scalar_data_type<bool> = 53;
template <> constexpr mrt_u32 scalar_data_type<long> = 81;
template <> constexpr mrt_u32 scalar_data_type<ulong> = 85;
template <> constexpr mrt_u32 scalar_data_type<bfloat> = 121;

template <typename T> struct TypeFacts {
  static constexpr mrt_u32 size = sizeof(T), alignment = alignof(T),
                           data_type =
                               (__is_class(T) || __is_union(T)) && !scalar_data_type<T> ? 1 : scalar_data_type<T>;
  static constexpr bool is_const = false;
};
template <typename T, int N> struct TypeFacts<metal::vec<T, N>> {
  typedef metal::vec<T, N> vector;
  static constexpr mrt_u32 size = sizeof(vector), alignment = alignof(vector), data_type = scalar_data_type<T> + N - 1;
  static constexpr bool is_const = false;
};
template <> struct TypeFacts<void> {
  static constexpr mrt_u32 size = 0, alignment = 1, data_type = 0;
  static constexpr bool is_const = false;
};
template <typename T> struct TypeFacts<const T> : TypeFacts<T> {
  static constexpr bool is_const = true;
};
template <typename T> struct TypeFacts<volatile T> : TypeFacts<T> {};
template <typename T> struct TypeFacts<const volatile T> : TypeFacts<T> {
  static constexpr bool is_const = true;
};

// ---------------------------------------------------------------- values computed from the position in the grid
template <ArgumentSource source> MRT_UNINSTRUMENTED inline mrt_u32 builtin(const MrtThread *thread, unsigned axis) {
  const MrtGroup *group = thread->group;
  const MrtLaunch *launch = group->launch;
  switch (source) {
  case ArgumentSource::thread_position_in_grid: return thread->thread_position_in_grid[axis];
  case ArgumentSource::thread_position_in_threadgroup: return thread->thread_position_in_threadgroup[axis];
  case ArgumentSource::thread_index_in_threadgroup: return thread->thread_index_in_threadgroup;
  case ArgumentSource::threadgroup_position_in_grid: return group->threadgroup_position_in_grid[axis];
  case ArgumentSource::threads_per_grid:
  case ArgumentSource::grid_size: return launch->threads_per_grid[axis];
  case ArgumentSource::threads_per_threadgroup: return group->threads_per_threadgroup[axis];
  case ArgumentSource::threadgroups_per_grid: return launch->threadgroups_per_grid[axis];
  case ArgumentSource::dispatch_threads_per_threadgroup: return launch->dispatch_threads_per_threadgroup[axis];
  case ArgumentSource::thread_index_in_simdgroup: return thread->thread_index_in_simdgroup;
  case ArgumentSource::simdgroup_index_in_threadgroup: return thread->simdgroup_index_in_threadgroup;
  case ArgumentSource::simdgroups_per_threadgroup: return group->simdgroups_per_threadgroup;
  case ArgumentSource::dispatch_simdgroups_per_threadgroup: return group->dispatch_simdgroups_per_threadgroup;
  case ArgumentSource::threads_per_simdgroup:
  case ArgumentSource::thread_execution_width: return 32;
  case ArgumentSource::thread_index_in_quadgroup: return thread->thread_index_in_simdgroup % 4;
  case ArgumentSource::quadgroup_index_in_threadgroup: return thread->thread_index_in_threadgroup / 4;
  case ArgumentSource::quadgroups_per_threadgroup:
    return (group->threads_per_threadgroup[0] * group->threads_per_threadgroup[1] * group->threads_per_threadgroup[2] +
            3) /
           4;
  case ArgumentSource::dispatch_quadgroups_per_threadgroup:
    return (launch->dispatch_threads_per_threadgroup[0] * launch->dispatch_threads_per_threadgroup[1] *
                launch->dispatch_threads_per_threadgroup[2] +
            3) /
           4;
  default: return 0; // grid_origin
  }
}

// ---------------------------------------------------------------- how a parameter gets its value, by its type
inline MRT_UNINSTRUMENTED void *binding(const MrtThread *thread, ArgumentSource source, mrt_u32 index) {
  return source == ArgumentSource::buffer ? thread->group->launch->buffers[index]
                                          : thread->group->threadgroup_arguments[index];
}

template <typename P> struct Argument { // passed by value
  typedef P Pointee;
  static constexpr bool is_binding = false, is_reference = false;
  template <ArgumentSource source> static MRT_UNINSTRUMENTED P get(const MrtThread *thread, mrt_u32) {
    return P(builtin<source>(thread, 0));
  }
  static P nothing() { return P(); }
};
template <typename T, int N> struct Argument<metal::vec<T, N>> {
  typedef metal::vec<T, N> Pointee;
  static constexpr bool is_binding = false, is_reference = false;
  template <ArgumentSource source> static MRT_UNINSTRUMENTED Pointee get(const MrtThread *thread, mrt_u32) {
    if constexpr (N == 2) return Pointee(T(builtin<source>(thread, 0)), T(builtin<source>(thread, 1)));
    else return Pointee(T(builtin<source>(thread, 0)), T(builtin<source>(thread, 1)), T(builtin<source>(thread, 2)));
  }
  static Pointee nothing() { return Pointee(); }
};
template <typename T> struct Argument<T *> {
  typedef T Pointee;
  static constexpr bool is_binding = true, is_reference = false;
  template <ArgumentSource source> static MRT_UNINSTRUMENTED T *get(const MrtThread *thread, mrt_u32 index) {
    return (T *)binding(thread, source, index);
  }
  static T *nothing() { return nullptr; }
};
template <typename T> struct Argument<T &> {
  typedef T Pointee;
  static constexpr bool is_binding = true, is_reference = true;
  template <ArgumentSource source> static MRT_UNINSTRUMENTED T &get(const MrtThread *thread, mrt_u32 index) {
    return *(T *)binding(thread, source, index);
  }
  // The optimizer may read through a reference before the kernel does, so it must refer to mapped memory.
  static T &nothing() {
    alignas(T) static unsigned char memory[sizeof(T)];
    return *(T *)memory;
  }
};

// Textures and samplers, and arrays of them. `bound` returns the object that the host bound for element i.
template <typename P> struct ResourceArgument {
  typedef P Pointee;
  static constexpr bool is_binding = true, is_reference = false;
  template <ArgumentSource source> static MRT_UNINSTRUMENTED P get(const MrtThread *thread, mrt_u32 index) {
    return Argument<P>::bound(thread->group->launch, index);
  }
  static P nothing() { return P(); }
};
template <typename Texture, typename T, access a, mrt_u32 type> struct TextureArgument : ResourceArgument<Texture> {
  static Texture MRT_UNINSTRUMENTED bound(const MrtLaunch *launch, mrt_u32 index) {
    Texture texture;
    texture.texture = launch->textures[index];
    return texture;
  }
  struct Facts {
    static constexpr mrt_u32 size = type, alignment = mrt_u32(a), data_type = scalar_data_type<T>, count = 1;
    static constexpr bool is_const = a == access::sample || a == access::read;
  };
};
#define MRT_TEXTURE_ARGUMENT(NAME, TYPE)                                                                               \
  template <typename T, access a, metal::memory_coherence c>                                                           \
  struct Argument<metal::NAME<T, a, c>> : TextureArgument<metal::NAME<T, a, c>, T, a, TYPE> {};
MRT_TEXTURE_ARGUMENT(texture1d, 0)
MRT_TEXTURE_ARGUMENT(texture1d_array, 1)
MRT_TEXTURE_ARGUMENT(texture2d, 2)
MRT_TEXTURE_ARGUMENT(texture2d_array, 3)
MRT_TEXTURE_ARGUMENT(texturecube, 5)
MRT_TEXTURE_ARGUMENT(texturecube_array, 6)
MRT_TEXTURE_ARGUMENT(texture3d, 7)
MRT_TEXTURE_ARGUMENT(texture_buffer, 9)
MRT_TEXTURE_ARGUMENT(depth2d, 2 | MRT_DEPTH_ARGUMENT)
MRT_TEXTURE_ARGUMENT(depth2d_array, 3 | MRT_DEPTH_ARGUMENT)
MRT_TEXTURE_ARGUMENT(depthcube, 5 | MRT_DEPTH_ARGUMENT)
MRT_TEXTURE_ARGUMENT(depthcube_array, 6 | MRT_DEPTH_ARGUMENT)
#undef MRT_TEXTURE_ARGUMENT
template <> struct Argument<metal::sampler> : ResourceArgument<metal::sampler> {
  static metal::sampler MRT_UNINSTRUMENTED bound(const MrtLaunch *launch, mrt_u32 index) {
    metal::sampler sampler;
    if (const MrtSampler *given = launch->samplers[index]) sampler.word = ulong(given);
    return sampler;
  }
  struct Facts {
    static constexpr mrt_u32 size = 0, alignment = 0, data_type = 59, count = 1;
    static constexpr bool is_const = true;
  };
};
#if __METAL_VERSION__ >= 400
// A tensor of the host is 8 bytes, like one in an argument buffer.
template <typename T, typename E> struct Argument<tensors::tensor<T, E, tensors::tensor_handle>> {
  typedef tensors::tensor<T, E, tensors::tensor_handle> Pointee;
  static constexpr bool is_binding = true, is_reference = true;
  template <ArgumentSource source> static MRT_UNINSTRUMENTED Pointee get(const MrtThread *thread, mrt_u32 index) {
    return *(Pointee *)binding(thread, source, index);
  }
  static Pointee nothing() { return Pointee(); }
  struct Facts {
    static constexpr mrt_u32 size = 8, alignment = 8, data_type = 140, count = 1;
    static constexpr bool is_const = true;
  };
};
#endif
template <typename T, size_t N> struct Argument<metal::array<T, N>> : ResourceArgument<metal::array<T, N>> {
  static metal::array<T, N> MRT_UNINSTRUMENTED bound(const MrtLaunch *launch, mrt_u32 index) {
    metal::array<T, N> all;
    for (mrt_u32 i = 0; i < N; i++) all[i] = Argument<T>::bound(launch, index + i);
    return all;
  }
  struct Facts : Argument<T>::Facts {
    static constexpr mrt_u32 count = N;
  };
};

// ---------------------------------------------------------------- properties that only the kernel's scope knows
// Attributes may contain template parameters and constants of the kernel's scope, so they are evaluated there. The
// kernel is called once before it runs to identify itself; it returns at its first statement.
struct Identification {
  const char *name;
  mrt_u32 max_total_threads;
  const mrt_u32 *indices;
};
constexpr mrt_u32 automatic = ~0u; // an index that the source does not specify
static Identification *identifying;

template <typename... Indices>
MRT_UNINSTRUMENTED __attribute__((noinline)) void identify(const char *name, mrt_u32 max_total_threads,
                                                           Indices... values) {
  static mrt_u32 indices[sizeof...(values) + 1];
  const mrt_u32 given[] = {mrt_u32(values)..., 0};
  for (unsigned i = 0; i <= sizeof...(values); i++) indices[i] = given[i];
  *identifying = {name, max_total_threads, indices};
}

#define MRT_IDENTIFY(...)                                                                                              \
  if (__builtin_expect(mrt::identifying != nullptr, 0)) return mrt::identify(__PRETTY_FUNCTION__, __VA_ARGS__);

// ---------------------------------------------------------------- function constants
// Written by the rewriter at the end of the program: copies the launch's values into the thread-local variables that
// represent the constants, and computes the constants that are derived from them.
static void load_constants(const void *const *values);

#define MRT_FUNCTION_CONSTANT(name, position, ...)                                                                     \
  static thread_local __VA_ARGS__ name;                                                                                \
  static thread_local bool mrt_defined_##name;                                                                         \
  static constexpr mrt_u32 mrt_index_##name = mrt_u32(position);
#define MRT_DERIVED_DECLARATION(name, ...)                                                                             \
  static thread_local __VA_ARGS__ name;                                                                                \
  static __VA_ARGS__ mrt_derive_##name()
#define MRT_DERIVED_VALUE(name, ...)

// After the values in its table, the runtime stores a number for the set of values, which distinguishes a freed table
// from another one at the same address.
extern const mrt_u32 constant_count;
static thread_local const void *constants_loaded;
MRT_UNINSTRUMENTED inline void enter(const MrtLaunch *launch) {
  if (!constant_count) return;
  const void *number = launch->constants[constant_count];
  if (number == constants_loaded) return;
  load_constants(launch->constants);
  constants_loaded = number;
}

template <typename T> MRT_UNINSTRUMENTED void load_constant(T &constant, bool &defined, const void *value) {
  defined = value != nullptr;
  if (value) __builtin_memcpy((void *)&constant, value, sizeof(T));
  else __builtin_memset((void *)&constant, 0, sizeof(T));
}

// The properties of a parameter, which its type or its attributes determine.
template <typename> using void_of = void;
template <typename A, typename = void> struct HasFacts {
  static constexpr bool value = false;
  typedef TypeFacts<metal::remove_addrspace_t<typename A::Pointee>> type;
};
template <typename A> struct HasFacts<A, void_of<typename A::Facts>> {
  static constexpr bool value = true;
  typedef typename A::Facts type;
};
template <typename A> using FactsOf = typename HasFacts<A>::type;

// ---------------------------------------------------------------- the entry
template <unsigned... I> struct Indices {};
template <typename T, T... I> struct MakeIndices {
  typedef Indices<unsigned(I)...> type;
};

template <auto kernel, typename Spec, MrtEntry *entry> struct Entry;
template <typename... P, void (*kernel)(P...), typename Spec, MrtEntry *entry> struct Entry<kernel, Spec, entry> {
  static constexpr mrt_u32 count = sizeof...(P);
  static_assert(count == Spec::count, "the rewriter counts the parameters that the function has");
  typedef typename __make_integer_seq<MakeIndices, unsigned, count>::type All;

  template <typename A> static constexpr MrtParameter describe(const ParameterSpec &spec) {
    typedef FactsOf<A> Facts;
    return {spec.name,     spec.type_name,   kind(spec.source), spec.space,      automatic,
            Facts::size,   Facts::alignment, Facts::data_type,  Facts::is_const, A::is_reference,
            spec.coherent, spec.gate,        spec.gate_value,   count_of<A>()};
  }
  static constexpr mrt_u32 kind(ArgumentSource source) {
    switch (source) {
    case ArgumentSource::buffer: return MRT_PARAMETER_BUFFER;
    case ArgumentSource::threadgroup: return MRT_PARAMETER_THREADGROUP;
    case ArgumentSource::texture: return MRT_PARAMETER_TEXTURE;
    case ArgumentSource::sampler: return MRT_PARAMETER_SAMPLER;
    default: return MRT_PARAMETER_BUILTIN;
    }
  }
  template <typename A> static constexpr mrt_u32 count_of() {
    if constexpr (HasFacts<A>::value) return A::Facts::count;
    else return 1;
  }
  template <typename> struct Parameters;
  template <unsigned... I> struct Parameters<Indices<I...>> {
    static inline MrtParameter table[count + 1] = {describe<Argument<P>>(Spec::parameters[I])..., {}};
  };
  static MrtParameter *parameters() { return Parameters<All>::table; }

  template <unsigned... I> static MRT_UNINSTRUMENTED void call(const MrtThread *thread, Indices<I...>) {
    kernel(Argument<P>::template get<Spec::parameters[I].source>(thread, Parameters<All>::table[I].index)...);
  }
  static MRT_UNINSTRUMENTED void run(MrtThread *thread) {
    enter(thread->group->launch);
    call(thread, All());
  }

  // Evaluates the indices, and assigns the lowest free index to each binding without one (MSL 5.2.1).
  static const char *identity() {
    Identification result = {};
    identifying = &result;
    kernel(Argument<P>::nothing()...);
    identifying = nullptr;
    entry->max_total_threads = result.max_total_threads;
    mrt_u64 taken[5] = {}; // one bit mask for each kind
    for (mrt_u32 i = 0; i < count; i++) {
      MrtParameter &parameter = parameters()[i];
      parameter.index = result.indices[i];
      for (mrt_u32 at = parameter.index; at < 64 && at - parameter.index < parameter.count; at++)
        taken[parameter.kind] |= mrt_u64(1) << at;
    }
    for (mrt_u32 i = 0; i < count; i++) {
      MrtParameter &parameter = parameters()[i];
      if (parameter.kind == MRT_PARAMETER_BUILTIN || parameter.index != automatic) continue;
      mrt_u64 &used = taken[parameter.kind];
      parameter.index = mrt_u32(__builtin_ctzll(~used));
      for (mrt_u32 at = parameter.index; at < 64 && at - parameter.index < parameter.count; at++)
        used |= mrt_u64(1) << at;
    }
    return result.name;
  }

  static constexpr MrtEntry make(const char *name, const char *file, mrt_u32 line) {
    return {name,       Spec::source_name,   file, line, run, identity, Parameters<All>::table, count, 0,
            Spec::uses, Spec::constants_used};
  }
};

// ---------------------------------------------------------------- threadgroup variables
// Each declaration has a separate record, whose position among the records is known once the module is linked.
extern "C" __attribute__((__weak__, __visibility__("hidden"))) MrtVariable *__start_mrt_variables[];
extern "C" __attribute__((__weak__, __visibility__("hidden"))) MrtVariable *__stop_mrt_variables[];
extern "C" __attribute__((__weak__, __visibility__("hidden"))) MrtEntry __start_mrt_entries[];
extern "C" __attribute__((__weak__, __visibility__("hidden"))) MrtEntry __stop_mrt_entries[];

MRT_UNINSTRUMENTED inline void *variable_memory(MrtVariable **record) {
  return current_thread->group->threadgroup_variables[record - __start_mrt_variables];
}

} // namespace mrt

#define MRT_THREADGROUP_VARIABLE(type, name, alignment, line)                                                          \
  (*(MRT_THREADGROUP type *)({                                                                                         \
    static MrtVariable mrt_variable = {name, __PRETTY_FUNCTION__, sizeof(type), alignment, __FILE__, line};            \
    static MrtVariable *mrt_record __attribute__((__section__("mrt_variables"), __used__)) = &mrt_variable;            \
    mrt::variable_memory(&mrt_record);                                                                                 \
  }))

#define MRT_ENTRY(number, kernel, spec, name, line)                                                                    \
  static MrtEntry mrt_entry_##number __attribute__((__section__("mrt_entries"), __used__)) =                           \
      mrt::Entry<kernel, spec, &mrt_entry_##number>::make(name, __FILE__, line);
#define MRT_ARGUMENT(...) __VA_ARGS__

#define MRT_MODULE(constants)                                                                                          \
  extern "C" __attribute__((__visibility__("default")))                                                                \
  const MrtModule mrt_module = {MRT_ABI_VERSION,                                                                       \
                                MRT_IS_CHECKED,                                                                        \
                                mrt::__start_mrt_entries,                                                              \
                                mrt_u32(mrt::__stop_mrt_entries - mrt::__start_mrt_entries),                           \
                                constants,                                                                             \
                                mrt::constant_count,                                                                   \
                                mrt::__start_mrt_variables,                                                            \
                                mrt_u32(mrt::__stop_mrt_variables - mrt::__start_mrt_variables),                       \
                                mrt::current,                                                                          \
                                mrt::bind};

#ifdef MRT_CHECKED
#define MRT_IS_CHECKED 1
#else
#define MRT_IS_CHECKED 0
#endif

#endif
