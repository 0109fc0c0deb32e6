// os_log (MSL 6.19 <metal_logging>): calls are type-checked but print nothing, as on a device without a log state.
#ifndef MRT_LOGGING_H
#define MRT_LOGGING_H

#include "types.h"

namespace metal {

enum os_log_type {
  os_log_type_default = 0,
  os_log_type_info = 1,
  os_log_type_debug = 2,
  os_log_type_error = 16,
  os_log_type_fault = 17
};

#ifdef MRT_STRICT
#define MRT_LOG_METHOD(NAME)                                                                                           \
  template <typename... A> void NAME(const MRT_CONSTANT char *format, A... arguments) const;                           \
  template <typename... A> void NAME(const MRT_CONSTANT char *format, A... arguments) const MRT_CONSTANT;
#define MRT_LOG_STRING const MRT_CONSTANT char *
#else
#define MRT_LOG_METHOD(NAME)                                                                                           \
  template <typename... A> MRT_METHOD void NAME(const char *, A...) const {}
#define MRT_LOG_STRING const char *
#endif

struct os_log {
  constexpr os_log(MRT_LOG_STRING, MRT_LOG_STRING) {}
#ifdef MRT_STRICT
  constexpr os_log(MRT_LOG_STRING, MRT_LOG_STRING) MRT_CONSTANT {}
#endif
  MRT_LOG_METHOD(log)
  MRT_LOG_METHOD(log_debug)
  MRT_LOG_METHOD(log_info)
  MRT_LOG_METHOD(log_error)
  MRT_LOG_METHOD(log_fault)
};

[[maybe_unused]] constexpr MRT_CONSTANT os_log os_log_default("", "");

} // namespace metal
#endif
