// Errors of the C interface: code throws `Failure`, which `guarded` converts to a status and a message.
#pragma once

#include "include/orchard_cpu.h"

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace orchard {

struct Failure {
  orchard_cpu_status status;
  std::string message;
};

[[noreturn]] inline void fail(orchard_cpu_status status, std::string message) {
  throw Failure{status, std::move(message)};
}

// The calling thread's last error message.
void set_last_error(const char *message) noexcept;
const std::string &last_error() noexcept;

// Runs the body of a function of the C interface.
template <class Body> int32_t guarded(Body &&body) noexcept {
  try {
    body();
    return ORCHARD_CPU_OK;
  } catch (const Failure &failure) {
    set_last_error(failure.message.c_str());
    return failure.status;
  } catch (const std::bad_alloc &) {
    set_last_error("the machine has no memory left");
    return ORCHARD_CPU_OUT_OF_MEMORY;
  } catch (const std::exception &error) {
    set_last_error(error.what());
  } catch (...) {
    set_last_error("an unknown C++ exception");
  }
  return ORCHARD_CPU_INTERNAL;
}

} // namespace orchard
