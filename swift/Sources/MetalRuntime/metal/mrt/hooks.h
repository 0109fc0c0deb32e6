// The callbacks that the checked build of a kernel calls, forwarded to the runtime. The prelude includes this header
// once, if MRT_CHECKED is defined.
//
// The checked build is compiled with these flags in addition to those of every build, and linked without any
// -fsanitize:
//   -O2 -fno-vectorize -fno-slp-vectorize -fno-unroll-loops    every access is at most 16 bytes, so none is skipped
//   -gline-tables-only -gdwarf-4                                maps program counters to lines
//   -fsanitize=thread                                           __tsan_read4(address) … before each load and store
//     -mllvm -tsan-instrument-atomics=0                         atomics are reported by MrtRuntime::atomic, with their
//                                                               line
//     -mllvm -tsan-instrument-func-entry-exit=0                 no call stack is recorded
//     -mllvm -tsan-compound-read-before-write=1                 `a[i] += x` is one __tsan_read_write4, not just a write
//   -fsanitize=alignment,array-bounds -fsanitize-recover=alignment,array-bounds
//                                      (array-bounds instead of bounds, since the rest of `bounds` traps)
//   -fsanitize=local-bounds -fsanitize-trap=local-bounds
//                                      afterwards ends the dispatch if the array is a thread's: the access would
//                                      corrupt the rest of the stack
//     -mllvm -force-attribute=__ubsan_handle_type_mismatch_v1:memory
//                                      the handler does not access memory of the kernel, so loads on both sides of a
//                                      check can still be merged
// Accesses to variables of a thread whose address does not escape are not instrumented; the runtime filters those to
// other private memory. A copy of a struct is one __tsan_memcpy.
#ifndef MRT_HOOKS_H
#define MRT_HOOKS_H

#include "current.h"

#define MRT_HOOK                                                                                                       \
  extern "C" __attribute__((__visibility__("hidden"), __used__, __noinline__, __nodebug__,                             \
                            __disable_sanitizer_instrumentation__, __no_sanitize__("alignment", "bounds")))
#define MRT_HOOK_CALLER __builtin_return_address(0)
// Initializers of program-scope variables run while the library is loaded, before it is bound to the table: they are
// not checked.
#define MRT_REPORT(...)                                                                                                \
  if (__builtin_expect(mrt::runtime != nullptr, 1)) mrt::runtime->__VA_ARGS__

// Values of MrtRuntime::access's `write`.
enum { MRT_ACCESS_READ = 0, MRT_ACCESS_WRITE = 1, MRT_ACCESS_READ_WRITE = 2 };

#define MRT_ACCESS_HOOK(name, size, write)                                                                             \
  MRT_HOOK void name(const void *address) { MRT_REPORT(access(address, size, write, MRT_HOOK_CALLER)); }
#define MRT_ACCESS_HOOKS(size)                                                                                         \
  MRT_ACCESS_HOOK(__tsan_read##size, size, MRT_ACCESS_READ)                                                            \
  MRT_ACCESS_HOOK(__tsan_write##size, size, MRT_ACCESS_WRITE)                                                          \
  MRT_ACCESS_HOOK(__tsan_read_write##size, size, MRT_ACCESS_READ_WRITE)                                                \
  MRT_ACCESS_HOOK(__tsan_unaligned_read##size, size, MRT_ACCESS_READ)                                                  \
  MRT_ACCESS_HOOK(__tsan_unaligned_write##size, size, MRT_ACCESS_WRITE)                                                \
  MRT_ACCESS_HOOK(__tsan_unaligned_read_write##size, size, MRT_ACCESS_READ_WRITE)

MRT_ACCESS_HOOKS(1)
MRT_ACCESS_HOOKS(2)
MRT_ACCESS_HOOKS(4)
MRT_ACCESS_HOOKS(8)
MRT_ACCESS_HOOKS(16)

MRT_HOOK void *__tsan_memcpy(void *destination, const void *source, __SIZE_TYPE__ size) {
  MRT_REPORT(copy(destination, source, size, MRT_HOOK_CALLER));
  return __builtin_memcpy(destination, source, size);
}

MRT_HOOK void *__tsan_memmove(void *destination, const void *source, __SIZE_TYPE__ size) {
  MRT_REPORT(copy(destination, source, size, MRT_HOOK_CALLER));
  return __builtin_memmove(destination, source, size);
}

MRT_HOOK void *__tsan_memset(void *destination, int value, __SIZE_TYPE__ size) {
  MRT_REPORT(access(destination, size, MRT_ACCESS_WRITE, MRT_HOOK_CALLER));
  return __builtin_memset(destination, value, size);
}

// Called by the module's constructor, which the sanitizer pass adds; MSL has no virtual functions.
MRT_HOOK void __tsan_init() {}

// ---- the structs that clang passes to the handlers of -fsanitize=alignment and array-bounds
struct MrtSourceLocation {
  const char *file;
  mrt_u32 line, column;
};

struct MrtTypeDescriptor {
  unsigned short kind, info;
  char name[1]; // quoted: 'float4'
};

struct MrtTypeMismatch {
  MrtSourceLocation location;
  const MrtTypeDescriptor *type;
  unsigned char log_alignment, check;
};

struct MrtOutOfBounds {
  MrtSourceLocation location;
  const MrtTypeDescriptor *array_type, *index_type;
};

// Not optimized: otherwise the compiler would see that it returns and, because of the flag above, that it has no
// effect.
MRT_HOOK __attribute__((__optnone__)) void __ubsan_handle_type_mismatch_v1(const MrtTypeMismatch *data,
                                                                           __UINTPTR_TYPE__ address) {
  MRT_REPORT(misaligned((const void *)address, 1u << data->log_alignment, data->type->name, MRT_HOOK_CALLER));
}

// Indices wider than a register are ignored, since MSL has none. A narrower index is zero-extended; its type says
// whether it is signed (bit 0), and how many bits it has (the other bits, as a power of two).
MRT_HOOK void __ubsan_handle_out_of_bounds(const MrtOutOfBounds *data, __UINTPTR_TYPE__ index) {
  const unsigned info = data->index_type->info, unused = 64 - (1u << (info >> 1));
  if (info & 1) index = (__UINTPTR_TYPE__)(long(index << unused) >> unused);
  MRT_REPORT(subscript(index, data->array_type->name, MRT_HOOK_CALLER));
}

#undef MRT_ACCESS_HOOKS
#undef MRT_ACCESS_HOOK
#undef MRT_REPORT
#undef MRT_HOOK_CALLER
#undef MRT_HOOK

#endif
